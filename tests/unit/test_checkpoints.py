"""Averaging and safe reading of checkpoints, on files with numbers that can be averaged by hand."""

import os
import random
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from vaswani_plugin import cli
from vaswani_plugin.checkpoints.averaging import average_checkpoints, select_checkpoints
from vaswani_plugin.checkpoints.reading import num_updates, read_checkpoint


def save(path: Path, value: float, updates: int, tied: bool = True, **parameters: torch.Tensor) -> Path:
    matrix = torch.full((3, 2), value)
    model = {"encoder.weight": matrix, "decoder.weight": matrix if tied else matrix.clone(), **parameters}
    model["steps"] = torch.tensor(updates)
    state = {
        "args": None,
        "cfg": {"model": {"_name": "vaswani_tiny"}, "updates": updates},
        "model": model,
        "optimizer_history": [{"num_updates": updates}],
        "extra_state": {"train_iterator": {"epoch": 1}},
        "last_optimizer_state": {"state": {}},
    }
    torch.save(state, path)
    return path


def run_directory(tmp_path: Path, updates: "list[int]", last: int) -> Path:
    for update in updates:
        save(tmp_path / f"checkpoint_1_{update}.pt", float(update), update)
    save(tmp_path / "checkpoint_last.pt", float(last), last)
    save(tmp_path / "checkpoint_best.pt", 0.0, 1)
    return tmp_path


def test_mean_by_hand_and_tied_stays_tied(tmp_path: Path) -> None:
    paths = [save(tmp_path / f"{n}.pt", value, n) for n, value in ((1, 1.0), (2, 2.0), (3, 6.0))]
    average_checkpoints(paths, tmp_path / "sub" / "mean.pt")
    state = read_checkpoint(tmp_path / "sub" / "mean.pt")
    model = state["model"]
    assert model["encoder.weight"].tolist() == [[3.0, 3.0]] * 3
    assert model["encoder.weight"].dtype == torch.float32
    assert model["encoder.weight"].data_ptr() == model["decoder.weight"].data_ptr()
    assert model["steps"].item() == 3
    assert state["cfg"]["updates"] == 3
    assert "last_optimizer_state" not in state
    assert [source["num_updates"] for source in state["extra_state"]["averaged"]] == [1, 2, 3]
    assert os.listdir(tmp_path / "sub") == ["mean.pt"]


def test_settings_come_from_the_newest_whatever_the_order(tmp_path: Path) -> None:
    paths = [save(tmp_path / f"{n}.pt", 0.0, n) for n in (5, 9, 7)]
    average_checkpoints(paths, tmp_path / "mean.pt")
    assert read_checkpoint(tmp_path / "mean.pt")["cfg"]["updates"] == 9


def test_half_precision_is_averaged_without_rounding_back(tmp_path: Path) -> None:
    halves = [torch.tensor([1.0], dtype=torch.float16), torch.tensor([1.0009765625], dtype=torch.float16)]
    paths = [save(tmp_path / f"{n}.pt", 0.0, n, extra=half) for n, half in enumerate(halves)]
    average_checkpoints(paths, tmp_path / "mean.pt")
    assert read_checkpoint(tmp_path / "mean.pt")["model"]["extra"].item() == 1.00048828125


def test_sums_are_float64(tmp_path: Path) -> None:
    """In float32 1 + 2^-24 is 1, twice over; the mean of the three is (1 + 2^-23) / 3."""
    paths = [save(tmp_path / f"{n}.pt", value, n) for n, value in enumerate((1.0, 2.0**-24, 2.0**-24))]
    average_checkpoints(paths, tmp_path / "mean.pt")
    mean = read_checkpoint(tmp_path / "mean.pt")["model"]["encoder.weight"]
    expected = torch.tensor((1 + 2.0**-23) / 3, dtype=torch.float64).float()
    assert expected.item() != torch.tensor(1 / 3).item()
    assert (mean == expected).all()


def test_one_checkpoint_is_its_own_mean(tmp_path: Path) -> None:
    path = save(tmp_path / "1.pt", 0.1, 1)
    average_checkpoints([path], tmp_path / "mean.pt")
    assert torch.equal(
        read_checkpoint(tmp_path / "mean.pt")["model"]["encoder.weight"],
        read_checkpoint(path)["model"]["encoder.weight"],
    )


def test_last_checkpoint_counts_when_it_is_the_newest(tmp_path: Path) -> None:
    names = [p.name for p in select_checkpoints(run_directory(tmp_path, [90, 100, 80], last=107), 3, "updates")]
    assert names == ["checkpoint_1_90.pt", "checkpoint_1_100.pt", "checkpoint_last.pt"]


