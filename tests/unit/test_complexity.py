"""The complexity example: fits and crossings of known curves, counted operations, and the recipe on tiny sizes."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from example_scripts import load
from torch.utils.flop_counter import FlopCounterMode

EXAMPLE = Path(__file__).parents[2] / "examples" / "complexity"


@pytest.fixture(scope="module")
def example():
    return load("complexity", "measure"), load("complexity", "summary")


def curve(of, lengths=(64, 128, 256, 512, 1024)):
    return [(n, of(n)) for n in lengths]


def test_the_exponent_of_a_power_law(example) -> None:
    _, summary = example
    assert summary.exponent(curve(lambda n: 3e-7 * n**1.7)) == pytest.approx(1.7)
    # n^2 d beside 2 n d^2 has the slope 2 n / (n + 2 d) + 2 d / (n + 2 d) between close lengths.
    close = curve(lambda n: n**2 * 512 + 2 * n * 512**2, (1000, 1001))
    assert summary.exponent(close) == pytest.approx((2 * 1000.5 + 1024) / (1000.5 + 1024), rel=1e-4)
    assert [n for n, _ in summary.longer_half(curve(float))] == [256, 512, 1024]


def test_curves_cross_where_their_laws_say(example) -> None:
    _, summary = example
    square, straight = curve(lambda n: 2.0 * n**2), curve(lambda n: 800.0 * n)
    assert summary.crossings(square, straight) == pytest.approx([400])
    assert summary.crossings(straight, square) == pytest.approx([400])
    assert summary.crossings(square, curve(lambda n: 512.0 * n)) == pytest.approx([256])
    assert summary.crossings(square, curve(lambda n: 1.0 * n)) == []


@pytest.mark.parametrize("layer", ["self-attention", "convolution"])
def test_operations_are_torchs_own_count(example, layer: str) -> None:
    """torch counts two operations for a multiplication and its addition."""
    measure, summary = example
    _, forward = measure.LAYERS[layer](64)
    with FlopCounterMode(display=False) as counter:
        forward(torch.randn(1, 24, 64))
    assert counter.get_total_flops() == 2 * summary.COUNTS[layer](24, 64)


def test_the_lstms_matrices_are_eight_of_d_by_d(example) -> None:
    measure, summary = example
    module, _ = measure.LAYERS["recurrent"](64)
    assert sum(weight.numel() for weight in module.parameters() if weight.dim() == 2) == summary.COUNTS["recurrent"](
        1, 64
    )


def run(work: Path, **settings: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "WORK": str(work), "VENV": sys.prefix, "OMP_NUM_THREADS": "1", **settings}
    return subprocess.run(
        ["bash", str(EXAMPLE / "run.sh")], env=environment, capture_output=True, text=True, check=False
    )


def test_the_recipe_on_tiny_sizes(tmp_path: Path) -> None:
    result = run(tmp_path / "work", LENGTHS="8 16 1024", D_MODEL="16")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "work" / "complexity.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    summary = json.loads((tmp_path / "work" / "complexity.json").read_text())
    rows = {(row["layer"], row["n"]): row for row in summary["measured"]}
    assert len(rows) == 4 * 3
    assert all(row["seconds"] > 0 and row["d"] == 16 for row in rows.values())
    # Eight matrices of weights of 1024 x 1024 in float32, which nothing but the written-out formula has.
    matrix = 8 * 1024**2 * 4
    assert rows["self-attention", 1024]["bytes"] >= matrix > rows["convolution", 1024]["bytes"]
    # 4 d^2 n + 2 n^2 d between n = 16 and n = 1024 at d = 16.
    counted = summary["layers"]["self-attention"]["exponent_counted"]
    assert counted == pytest.approx(1 + math.log((64 + 2 * 1024) / (64 + 2 * 16), 64))
    assert "recurrent (LSTM)" in result.stdout
    assert summary["layers"]["recurrent"]["sequential_operations"] == "n"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"LENGTHS": "64"}, "LENGTHS='64' are too few for a curve"),
        ({"LENGTHS": "64 many"}, "LENGTH=many is not a whole number"),
        ({"D_MODEL": "12"}, "D_MODEL=12 is not a multiple of 8"),
    ],
)
def test_mistakes_end_in_a_sentence(settings: "dict[str, str]", message: str, tmp_path: Path) -> None:
    result = run(tmp_path / "work", **settings)
    assert result.returncode == 1
    assert message in result.stderr
    assert not (tmp_path / "work").exists()
