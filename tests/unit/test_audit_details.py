"""The audit against the paper's numbers, written down here once more."""

import copy
import json
import math
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from vaswani_plugin import cli
from vaswani_plugin.audit.comparison import Audit, audit, audit_subject
from vaswani_plugin.audit.configuration import Configuration, from_arguments
from vaswani_plugin.audit.progress import Progress, read_progress
from vaswani_plugin.models.architectures import ARCHITECTURES

PAPER = (
    *("binary", "--task", "vaswani_translation", "--criterion", "vaswani_label_smoothing"),
    *("--lr-scheduler", "vaswani_inverse_sqrt", "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)"),
    *("--adam-eps", "1e-9", "--max-tokens", "4096", "--update-freq", "7", "--distributed-world-size", "1"),
)
BASE = ("--arch", "vaswani_base", "--max-update", "100000", "--save-interval-updates", "1500")
BIG = ("--max-update", "300000", "--save-interval-updates", "600", "--keep-interval-updates", "20")
STOCK = (
    *("binary", "--arch", "transformer_wmt_en_de", "--task", "translation", "--optimizer", "adam"),
    *("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1", "--lr-scheduler", "inverse_sqrt"),
    *("--lr", "5e-4", "--warmup-updates", "4000", "--clip-norm", "25", "--max-tokens", "3584"),
    *("--distributed-world-size", "8"),
)
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


def differing(result: Audit) -> set[str]:
    return {detail.name for detail in result.differences}


def value(result: Audit, name: str) -> Any:
    (found,) = [detail.value for detail in result.details if detail.name == name]
    return found


@pytest.fixture(scope="module")
def base() -> Mapping[str, Any]:
    """The parts of the configuration that fairseq-train makes of the paper's base arguments."""
    return from_arguments([*PAPER, *BASE])._all


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


METRICS = {
    "default": [
        (10, "loss", "AverageMeter", {"val": torch.tensor(2.0), "sum": torch.tensor(9.0), "count": 3, "round": 3}),
        (180, "wpb", "AverageMeter", {"val": 150, "sum": 600, "count": 4, "round": 1}),
        (181, "src_wpb", "AverageMeter", {"val": 130, "sum": torch.tensor(500.0), "count": 4, "round": 1}),
    ]
}


def test_progress_is_read_from_what_fairseq_saves() -> None:
    state = {"optimizer_history": [{"num_updates": 4}], "extra_state": {"metrics": METRICS}}
    assert read_progress(state, averaged=True) == Progress(4, 125.0, 150.0, 1)
    state["extra_state"]["averaged"] = [{"file": "a", "num_updates": 2}, {"file": "b", "num_updates": 4}]
    assert read_progress(state, averaged=True).averaged == 2
    assert read_progress(state, averaged=False).averaged is None


@pytest.mark.parametrize(
    "extra", [None, [], {"metrics": 3}, {"metrics": {"default": 3}}, {"metrics": {"default": [(1, "wpb", "", {})]}},
              {"metrics": {"default": [(1, "wpb", "", {"sum": 1, "count": 0}), 7]}}]
)  # fmt: skip
def test_progress_without_metrics(extra: Any) -> None:
    state = {"optimizer_history": [{"num_updates": 4}], "extra_state": extra}
    assert read_progress(state, averaged=False) == Progress(4)


def save(path: Path, config: Any, **others: Any) -> Path:
    state = {"model": {"w": torch.zeros(2)}, "optimizer_history": [{"num_updates": 100_000}], **others}
    torch.save({**state, **config}, path)
    return path