def test_last_checkpoint_is_not_counted_twice(tmp_path: Path) -> None:
    names = [p.name for p in select_checkpoints(run_directory(tmp_path, [90, 100, 80], last=100), 3, "updates")]
    assert names == ["checkpoint_1_80.pt", "checkpoint_1_90.pt", "checkpoint_1_100.pt"]


def test_epochs_are_ordered_by_number(tmp_path: Path) -> None:
    for epoch in (9, 10, 11):
        save(tmp_path / f"checkpoint{epoch}.pt", 0.0, epoch)
    save(tmp_path / "checkpoint_9_9.pt", 0.0, 9)
    assert [p.name for p in select_checkpoints(tmp_path, 2, "epochs")] == ["checkpoint10.pt", "checkpoint11.pt"]


def test_too_few_checkpoints(tmp_path: Path) -> None:
    run_directory(tmp_path, [10, 20], last=20)
    with pytest.raises(ValueError, match=r"2 checkpoints by updates .*fewer than --last 5: lower it, or train with"):
        select_checkpoints(tmp_path, 5, "updates")


def parameters_of(kind: str) -> "dict[str, Any]":
    return {
        "missing": {},
        "renamed": {"other": torch.zeros(2)},
        "shape": {"extra": torch.zeros(3)},
        "type": {"extra": torch.zeros(2, dtype=torch.float16)},
        "tying": {"extra": torch.zeros(2), "tied": False},
    }[kind]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("missing", r"a\.pt has a parameter extra and .*b\.pt has none"),
        ("renamed", r"has a parameter extra and .* has none"),
        ("shape", r"extra is 2 float32 in .*a\.pt and 3 float32 in .*b\.pt"),
        ("type", r"extra is 2 float32 in .*a\.pt and 2 float16 in .*b\.pt"),
        ("tying", r"b\.pt ties other parameters"),
    ],
)
def test_different_models_are_refused(tmp_path: Path, kind: str, message: str) -> None:
    a = save(tmp_path / "a.pt", 1.0, 1, extra=torch.zeros(2))
    b = save(tmp_path / "b.pt", 1.0, 2, **parameters_of(kind))
    with pytest.raises(ValueError, match=message):
        average_checkpoints([a, b], tmp_path / "mean.pt")
    assert sorted(os.listdir(tmp_path)) == ["a.pt", "b.pt"]


def test_named_twice_or_overwritten(tmp_path: Path) -> None:
    a = save(tmp_path / "a.pt", 1.0, 1)
    with pytest.raises(ValueError, match="is named twice"):
        average_checkpoints([a, tmp_path / "." / "a.pt"], tmp_path / "mean.pt")
    with pytest.raises(ValueError, match="is one of the checkpoints to average"):
        average_checkpoints([a], a)


def test_heads_are_the_one_size_that_shapes_do_not_show(tmp_path: Path) -> None:
    paths = []
    for heads in (8, 4):
        paths.append(save(tmp_path / f"h{heads}.pt", 1.0, heads))
        state = torch.load(paths[-1])
        state["cfg"]["model"]["num_heads"] = heads
        torch.save(state, paths[-1])
    with pytest.raises(ValueError, match=r"h8\.pt has 8 attention heads and .*h4\.pt 4: they are of different"):
        average_checkpoints(paths, tmp_path / "mean.pt")
    assert not (tmp_path / "mean.pt").exists()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("place", [0, 1])
