"""scripts/benchmark.py: its rows, and ratios that follow from the figures beside them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "benchmark.py"


def benchmark(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("work", "unit", "counts"),
    [("loss", "pass", {"target_tokens": 64}), ("train", "update", {"target_tokens": None})],
)
def test_rows(work: str, unit: str, counts: "dict[str, int]", tmp_path: Path) -> None:
    output = tmp_path / "rows.json"
    result = benchmark(work, "--rounds", "1", "--tokens", "64", "--peers", "stock", "--json", str(output))
    assert result.returncode == 0, result.stderr
    rows = {row["metric"]: row for row in json.loads(output.read_text())}
    rate = "target_tokens_per_second"
    assert set(rows) == {f"seconds_per_{unit}", rate, "peak_megabytes", "added_megabytes"}
    for row in rows.values():
        assert (row["work"], row["size"], row["precision"], row["peer"]) == (work, "tiny", "float32", "stock")
    seconds = rows[f"seconds_per_{unit}"]
    assert seconds["speed_ratio"] == pytest.approx(seconds["other"] / seconds["plugin"])
    assert rows[rate]["speed_ratio"] == pytest.approx(rows[rate]["plugin"] / rows[rate]["other"])
    for memory in (rows["peak_megabytes"], rows["added_megabytes"]):
        assert memory["memory_ratio"] == pytest.approx(memory["plugin"] / memory["other"])
        assert memory["plugin"] > 0
    # What a turn adds is what is beyond the imports and the model.
    assert rows["added_megabytes"]["plugin"] < rows["peak_megabytes"]["plugin"]
    tokens = rows[rate]["plugin"] * seconds["plugin"]
    # Whole sentences of about 17 tokens, as many as come closest.
    assert tokens == pytest.approx(counts["target_tokens"] or 64, rel=0.25)
    if work == "train":
        assert "% of the machine's best for float32" in result.stdout


def test_unknown_peers_are_named() -> None:
    result = benchmark("loss", "--peers", "marian")
    assert result.returncode == 2
    assert "--peers marian: loss knows stock" in result.stderr


def test_sentences_of_one_length_are_for_training(tmp_path: Path) -> None:
    result = benchmark("decode", "--same-length")
    assert result.returncode == 2
    assert "--same-length is for train, not for decode" in result.stderr
    output = tmp_path / "rows.json"
    flags = ("--same-length", "--rounds", "1", "--tokens", "170", "--peers", "stock", "--json", str(output))
    assert benchmark("train", *flags).returncode == 0
    rows = {row["metric"]: row for row in json.loads(output.read_text())}
    # Ten sentences of 16 tokens and </s>, no more and no less.
    tokens = rows["target_tokens_per_second"]["plugin"] * rows["seconds_per_update"]["plugin"]
    assert tokens == pytest.approx(170)


def test_int8_is_for_decoding() -> None:
    result = benchmark("train", "--precision", "int8")
    assert result.returncode == 2
    assert "--precision int8 is for decode, not for train" in result.stderr
