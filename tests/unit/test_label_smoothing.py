"""The criterion against sums written out in NumPy, torch's own cross entropy and numerical derivatives."""

import math
from typing import Any

import numpy as np
import pytest
import reference
import torch
from fairseq import metrics
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from torch.nn import functional
from toy_task import ToyTask, dictionary

from vaswani_plugin.criterions.label_smoothing import VaswaniLabelSmoothingCriterion, smoothed_cross_entropy

PAD = 1


class FixedLogits:
    """A model that answers every batch with the same logits."""

    def __init__(self, logits: torch.Tensor) -> None:
        self.logits = logits

    def __call__(self, **_: Any) -> Any:
        return (self.logits, None)

    def get_normalized_probs(self, net_output: Any, log_probs: bool) -> torch.Tensor:
        assert log_probs
        return torch.log_softmax(net_output[0], dim=-1)

    def get_targets(self, sample: Any, net_output: Any) -> torch.Tensor:
        return sample["target"]


def criterion(epsilon: float = 0.1, **options: Any) -> VaswaniLabelSmoothingCriterion:
    settings = {"sentence_avg": False, "label_smoothing": epsilon, **options}
    return VaswaniLabelSmoothingCriterion(ToyTask(dictionary(9)), **settings)


def batch(target: "list[list[int]]") -> dict[str, Any]:
    tokens = torch.tensor(target)
    return {"net_input": {}, "target": tokens, "ntokens": int(tokens.ne(PAD).sum())}