def test_weights_that_are_no_numbers_are_refused(tmp_path: Path, value: float, place: int) -> None:
    paths = [save(tmp_path / f"{n}.pt", value if n == place else 1.0, n) for n in range(2)]
    with pytest.raises(ValueError, match=rf"{place}\.pt has NaN or infinity in encoder\.weight"):
        average_checkpoints(paths, tmp_path / "mean.pt")
    assert not (tmp_path / "mean.pt").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "--last", "2"], "nowhere is not a folder"),
        (["run", "--last", "0"], "--last 0 must be at least 1"),
        (["run"], "run is a folder: give it alone, with --last N"),
        (["run", "run/a.pt", "--last", "2"], "run is a folder: give it alone, with --last N"),
        (["run/a.pt", "--by", "epochs"], "--last and --by choose from a folder"),
        (["run/a.pt", "run/missing.pt"], "run/missing.pt: No such file or directory"),
        (["run/a.pt", "run/cut.pt"], "run/cut.pt is not a whole checkpoint"),
        (["run/a.pt", "run/foreign.pt"], "run/foreign.pt holds no model weights: it is not a fairseq checkpoint"),
        (["run/a.pt", "run/nested.pt"], "run/nested.pt holds no model weights"),
        (["run", "--last", "2", "--by", "epochs"], "run has 1 checkpoints by epochs (checkpoint1.pt), fewer than"),
        (["run", "--last", "1"], "train with --save-interval-updates so that more files checkpoint_EPOCH_UPDATE.pt"),
        (["run", "--last", "1"], "are kept, or choose among its 1 of epochs with --by epochs"),
        (["run/a.pt", "--output", "run"], "--output run is a folder: give the name of a file, such as run/averaged.pt"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(
    tmp_path: Path, monkeypatch: Any, capsys: Any, arguments: "list[str]", message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run"
    run.mkdir()
    content = save(run / "a.pt", 1.0, 1).read_bytes()
    (run / "checkpoint1.pt").write_bytes(content)
    (run / "cut.pt").write_bytes(content[:-50])
    torch.save({"state_dict": {"weight": torch.zeros(2)}}, run / "foreign.pt")
    torch.save({"model": {"weight": {"nested": torch.zeros(2)}}}, run / "nested.pt")
    before = sorted(path for path in tmp_path.rglob("*"))
    assert cli.main(["average", "--output", "mean.pt", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("vaswani average: ")
    assert message in error
    assert error.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    path = save(tmp_path / "a.pt", 1.0, 1)
    (tmp_path / "mean.pt").write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Python ignores the signal, so that the write fails as on a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises((ValueError, OSError)) as raised:
            average_checkpoints([path], tmp_path / "mean.pt")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "File too large" in str(raised.value)
    assert sorted(os.listdir(tmp_path)) == ["a.pt", "mean.pt"]
    assert (tmp_path / "mean.pt").read_text() == "old"


class Malicious:
    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> Any:
        return (Path.touch, (self.witness,))


def test_a_forbidden_pickle_is_refused_and_not_run(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    torch.save({"model": {}, "extra_state": Malicious(witness)}, tmp_path / "bad.pt")
    with pytest.raises(ValueError, match=r"bad\.pt holds .*refused, nothing in it was run"):
        read_checkpoint(tmp_path / "bad.pt")
    assert not witness.exists()


def test_arrays_that_eval_bleu_keeps_are_read(tmp_path: Path) -> None:
    """fairseq's translation task logs BLEU's counts as NumPy arrays, and logged values travel in the checkpoint."""
    counts = {"sum": np.array([3, 2, 1, 0]), "val": np.array([0.5, 0.25]), "mean": np.float64(0.75)}
    torch.save({"model": {"weight": torch.ones(2)}, "extra_state": counts}, tmp_path / "checkpoint.pt")
    read = read_checkpoint(tmp_path / "checkpoint.pt")["extra_state"]
    assert (read["sum"].tolist(), read["val"].tolist(), read["mean"]) == ([3, 2, 1, 0], [0.5, 0.25], 0.75)


def test_every_flipped_bit_is_noticed_or_harmless(tmp_path: Path) -> None:
    """torch itself would load flipped weights without a word."""
    path = save(tmp_path / "a.pt", 1.0, 7, extra=torch.randn(500, generator=torch.Generator().manual_seed(1)))
    intact, content = read_checkpoint(path), path.read_bytes()
    choose = random.Random(1)
    messages: list[str] = []
    for _ in range(200):
        position, bit = choose.randrange(len(content)), choose.randrange(8)
        damaged = bytearray(content)
        damaged[position] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            state = read_checkpoint(path)
        except ValueError as error:
            messages.append(str(error))
            continue
        assert num_updates(state) == 7
        for name, tensor in intact["model"].items():
            assert torch.equal(state["model"][name], tensor)
    assert len(messages) > 50
    assert all(str(path) in message and "\n" not in message for message in messages)


@pytest.mark.parametrize("kept", [0, 1, 100, 1000, -1])
def test_truncated_file(tmp_path: Path, kept: int) -> None:
    path = save(tmp_path / "a.pt", 1.0, 7)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"a\.pt is (empty|not a whole checkpoint)"):
        read_checkpoint(path)


def test_something_else(tmp_path: Path) -> None:
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(ValueError, match="holds no model weights"):
        read_checkpoint(tmp_path / "list.pt")
