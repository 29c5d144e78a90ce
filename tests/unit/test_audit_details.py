"""The audit against the paper's numbers, written down here once more."""

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from audited import PAPER, STOCK, differing, papers_base, value

from vaswani_plugin.audit.comparison import Audit, audit, audit_subject
from vaswani_plugin.audit.configuration import Configuration, from_arguments
from vaswani_plugin.audit.progress import Progress
from vaswani_plugin.models.architectures import ARCHITECTURES


@pytest.fixture
def base() -> Mapping[str, Any]:
    return papers_base()


BIG = ("--max-update", "300000", "--save-interval-updates", "600", "--keep-interval-updates", "20")


# Table 3, and sections 3 to 6.1.
PAPERS_BASE = {
    "N": 6, "d_model": 512, "d_ff": 2048, "h": 8, "d_k": 64, "d_v": 64, "embeddings": "one matrix",
    "embedding scale": "sqrt(d_model)", "attention biases": "none", "positions": "sinusoids, interleaved, from 0",
    "layer norm": "after each residual", "activation": "relu", "dropout": 0.1, "attention dropout": 0,
    "activation dropout": 0, "label smoothing": 0.1, "optimiser": "adam", "betas": "0.9, 0.98", "epsilon": 1e-9,
    "weight decay": 0, "clipping": 0, "learning rate": "inverse square root", "warm-up": 4000, "rate factor": 1,
    "first update's number": 1, "source tokens": "about 25,000", "target tokens": "about 25,000", "updates": 100_000,
    "checkpoint every": 1500, "checkpoints kept": 5, "checkpoints averaged": 5, "beam": 4,
    "length penalty": "((5 + n) / 6)^0.6", "longest output": "1 x input + 50", "end of search": "no living one can win",
}  # fmt: skip


PAPERS_BIG = {"d_model": 1024, "d_ff": 4096, "h": 16, "dropout": 0.3, "updates": 300_000, "checkpoint every": 600,
              "checkpoints kept": 20, "checkpoints averaged": 20}  # fmt: skip


def changed(base: Mapping[str, Any], part: str, **settings: Any) -> Audit:
    parts = copy.deepcopy(dict(base))
    parts[part] = {**parts[part], **settings}
    return audit(Configuration("run", parts))


def test_the_papers_base_model_differs_in_nothing(base: Mapping[str, Any]) -> None:
    result = audit(Configuration("run", base))
    assert differing(result) == set()
    assert result.paper.name == "base"
    assert {detail.name: detail.paper for detail in result.details} == PAPERS_BASE
    assert [detail.name for detail in result.details if detail.same is None] == ["checkpoints averaged"]


@pytest.mark.parametrize(
    ("flags", "model", "dropout"),
    [
        (("--arch", "vaswani_big"), "big", 0.3),
        (("--arch", "vaswani_big_en_fr"), "big for English-French", 0.1),
        (("--arch", "vaswani_big", "--target-lang", "fr", "--dropout", "0.1"), "big for English-French", 0.1),
    ],
)
def test_the_papers_big_models_differ_in_nothing(flags: tuple[str, ...], model: str, dropout: float) -> None:
    result = audit_subject([*PAPER, *BIG, *flags])
    assert differing(result) == set()
    assert result.paper.name == model
    expected = {**PAPERS_BASE, **PAPERS_BIG, "dropout": dropout}
    assert {detail.name: detail.paper for detail in result.details} == expected


def test_dropout_of_the_other_language_is_a_difference(base: Mapping[str, Any]) -> None:
    parts = {**base, "task": {**base["task"], "target_lang": "fr"}}
    for target, dropout, expected in (("fr", 0.3, 0.1), ("de", 0.1, 0.3)):
        parts["task"] = {**base["task"], "target_lang": target}
        parts["model"] = {**base["model"], **ARCHITECTURES["vaswani_big"], "dropout": dropout}
        (detail,) = [each for each in audit(Configuration("run", parts)).differences if each.name == "dropout"]
        assert (detail.paper, detail.value) == (expected, dropout)


@pytest.mark.parametrize(
    ("architecture", "names"),
    [
        ("vaswani_base_h1", {"h", "d_k", "d_v"}),
        ("vaswani_base_dk16", {"d_k"}),
        ("vaswani_base_n2", {"N"}),
        ("vaswani_base_d1024", {"d_model", "d_k", "d_v"}),
        ("vaswani_base_ff4096", {"d_ff"}),
        ("vaswani_base_dropout02", {"dropout"}),
        ("vaswani_base_learned_positions", {"positions"}),
        ("vaswani_tiny", {"N", "d_model", "d_ff", "h", "d_k", "d_v", "dropout"}),
    ],
)
def test_rows_of_table_3_differ_from_base_in_what_they_change(
    base: Mapping[str, Any], architecture: str, names: set[str]
) -> None:
    result = changed(base, "model", **ARCHITECTURES[architecture])
    assert result.paper.name == "base"
    assert differing(result) == names


