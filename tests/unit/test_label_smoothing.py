"""The criterion against sums written out in NumPy, torch's own cross entropy and numerical derivatives."""

import math

import numpy as np
import pytest
import reference
import torch
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from fixed_models import PAD, FixedFeatures, FixedLogits, batch, criterion, example
from torch.nn import functional

from vaswani_plugin.criterions.label_smoothing import smoothed_cross_entropy


@pytest.mark.parametrize(("gold", "nll", "loss"), [(4, 0.451914, 0.701914), (1, 3.451914, 3.326914)])
def test_published_vector(gold: int, nll: float, loss: float) -> None:
    log_probabilities = torch.log_softmax(torch.tensor([[[0.0, 1.0, 2.0, 3.0, 4.0]]]), dim=-1)
    result = smoothed_cross_entropy(log_probabilities, torch.tensor([[gold]]), torch.tensor([[True]]), 0.1)
    assert [x.item() for x in result] == pytest.approx([loss, nll], abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.9])
def test_sum_over_all_ids_written_out(epsilon: float) -> None:
    logits, sample = example()
    loss, sample_size, log = criterion(epsilon)(FixedLogits(logits), sample)
    tokens = [(b, t) for b in range(2) for t in range(4) if sample["target"][b, t] != PAD]

    def expected(e: float) -> float:
        return sum(
            reference.cross_entropy(logits[b, t].numpy(), reference.smoothed_targets(int(sample["target"][b, t]), 9, e))
            for b, t in tokens
        )

    assert loss.item() == pytest.approx(expected(epsilon), abs=1e-12)
    assert log["nll_loss"].item() == pytest.approx(expected(0.0), abs=1e-12)
    assert (sample_size, log["ntokens"], log["nsentences"]) == (5, 5, 2)


def test_epsilon_zero_is_cross_entropy() -> None:
    logits, sample = example(torch.float32)
    loss, _, log = criterion(0.0)(FixedLogits(logits), sample)
    flat = functional.cross_entropy(logits.flatten(0, 1), sample["target"].flatten(), ignore_index=PAD, reduction="sum")
    assert torch.equal(loss, flat)
    assert torch.equal(log["nll_loss"], flat)


def test_torch_spreads_epsilon_over_the_gold_token_too() -> None:
    """epsilon / (V - 1) over the others is torch's epsilon / V over all with epsilon V / (V - 1)."""
    logits, sample = example()
    loss, _, _ = criterion(0.1)(FixedLogits(logits), sample)
    tokens = sample["target"].ne(PAD)
    stock = functional.cross_entropy(
        logits[tokens], sample["target"][tokens], reduction="sum", label_smoothing=0.1 * 9 / 8
    )
    torch.testing.assert_close(loss, stock)


def test_same_distribution_as_fairseqs_own() -> None:
    logits, sample = example()
    loss, _, log = criterion(0.1)(FixedLogits(logits), sample)
    stock, nll = label_smoothed_nll_loss(
        torch.log_softmax(logits, -1).flatten(0, 1), sample["target"].flatten(), 0.1, ignore_index=PAD
    )
    torch.testing.assert_close((loss, log["nll_loss"]), (stock, nll))


def test_gradient_is_probability_minus_target() -> None:
    logits, sample = example()
    logits.requires_grad_()
    loss, _, _ = criterion(0.1)(FixedLogits(logits), sample)
    loss.backward()
    for b in range(2):
        for t in range(4):
            gold = int(sample["target"][b, t])
            expected = np.zeros(9)
            if gold != PAD:
                probabilities = reference.softmax(logits[b, t].detach().numpy())
                expected = probabilities - reference.smoothed_targets(gold, 9, 0.1)
            np.testing.assert_allclose(logits.grad[b, t].numpy(), expected, atol=1e-12)