def example(dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, dict[str, Any]]:
    logits = torch.randn(2, 4, 9, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return logits.to(dtype), batch([[5, 6, 2, PAD], [4, 2, PAD, PAD]])


def logged(outputs: "list[dict[str, Any]]") -> dict[str, float]:
    with metrics.aggregate(new_root=True) as meters:
        VaswaniLabelSmoothingCriterion.reduce_metrics(outputs)
    return meters.get_smoothed_values()


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
@pytest.mark.parametrize("sentence_avg", [False, True])
def test_log_of_a_uniform_model(epsilon: float, sentence_avg: bool) -> None:
    """nll is log2 V bits and perplexity V whatever epsilon is; loss is per token, or per sentence if asked for."""
    sample = batch([[5, 6, 2, PAD], [4, 2, PAD, PAD]])
    _, sample_size, log = criterion(epsilon, sentence_avg=sentence_avg)(FixedLogits(torch.zeros(2, 4, 9)), sample)
    values = logged([log, log])
    assert sample_size == (2 if sentence_avg else 5)
    assert values["nll_loss"] == pytest.approx(math.log2(9), abs=1e-3)
    assert values["ppl"] == pytest.approx(9, abs=0.01)
    assert values["loss"] == pytest.approx(math.log2(9) * (2.5 if sentence_avg else 1.0), abs=1e-3)


def test_log_weighs_batches_by_their_tokens() -> None:
    outputs = [
        {"loss": torch.tensor(6.0), "nll_loss": torch.tensor(3.0), "ntokens": 3, "nsentences": 1, "sample_size": 3},
        {"loss": torch.tensor(2.0), "nll_loss": torch.tensor(1.0), "ntokens": 1, "nsentences": 1, "sample_size": 1},
    ]
    values = logged(outputs)
    assert values["loss"] == pytest.approx(2.0 / math.log(2), abs=1e-3)
    assert values["nll_loss"] == pytest.approx(1.0 / math.log(2), abs=1e-3)


def test_accuracy() -> None:
    logits = torch.zeros(2, 4, 9)
    for position, best in (((0, 0), 5), ((0, 1), 7), ((0, 2), 2), ((1, 0), 4), ((1, 1), 3)):
        logits[position][best] = 5.0
    logits[1, 3, PAD] = 5.0  # padding is not counted, not even when it is predicted
    sample = batch([[5, 6, 2, PAD], [4, 2, PAD, PAD]])
    _, _, log = criterion(report_accuracy=True)(FixedLogits(logits), sample)
    assert (int(log["n_correct"]), log["total"]) == (3, 5)
    assert logged([log])["accuracy"] == pytest.approx(60.0)


@pytest.mark.parametrize("prefix", [1, 2, 3])
@pytest.mark.parametrize("sentence_avg", [False, True])
@pytest.mark.parametrize("pad_left", [False, True])
def test_ignored_prefix_leaves_the_sums_and_their_denominators(prefix: int, sentence_avg: bool, pad_left: bool) -> None:
    """Written out: each sentence without its first tokens; one that has no others is no part of the means."""
    logits, sample = example()
    if pad_left:
        sample = batch([[PAD, 5, 6, 2], [PAD, PAD, 4, 2]])
    counted = []
    for b, row in enumerate(sample["target"].tolist()):
        tokens = [t for t, token in enumerate(row) if token != PAD]
        counted.append([(b, t) for t in tokens[prefix:]])
    places = [place for sentence in counted for place in sentence]
    expected = sum(
        reference.cross_entropy(logits[b, t].numpy(), reference.smoothed_targets(int(sample["target"][b, t]), 9, 0.1))
        for b, t in places
    )
    options = {"ignore_prefix_size": prefix, "sentence_avg": sentence_avg, "report_accuracy": True}
    loss, size, log = criterion(0.1, **options)(FixedLogits(logits), sample)
    assert loss.item() == pytest.approx(expected, abs=1e-12)
    assert (log["ntokens"], log["total"], log["nsentences"]) == (len(places), len(places), 2)
    assert size == log["sample_size"] == (sum(map(bool, counted)) if sentence_avg else len(places))
    assert int(log["n_correct"]) == sum(int(logits[b, t].argmax() == sample["target"][b, t]) for b, t in places)


class FixedFeatures:
    """A model whose logits are fixed features times its pre-softmax matrix, as ours has one."""

    def __init__(self, features: torch.Tensor, matrix: torch.Tensor) -> None:
        self.features, self.pre_softmax_matrix = features, matrix

    def __call__(self, features_only: bool, **_: Any) -> Any:
        assert features_only
        return (self.features, None)


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


def test_nll_does_not_depend_on_epsilon() -> None:
    logits, sample = example()
    values = [criterion(epsilon)(FixedLogits(logits), sample)[2]["nll_loss"].item() for epsilon in (0.0, 0.1, 0.7)]
    assert len(set(values)) == 1
    generator = torch.Generator().manual_seed(2)
    model = FixedFeatures(torch.randn(2, 4, 3, generator=generator), torch.randn(9, 3, generator=generator))
    values = [criterion(epsilon)(model, sample)[2]["nll_loss"].item() for epsilon in (0.0, 0.1, 0.7)]
    assert len(set(values)) == 1


@pytest.mark.parametrize("options", [{}, {"sentence_avg": True}, {"ignore_prefix_size": 1}])
def test_accumulated_batches_are_one_batch(options: "dict[str, Any]") -> None:
    """fairseq adds gradients and sample sizes over the batches of an update, then divides."""
    logits, sample = example()
    whole = logits.clone().requires_grad_()
    loss, size, _ = criterion(0.1, **options)(FixedLogits(whole), sample)
    (loss / size).backward()
    parts = logits.clone().requires_grad_()
    sizes = 0
    for b in range(2):
        loss, part_size, _ = criterion(0.1, **options)(
            FixedLogits(parts[b, None]), batch([sample["target"][b].tolist()])
        )
        loss.backward()
        sizes += part_size
    assert sizes == size
    torch.testing.assert_close(parts.grad / sizes, whole.grad)


def test_source_tokens_of_an_update_are_logged() -> None:
    """Summed over the batches and devices of one update, averaged over updates, as fairseq's wpb."""
    logits, sample = example()
    outputs = []
    for lengths in ([3, 4], [7, 2]):
        sample["net_input"] = {"src_lengths": torch.tensor(lengths)}
        outputs.append(criterion()(FixedLogits(logits), sample)[2])
    assert logged(outputs)["src_wpb"] == 16
    with metrics.aggregate(new_root=True) as meters:
        for update in (outputs, outputs[:1]):
            VaswaniLabelSmoothingCriterion.reduce_metrics(update)
    assert meters.get_smoothed_values()["src_wpb"] == (16 + 7) / 2
    assert "src_wpb" not in logged([criterion()(FixedLogits(logits), batch([[5, 6, 2, PAD], [4, 2, PAD, PAD]]))[2]])


def test_no_tokens_at_all() -> None:
    logits = torch.randn(1, 2, 9, requires_grad=True)
    loss, sample_size, log = criterion()(FixedLogits(logits), batch([[PAD, PAD]]))
    loss.backward()
    assert (loss.item(), sample_size) == (0.0, 0)
    assert (logits.grad == 0).all()
    assert logged([log])["loss"] == 0


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
