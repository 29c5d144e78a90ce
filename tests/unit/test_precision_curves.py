"""The table of the loss curves, from logs with curves that are known."""

import json
from pathlib import Path

import pytest
from benchmarks import precision_curves

OFFSETS = {("float32", 1): 0.0, ("float32", 2): 0.25, ("bfloat16", 1): 0.5, ("bfloat16", 2): 1.0}


def write_log(path: Path, offset: float) -> None:
    """nll = 10 - updates / 100 + offset in training, half of it in validation, as fairseq's JSON log has them."""
    lines = []
    for update in range(25, 201, 25):
        nll = 10 - update / 100 + offset
        lines.append(("train_inner", {"num_updates": str(update), "nll_loss": f"{nll:.3f}"}))
        if update % 100 == 0:
            lines.append(("valid", {"valid_num_updates": str(update), "valid_nll_loss": f"{nll / 2:.3f}"}))
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"2026-01-01 00:00:00 | INFO | {name} | {json.dumps(values)}\n" for name, values in lines))


def test_the_table_is_the_curves_and_their_differences(tmp_path: Path) -> None:
    for (precision, seed), offset in OFFSETS.items():
        write_log(tmp_path / f"{precision}-seed{seed}" / "checkpoints" / "train.log", offset)
    runs = precision_curves.read(tmp_path)
    rows = [line.strip("| ").split(" | ") for line in precision_curves.table(runs)[2:]]
    # The mean of four logged values, 0.375 above the last: 10 - 1 + 0.375.
    assert rows == [
        ["training", "100", "9.375", "9.625", "9.875", "10.375", "0.250", "+0.625"],
        ["training", "200", "8.375", "8.625", "8.875", "9.375", "0.250", "+0.625"],
        ["development", "100", "4.500", "4.625", "4.750", "5.000", "0.125", "+0.312"],
        ["development", "200", "4.000", "4.125", "4.250", "4.500", "0.125", "+0.312"],
    ]
    precision_curves.draw(runs, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_seed_alone_tells_nothing(tmp_path: Path) -> None:
    for precision in precision_curves.PRECISIONS:
        write_log(tmp_path / f"{precision}-seed1" / "checkpoints" / "train.log", 0.0)
    with pytest.raises(SystemExit, match="the same two seeds or more"):
        precision_curves.read(tmp_path)