def test_gradcheck() -> None:
    logits, sample = example()
    logits.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: criterion(0.1)(FixedLogits(x), sample)[0], (logits,))


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_half_precision_log_probabilities_are_summed_in_float32(epsilon: float) -> None:
    """The sum of 40,000 losses of 2.197 is 88,000, beyond float16's largest number, and 20,000 V of them far beyond."""
    loss, _, log = criterion(epsilon)(FixedLogits(torch.zeros(1, 40_000, 9).half()), batch([[5] * 40_000]))
    rounded = torch.tensor(math.log(9)).half().item()
    assert (loss.dtype, log["nll_loss"].dtype) == (torch.float32, torch.float32)
    assert loss.item() == pytest.approx(40_000 * rounded, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("prefix", [0, 1])
@pytest.mark.parametrize("sentence_avg", [False, True])
def test_fused_projection_has_the_same_numbers(epsilon: float, prefix: int, sentence_avg: bool) -> None:
    generator = torch.Generator().manual_seed(2)
    features, matrix = (torch.randn(*shape, generator=generator) for shape in ((2, 4, 3), (9, 3)))
    _, sample = example()
    options = {"ignore_prefix_size": prefix, "sentence_avg": sentence_avg, "report_accuracy": True}
    fused = criterion(epsilon, **options)(FixedFeatures(features, matrix), sample)
    plain = criterion(epsilon, **options)(FixedLogits(features @ matrix.T), sample)
    torch.testing.assert_close(fused, plain)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.95])
@pytest.mark.parametrize("ruled_out", [[PAD], [0, 3, 7]])
def test_ruled_out_ids_are_none_of_the_vocabulary(epsilon: float, ruled_out: "list[int]") -> None:
    """An id with logit -inf: loss and gradient are those of a dictionary without it, and its own gradient is 0."""
    logits, sample = example()
    kept = [id_ for id_ in range(9) if id_ not in ruled_out]
    masked = logits.clone()
    masked[..., ruled_out] = -math.inf
    masked.requires_grad_()
    loss, _, log = criterion(epsilon)(FixedLogits(masked), sample)
    loss.backward()

    shorter = logits[..., kept].clone().requires_grad_()
    is_token = sample["target"].ne(PAD)
    gold = torch.tensor([kept.index(id_) for id_ in sample["target"][is_token].tolist()])
    torch_epsilon = epsilon * len(kept) / (len(kept) - 1)
    if torch_epsilon <= 1.0:
        expected = functional.cross_entropy(shorter[is_token], gold, reduction="sum", label_smoothing=torch_epsilon)
        expected.backward()
        torch.testing.assert_close(loss, expected)
        torch.testing.assert_close(masked.grad[..., kept], shorter.grad)
    assert torch.isfinite(loss)
    assert torch.isfinite(log["nll_loss"])
    assert torch.isfinite(masked.grad).all()
    assert (masked.grad[..., ruled_out] == 0).all()


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.95])
def test_a_gold_token_that_is_ruled_out_has_an_infinite_loss(epsilon: float) -> None:
    logits, sample = example()
    logits[0, 0, 5] = -math.inf
    loss, _, log = criterion(epsilon)(FixedLogits(logits), sample)
    assert (loss.item(), log["nll_loss"].item()) == (math.inf, math.inf)


@pytest.mark.parametrize("epsilon", [-0.1, 1.0])
def test_epsilon_out_of_range(epsilon: float) -> None:
    with pytest.raises(ValueError, match=f"--label-smoothing {epsilon} must be at least 0 and below 1"):
        criterion(epsilon)


def test_entropy_floor() -> None:
    """No model goes below the entropy of the smoothed targets: 1.376948 nats for V = 37,000."""
    size = 37_000
    best = torch.full((1, 1, size), math.log(0.1 / (size - 1)), dtype=torch.float64)
    best[0, 0, 7] = math.log(0.9)
    loss, _ = smoothed_cross_entropy(best, torch.tensor([[7]]), torch.tensor([[True]]), 0.1)
    assert loss.item() == pytest.approx(1.376948, abs=1e-6)
