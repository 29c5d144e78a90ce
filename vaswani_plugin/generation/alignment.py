"""Which source token each output token looks at most: fairseq's --print-alignment."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from fairseq import utils
from fairseq.data import data_utils
from torch import Tensor


def align(
    models: Sequence[Any],
    net_input: Mapping[str, Tensor],
    finished: Sequence[Sequence[dict[str, Any]]],
    kind: str,
    pad: int,
    eos: int,
) -> None:
    """Fill in each hypothesis's "alignment" from one pass over all of them.

    The weights are the last decoder layer's over the source, averaged over heads and models.

    Args:
        finished: hypotheses of each sentence of the batch.
        kind: "hard" for pairs of positions, "soft" for all weights.
    """
    extract = utils.extract_hard_alignment if kind == "hard" else utils.extract_soft_alignment
    hypotheses = [hypothesis for sentence in finished for hypothesis in sentence]
    device = net_input["src_tokens"].device
    rows = torch.tensor([row for row, sentence in enumerate(finished) for _ in sentence], device=device)
    outputs = [hypothesis["tokens"] for hypothesis in hypotheses]
    targets = data_utils.collate_tokens(outputs, pad)
    shifted = data_utils.collate_tokens(outputs, pad, eos, move_eos_to_beginning=True)
    source = net_input["src_tokens"][rows]
    attention = torch.stack(
        [model(source, net_input["src_lengths"][rows], shifted)[1]["attn"][0].float() for model in models]
    ).mean(dim=0)
    for hypothesis, weights, source_tokens, target in zip(hypotheses, attention.cpu(), source.cpu(), targets.cpu()):
        hypothesis["alignment"] = extract(weights, source_tokens, target, pad, eos)
