"""The whole model and its loss on every fast path at once, against the same written out plainly in float64.

Both draw the same dropout masks, so that they are compared as they train.
"""

from collections.abc import Iterator
from typing import Any, Optional

import pytest
import torch
from fixed_models import criterion
from toy_task import build
from written_out import plain_linear, written_out

from vaswani_plugin.criterions.label_smoothing import smoothed_cross_entropy
from vaswani_plugin.modules import linear as linear_module
from vaswani_plugin.modules import processor
from vaswani_plugin.modules.packing import Packing

PAD, EOS = 1, 2
VOCABULARY = 13


def sample(sources: "list[int]", targets: "list[int]", left: bool = True) -> dict[str, Any]:
    """Random sentences of the given lengths, </s> included; a length of 0 is a row of padding."""
    choose = torch.Generator().manual_seed(sum(sources) + sum(targets))

    def rows(lengths: "list[int]", pad_left: bool) -> tuple[torch.Tensor, torch.Tensor]:
        width = max(lengths, default=4)
        tokens, shifted = torch.full((2, len(lengths), max(width, 3)), PAD).unbind(0)
        for row, length in enumerate(lengths):
            words = torch.randint(4, VOCABULARY, (max(length - 1, 0),), generator=choose).tolist()
            start = tokens.size(1) - length if pad_left else 0
            if length > 0:
                tokens[row, start : start + length] = torch.tensor([*words, EOS])
                shifted[row, start : start + length] = torch.tensor([EOS, *words])
        # One token alone stays alone.
        return (tokens[:, :1], shifted[:, :1]) if width == 1 else (tokens, shifted)

    source, _ = rows(sources, left)
    target, shifted = rows(targets, False)
    if (sources, targets) == SAMPLES["a hole"]:
        # The symbol of padding as a word, which fairseq-preprocess takes from a text.
        source[1, -3] = target[1, 4] = shifted[1, 5] = PAD
    net_input = {"src_tokens": source, "src_lengths": source.ne(PAD).sum(1), "prev_output_tokens": shifted}
    return {"net_input": net_input, "target": target, "ntokens": int(target.ne(PAD).sum())}


SAMPLES = {
    "no sentence": ([], []),
    "one token": ([1], [1]),
    "one token beside longer ones": ([1, 5, 3], [4, 1, 6]),
    "no padding": ([7, 7], [5, 5]),
    "odd lengths": ([7, 1, 5, 3, 2], [5, 3, 9, 1, 7]),
    "a row of padding": ([4, 0, 3], [3, 0, 5]),
    "nothing but padding": ([0, 0], [0, 0]),
    "a hole": ([7, 6, 2], [5, 9, 7]),
    "128 sentences": ([n % 9 + 1 for n in range(128)], [n % 7 + 1 for n in range(128)]),
    "long": ([301, 12], [257, 299]),
}
# Relative, of the loss and of all gradients as one vector; 8, 11, 24 and 53 bits in a number.
TOLERANCES = {torch.bfloat16: 6e-2, torch.float16: 8e-3, torch.float32: 2e-5, torch.float64: 1e-11}


def fast(model: Any, batch: "dict[str, Any]") -> torch.Tensor:
    loss, _, _ = criterion(0.1)(model, batch)
    return loss


def plain(model: Any, batch: "dict[str, Any]") -> torch.Tensor:
    with written_out():
        logits, _ = model(**batch["net_input"])
    is_token = batch["target"].ne(PAD)
    return smoothed_cross_entropy(logits.log_softmax(dim=-1), batch["target"], is_token, 0.1)[0]


def loss_and_gradients(way: Any, model: Any, batch: "dict[str, Any]") -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(7)  # at which no ReLU is so close to 0 that reduced precision turns it
    loss = way(model, batch)
    loss.backward()
    return loss.detach().double(), torch.cat([p.grad.double().flatten() for p in model.parameters()])


