"""What the criterion counts and logs: means over tokens or sentences, and what they are divided by."""

import math
from typing import Any

import pytest
import reference
import torch
from fairseq import metrics
from fixed_models import PAD, FixedFeatures, FixedLogits, batch, criterion, example, logged

from vaswani_plugin.criterions.label_smoothing import VaswaniLabelSmoothingCriterion


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
