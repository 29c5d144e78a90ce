"""The attention weights of every head for one sentence and its translation (the paper's Figures 3 to 5)."""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Optional

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vaswani_plugin.errors import UserError

Kind = Literal["encoder", "decoder", "cross"]
KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")

LONGEST = 128
"""Most pieces, </s> included, on a side of a map: more labels than that nobody can read."""


@dataclass(frozen=True)
class AttentionMaps:
    """Weights of N layers of h heads for S source and T target pieces, each row a distribution over what it sees.

    ``weights["encoder"]`` is (N, h, S, S), ``["decoder"]`` (N, h, T, T) and ``["cross"]`` (N, h, T, S), in float32.
    A decoder row is named by the piece that is written there; its columns are the pieces read so far, of which the
    first is the </s> that starts every target (the target is shifted right, section 3.1).
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: dict[Kind, NDArray[np.float32]]

    def rows(self, kind: Kind) -> tuple[str, ...]:
        """The pieces that look."""
        return self.source if kind == "encoder" else self.target

    def columns(self, kind: Kind) -> tuple[str, ...]:
        """The pieces that are looked at."""
        return (self.target[-1], *self.target[:-1]) if kind == "decoder" else self.source


def attention_maps(model: Any, source: Sequence[int], target: Sequence[int]) -> AttentionMaps:
    """Runs ``model`` (a :class:`VaswaniTransformer`) over one pair and keeps every head's weights.

    The layers run as they always do. Beside each of them, its attention is computed once more on the same input by
    the written-out formula, which is the one that has a matrix of weights.

    Args:
        source: ids of the source's pieces, </s> last.
        target: ids of the target's pieces, </s> last.

    Raises:
        ValueError: a side has more than ``LONGEST`` pieces, none at all, or only unknown ones.
    """
    _check(source, model.encoder.dictionary, "source")
    _check(target, model.decoder.dictionary, "target")
    device = next(model.parameters()).device
    source_BS = torch.tensor([list(source)], device=device)
    shifted_BT = torch.tensor([[target[-1], *target[:-1]]], device=device)
    lengths_B = torch.tensor([len(source)], device=device)
    training = model.training
    model.eval()
    with torch.no_grad(), _recorded(model) as recorded:
        model(source_BS, lengths_B, shifted_BT)
    model.train(training)
    return AttentionMaps(
        tuple(model.encoder.dictionary[index] for index in source),
        tuple(model.decoder.dictionary[index] for index in target),
        {kind: torch.cat(layers).float().cpu().numpy() for kind, layers in recorded.items()},
    )


def maps_of_sentence(translator: Any, source: str, target: Optional[str] = None) -> tuple[AttentionMaps, str]:
    """The maps of one sentence as text, and its target: ``target``, or the model's own translation.

    Args:
        translator: what ``VaswaniTransformer.from_pretrained`` returns; of an ensemble, its first model is shown.

    Raises:
        ValueError: as :func:`attention_maps`.
    """
    source_ids = translator.encode(source)
    _check(source_ids.tolist(), translator.src_dict, "source")
    if target is None:
        target_ids = translator.generate([source_ids])[0][0]["tokens"]
        target = str(translator.decode(target_ids))
    else:
        pieces = translator.apply_bpe(target) if target.strip() else ""
        target_ids = translator.tgt_dict.encode_line(pieces, add_if_not_exist=False).long()
    return attention_maps(translator.models[0], source_ids.tolist(), target_ids.tolist()), target


@contextmanager
def _recorded(model: Any) -> Iterator[dict[Kind, list[Tensor]]]:
    """Within the block, each attention of ``model`` appends its weights (1, H, T, S) to the list of its kind."""
    modules: dict[Kind, list[nn.Module]] = {
        "encoder": [layer.self_attention for layer in model.encoder.stack.layers],
        "decoder": [layer.self_attention for layer in model.decoder.stack.layers],
        "cross": [layer.cross_attention for layer in model.decoder.stack.layers],
    }
    recorded: dict[Kind, list[Tensor]] = {kind: [] for kind in KINDS}
    hooks = [
        module.register_forward_pre_hook(_recorder(recorded[kind]), with_kwargs=True)
        for kind in KINDS
        for module in modules[kind]
    ]
    try:
        yield recorded
    finally:
        for hook in hooks:
            hook.remove()


def _recorder(weights: list[Tensor]) -> Any:
    def record(module: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        call = inspect.signature(module.forward).bind(*positional, **named)
        call.arguments["need_weights"] = True
        # Not through the module itself, which would come back to this hook.
        weights.append(module.forward(*call.args, **call.kwargs)[1])

    return record


def _check(tokens: Sequence[int], dictionary: Any, side: str) -> None:
    pieces = tokens[:-1]
    if not pieces:
        raise UserError(f"the {side} sentence is empty: give at least one word")
    if len(tokens) > LONGEST:
        raise UserError(
            f"the {side} sentence has {len(tokens)} pieces with its </s>, more than the {LONGEST} that a picture can "
            "show: give a shorter one"
        )
    if all(piece == dictionary.unk() for piece in pieces):
        raise UserError(
            f"no piece of the {side} sentence is in the model's dictionary: is it in the model's language, and is the "
            "SentencePiece model the one that the model was trained with?"
        )