@pytest.mark.parametrize(
    ("part", "setting", "this", "name", "shown"),
    [
        ("model", "share_embeddings", "decoder", "embeddings", "two: source; target and softmax"),
        ("model", "share_embeddings", "none", "embeddings", "three"),
        ("model", "attention_bias", True, "attention biases", "zero at first"),
        ("model", "attention_dropout", 0.1, "attention dropout", 0.1),
        ("model", "activation_dropout", 0.1, "activation dropout", 0.1),
        ("criterion", "label_smoothing", 0.0, "label smoothing", 0.0),
        ("optimizer", "_name", "sgd", "optimiser", "sgd"),
        ("optimizer", "adam_betas", "(0.9, 0.999)", "betas", "0.9, 0.999"),
        ("optimizer", "adam_betas", [0.9, 0.999], "betas", "0.9, 0.999"),
        ("optimizer", "adam_eps", 1e-8, "epsilon", 1e-8),
        ("optimizer", "weight_decay", 1e-4, "weight decay", 1e-4),
        ("optimization", "clip_norm", 25.0, "clipping", 25.0),
        ("lr_scheduler", "warmup_updates", 8000, "warm-up", 8000),
        ("lr_scheduler", "lr_factor", 2.0, "rate factor", 2.0),
        ("lr_scheduler", "_name", "fixed", "learning rate", "fixed"),
        ("optimization", "max_update", 0, "updates", "no end"),
        ("checkpoint", "save_interval_updates", 0, "checkpoint every", "an epoch"),
        ("checkpoint", "keep_interval_updates", 4, "checkpoints kept", 4),
        ("task", "length_penalty_alpha", 1.0, "length penalty", "((5 + n) / 6)^1"),
    ],
)
def test_each_setting_is_a_difference_of_its_own(
    base: Mapping[str, Any], part: str, setting: str, this: Any, name: str, shown: Any
) -> None:
    result = changed(base, part, **{setting: this})
    assert differing(result) == {name}
    assert value(result, name) == shown


def test_stock_fairseq() -> None:
    result = audit(from_arguments(STOCK))
    assert result.paper.name == "base"
    values = {detail.name: detail.value for detail in result.differences}
    assert values == {
        "embeddings": "three",
        "attention biases": "random at first",
        "positions": "sines, then cosines, from 2",
        "betas": "0.9, 0.999",
        "epsilon": 1e-8,
        "clipping": 25.0,
        "rate factor": pytest.approx(5e-4 / (512 * 4000) ** -0.5, rel=1e-3),
        "first update's number": 0,
        "updates": "no end",
        "checkpoint every": "an epoch",
        "beam": 5,
        "length penalty": "n^1",
        "longest output": "0 x input + 200",
        "end of search": "as many finished as beam",
    }


def test_stock_settings_that_make_it_another_model() -> None:
    flags = ("--encoder-normalize-before", "--share-all-embeddings", "--decoder-layers", "3", "--no-scale-embedding")
    result = audit(from_arguments([*STOCK, *flags, "--activation-fn", "gelu", "--encoder-learned-pos", "--lr", "7e-4"]))
    values = {detail.name: detail.value for detail in result.differences if detail.group == "architecture"}
    assert values == {
        "N": "6 / 3",
        "embedding scale": "1",
        "attention biases": "random at first",
        "positions": "learned",
        "layer norm": "before each sub-layer",
        "activation": "gelu",
    }
    # 7e-4 is the base model's peak of 6.988e-4 to its digits.
    assert "rate factor" not in differing(result)


def test_another_kind_of_model_is_one_difference() -> None:
    result = audit_subject(["binary", "--arch", "lstm", "--batch-size", "80"])
    assert [detail.value for detail in result.details if detail.group == "architecture"] == ["lstm"]
    assert value(result, "label smoothing") == 0
    assert value(result, "optimiser") == "none"
    assert value(result, "source tokens") == "not known"


@pytest.mark.parametrize(
    ("tokens", "batches", "workers", "same"),
    [(4096, [7], 1, True), (4096, [1], 8, True), (3584, [1], 8, True), (4096, [1], 1, False), (4096, [16], 8, False)],
)
def test_tokens_of_an_update_from_the_settings(
    base: Mapping[str, Any], tokens: int, batches: list[int], workers: int, same: bool
) -> None:
    parts = {**base, "distributed_training": {"distributed_world_size": workers}, "dataset": {"max_tokens": tokens}}
    parts["optimization"] = {**base["optimization"], "update_freq": batches}
    result = audit(Configuration("run", parts))
    for side in ("source", "target"):
        (detail,) = [each for each in result.details if each.name == f"{side} tokens"]
        assert (detail.value, detail.same) == (f"at most {tokens * batches[0] * workers:,}", same)
        assert detail.note.startswith(f"--max-tokens {tokens} x --update-freq {batches[0]} x {workers} worker")


def test_what_a_run_has_logged_goes_before_its_settings(base: Mapping[str, Any]) -> None:
    progress = Progress(updates=100_000, source_tokens=19_000.4, target_tokens=29_999.6, averaged=5)
    result = audit(Configuration("run", base), progress)
    assert (value(result, "source tokens"), value(result, "target tokens")) == (19_000, 30_000)
    assert differing(result) == {"source tokens"}


def test_an_unfinished_and_unaveraged_run_is_not_the_papers(base: Mapping[str, Any]) -> None:
    result = audit(Configuration("run", base), Progress(updates=4500, averaged=1))
    assert differing(result) == {"updates", "checkpoints averaged"}
    assert [detail.note for detail in result.differences] == ["of 100,000", ""]
