"""What is audited, checkpoints above all, and how the result is shown."""

import json
import math
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from audited import BASE, PAPER, STOCK, differing, papers_base, value

from vaswani_plugin import cli
from vaswani_plugin.audit.comparison import audit, audit_subject
from vaswani_plugin.audit.configuration import Configuration, from_arguments
from vaswani_plugin.audit.progress import Progress, read_progress


@pytest.fixture
def base() -> Mapping[str, Any]:
    return papers_base()


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