@pytest.fixture(params=["torch", "onednn"])
def _products(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> "Iterator[None]":
    monkeypatch.setenv(processor.OVERRIDE, request.param)
    processor.prefers_onednn.cache_clear()
    assert processor.prefers_onednn() == (request.param == "onednn")
    yield
    processor.prefers_onednn.cache_clear()


def check(dtype: torch.dtype, name: str, autocast: Optional[torch.dtype] = None, **config: Any) -> None:
    batch = sample(*SAMPLES[name])
    sizes = {"d_model": 14, "num_heads": 2, "d_k": 5, "d_v": 3, "d_ff": 9, "dropout": 0.3, **config}
    model = build(VOCABULARY, **sizes).to(dtype).train()
    for parameter in model.parameters():
        parameter.data.mul_(0.5)  # small enough for the range and the few bits of half precision
    exact = build(VOCABULARY, **sizes).train()
    exact.load_state_dict(model.state_dict())
    with torch.autocast("cpu", dtype=autocast, enabled=autocast is not None):
        loss, gradient = loss_and_gradients(fast, model, batch)
    expected, expected_gradient = loss_and_gradients(plain, exact, batch)
    tolerance = TOLERANCES[autocast or dtype]
    assert loss.item() == pytest.approx(expected.item(), rel=tolerance, abs=tolerance)
    assert (gradient - expected_gradient).norm() <= tolerance * expected_gradient.norm() + 1e-12
    if name == "nothing but padding":
        assert loss == 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("name", SAMPLES)
def test_padding_that_is_left_out(name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a model that computes all of it; without dropout, whose masks would be others."""
    of, packed = Packing.of, []

    def recorded(is_token: torch.Tensor) -> Optional[Packing]:
        packing = None if linear_module.linear is plain_linear else of(is_token)
        packed.append(packing is not None)
        return packing

    monkeypatch.setattr(Packing, "of", staticmethod(recorded))
    check(dtype, name, dropout=0.0)
    assert any(packed) is (name not in {"no sentence", "one token", "no padding", "nothing but padding"})


@pytest.mark.usefixtures("_products")
@pytest.mark.parametrize("name", SAMPLES)
def test_float32(name: str) -> None:
    check(torch.float32, name)


@pytest.fixture(params=[True, False], ids=["own bfloat16", "bfloat16 by float32"])
def _bfloat16(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_module, "multiplies_bfloat16", lambda: request.param)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16], ids=str)
@pytest.mark.parametrize("name", SAMPLES)
def test_other_precisions(dtype: torch.dtype, name: str) -> None:
    check(dtype, name)


@pytest.mark.usefixtures("_bfloat16")
@pytest.mark.parametrize("name", SAMPLES)
def test_bfloat16(name: str) -> None:
    check(torch.bfloat16, name)


@pytest.mark.usefixtures("_bfloat16")
@pytest.mark.parametrize("name", SAMPLES)
def test_mixed_precision(name: str) -> None:
    check(torch.float32, name, torch.bfloat16)


@pytest.mark.parametrize(
    "config",
    [
        {"attention_bias": True},
        {"learned_positions": True},
        {"share_embeddings": "none"},
        {"activation_dropout": 0.2, "d_model": 7, "num_heads": 3},
    ],
)
def test_other_models(config: "dict[str, Any]") -> None:
    check(torch.float64, "odd lengths", **config)


@pytest.mark.usefixtures("_products")
@pytest.mark.parametrize("name", ["odd lengths", "128 sentences"])
def test_the_same_random_state_gives_the_same_bits(name: str) -> None:
    """What resuming bit for bit rests on, whatever ran in between."""
    batch = sample(*SAMPLES[name])
    results = []
    for between in ("one token", "long"):
        model = build(VOCABULARY, dropout=0.3).float().train()
        results.append(loss_and_gradients(fast, model, batch))
        fast(model, sample(*SAMPLES[between]))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