def test_checkpoints_of_today_and_of_before_configurations(tmp_path: Path, base: Mapping[str, Any]) -> None:
    averaged = {"averaged": [{"file": f"{n}.pt", "num_updates": n} for n in range(5)], "metrics": METRICS}
    path = save(tmp_path / "averaged.pt", {"cfg": base}, extra_state=averaged)
    for subject in (path, tmp_path):
        result = audit_subject([str(subject)])
        assert result.subject == str(path)
        assert differing(result) == {"source tokens", "target tokens"}
    stock = from_arguments(STOCK)
    parts = ("optimization", "checkpoint", "dataset", "optimizer", "lr_scheduler", "criterion")
    flat = {name: setting for part in parts for name, setting in stock._all[part].items()}
    flat.update(vars(stock._all["model"]), arch="transformer_wmt_en_de", task="translation", optimizer="adam")
    flat.update(criterion="label_smoothed_cross_entropy", lr_scheduler="inverse_sqrt", distributed_world_size=8)
    save(tmp_path / "old.pt", {"args": Namespace(**flat)})
    new = save(tmp_path / "new.pt", {"cfg": stock._all})
    old, today = audit_subject([str(tmp_path / "old.pt")]), audit_subject([str(new)])
    assert old.details == today.details
    assert "rate factor" in differing(old)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "does not say with what settings it was trained"),
        ({"cfg": [1]}, "does not say with what settings it was trained"),
        ({"cfg": {"model": {"_name": "vaswani_base"}, "optimization": {}}}, "model.d_model is None,"),
        ({"args": Namespace(arch="vaswani_base", d_model="wide", num_heads=1)}, "model.d_model is 'wide'"),
        ({"args": Namespace(arch="x", optimizer="adam", adam_betas=[None])}, "optimizer.adam_betas is [None],"),
        ({"args": Namespace(arch="x", clip_norm=math.inf)}, "optimization.clip_norm is inf,"),
        ({"args": Namespace(arch="x", clip_norm=10**400)}, "optimization.clip_norm is 1000"),
        ({"args": Namespace(arch="x", max_tokens=1, update_freq=[])}, "optimization.update_freq is [],"),
        ({"args": Namespace(arch="x", max_tokens=1, update_freq="[nan]")}, "optimization.update_freq is '[nan]',"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    tmp_path: Path, config: Any, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(tmp_path / "x.pt", config)
    assert cli.main(["audit", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"vaswani audit: {path}")
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_names_are_fit_to_be_printed(tmp_path: Path) -> None:
    result = audit_subject([str(save(tmp_path / "x.pt", {"args": Namespace(arch="a\x1b[31m\n" + "b" * 99)}))])
    assert value(result, "model") == "a?[31m?" + "b" * 53


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--", "binary", "--arch", "none"], "fairseq-train refuses the arguments: argument --arch/-a: invalid choice"),
        (["--", "binary", "--arch", "vaswani_base", "--sparse"], "fairseq-train refuses the arguments: unrecognized"),
        (["--", "binary", "--arch", "vaswani_base", "--update-freq", "x"], "fairseq-train refuses the arguments: argu"),
        (["--", "binary", "--arch", "vaswani_base", "--dropout", "x"], "fairseq-train refuses the arguments: argument"),
        (["one.pt", "two.pt"], "give one checkpoint or one run's folder, or fairseq-train's arguments after --"),
        (["no.pt"], "no.pt: No such file or directory"),
        (["."], ". has no checkpoint: give a recipe's folder, or fairseq-train's --save-dir"),
    ],
)
def test_what_cannot_be_audited_is_said(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["audit", *words]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"vaswani audit: {message}")
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_strict_makes_a_difference_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--strict", "--", *PAPER, *BASE, "--user-dir", "elsewhere/vaswani_plugin"]
    assert cli.main(["audit", *arguments]) == 0
    assert cli.main(["audit", *arguments, "--dropout", "0.3"]) == 1
    captured = capsys.readouterr()
    assert captured.err == "vaswani audit: the arguments: not the paper's training, but another in dropout\n"
    assert cli.main(["audit", *arguments[1:], "--dropout", "0.3"]) == 0


def test_table_and_json_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--", *PAPER, *BASE, "--dropout", "0.3"]
    assert cli.main(["audit", "--json", *arguments]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["subject"], told["model"], told["differences"]) == ("the arguments", "base", 1)
    assert cli.main(["audit", *arguments]) == 0
    header, *rows, summary = capsys.readouterr().out.rstrip("\n").split("\n")
    assert header.split("  ")[-1] == "why it matters"
    assert summary == "the arguments: 1 of 34 details differ"
    for row, detail in zip(rows, told["details"], strict=True):
        name, paper, this, verdict, why = [cell.strip() for cell in row.split("  ") if cell]
        assert (name, why) == (detail["name"], detail["why"])
        assert paper.endswith(f"({detail['section']})")
        assert verdict == {True: "same", False: "DIFFERENT", None: "not told"}[detail["same"]]
        assert this
    (different,) = [row for row in rows if "DIFFERENT" in row]
    assert different.split()[:4] == ["dropout", "0.1", "(5.4)", "0.3"]


def test_lines_for_the_log_put_the_architecture_together(base: Mapping[str, Any]) -> None:
    parts = {**base, "model": {**base["model"], "d_ff": 1024, "d_v": 32, "dropout": 0.3}}
    parts["dataset"] = {"max_tokens": 1000}
    parts["checkpoint"] = {**base["checkpoint"], "save_interval_updates": 20_000}
    assert list(audit(Configuration("run", parts)).log_lines()) == [
        "d_ff 1024, not 2048; d_v 32, not 64, as in the paper's base model (3.2.2, 3.3)",
        "dropout 0.3, the paper 0.1 (5.4)",
        "source tokens at most 7,000, not about 25,000; target tokens at most 7,000, not about 25,000, as in the paper "
        "(5.1)",
        "checkpoint every 20,000, the paper 1500 (6.1)",
    ]
