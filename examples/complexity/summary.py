"""Fits, crossings, table and picture of what measure.py measured.

Usage: python summary.py MEASURED.jsonl OUTPUT     (writes OUTPUT/complexity.json and OUTPUT/complexity.png)
"""

import json
import math
import os
import platform
import sys
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

KERNEL = 3
NAMES = {
    "self-attention": "self-attention",
    "self-attention-fused": "self-attention, fused",
    "recurrent": "recurrent (LSTM)",
    "convolution": f"convolution (k = {KERNEL})",
}
PER_LAYER = {"self-attention": "n^2 d", "self-attention-fused": "n^2 d", "recurrent": "n d^2", "convolution": "k n d^2"}
"""Table 1. It counts what grows, and leaves out attention's four projections, which are n d^2."""
COUNTS: dict[str, Callable[[float, float], float]] = {
    "self-attention": lambda n, d: 4 * n * d**2 + 2 * n**2 * d,
    "self-attention-fused": lambda n, d: 4 * n * d**2 + 2 * n**2 * d,
    "recurrent": lambda n, d: 8 * n * d**2,
    "convolution": lambda n, d: KERNEL * n * d**2,
}
"""Multiplications of the forward pass of the layers as measured; an LSTM has 8 matrices of d x d."""

Curve = Sequence[tuple[float, float]]


def exponent(curve: Curve) -> float:
    """p of the power law c n^p that fits best in logarithms, by least squares."""
    xs, ys = [math.log(n) for n, _ in curve], [math.log(value) for _, value in curve]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys)) / sum((x - x_mean) ** 2 for x in xs)


def longer_half(curve: Curve) -> Curve:
    """Where the growing terms rule: the upper half of the lengths, at least two."""
    return curve[-max(2, (len(curve) + 1) // 2) :]


def crossings(one: Curve, other: Curve) -> list[float]:
    """Lengths at which two curves over the same lengths cross, each a power law between neighbours."""
    found = []
    pairs = [(math.log(n), math.log(a / b)) for (n, a), (_, b) in zip(one, other)]
    for (x0, y0), (x1, y1) in pairwise(pairs):
        if y0 == 0 or y0 * y1 < 0:
            found.append(math.exp(x0 + (x1 - x0) * y0 / (y0 - y1)) if y0 else math.exp(x0))
    return found


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Everything that complexity.json holds."""
    width = rows[0]["d"]
    curves: dict[str, Curve] = {
        layer: sorted((row["n"], row["seconds"]) for row in rows if row["layer"] == layer) for layer in NAMES
    }
    layers = {}
    for layer, curve in curves.items():
        half = longer_half(curve)
        layers[layer] = {
            "table_1": PER_LAYER[layer],
            "sequential_operations": "n" if layer == "recurrent" else "1",
            "exponent": exponent(half),
            "exponent_counted": exponent([(n, COUNTS[layer](n, width)) for n, _ in half]),
            "exponent_over": [half[0][0], half[-1][0]],
        }
    crossed = [
        {"layers": [one, other], "n": crossings(curves[one], curves[other])} for one, other in combinations(NAMES, 2)
    ]
    return {"d": width, "machine": machine(rows), "layers": layers, "crossings": crossed, "measured": rows}


def machine(rows: list[dict[str, Any]]) -> str:
    import torch

    if rows[0]["device"] == "cuda":
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    return (
        f"{torch.get_num_threads()} threads on {os.cpu_count()} cores, {platform.machine()}, torch {torch.__version__}"
    )


def table(result: dict[str, Any]) -> str:
    lengths = sorted({row["n"] for row in result["measured"]})
    cells = {(row["layer"], row["n"]): row for row in result["measured"]}
    start, end = result["layers"]["recurrent"]["exponent_over"]
    head = f"{'':<24}" + "".join(f"{f'n = {n}':>10}" for n in lengths)
    lines = [
        f"a training step of one layer, d = {result['d']}, batch 1, {result['machine']}",
        f"{'milliseconds':<24}{head[24:]}",
    ]
    for layer, name in NAMES.items():
        lines.append(f"{name:<24}" + "".join(f"{1e3 * cells[layer, n]['seconds']:>10.3g}" for n in lengths))
    lines += ["", f"{'megabytes':<24}{head[24:]}"]
    for layer, name in NAMES.items():
        lines.append(f"{name:<24}" + "".join(f"{cells[layer, n]['bytes'] / 1e6:>10.0f}" for n in lengths))
    lines += [
        "",
        f"{'':<24}{'Table 1':>10}{'in turn':>10}{'time ~ n^':>12}{'operations ~ n^':>18}   (n = {start} to {end})",
    ]
    for layer, name in NAMES.items():
        fit = result["layers"][layer]
        lines.append(
            f"{name:<24}{fit['table_1']:>10}{fit['sequential_operations']:>10}"
            f"{fit['exponent']:>12.2f}{fit['exponent_counted']:>18.2f}"
        )
    lines.append("")
    for pair in result["crossings"]:
        one, other = (NAMES[layer] for layer in pair["layers"])
        where = "at " + " and ".join(f"n = {n:.0f}" for n in pair["n"]) if pair["n"] else "nowhere in between"
        lines.append(f"{one} and {other} take the same time {where}")
    return "\n".join(lines)


def draw(result: dict[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), dpi=110, layout="constrained")
    for axis, key, unit in zip(figure.subplots(1, 2), ("seconds", "bytes"), (1e3, 1e-6)):
        for number, (layer, name) in enumerate(NAMES.items()):
            rows = [row for row in result["measured"] if row["layer"] == layer and row[key] > 0]
            label = f"{name}, n^{result['layers'][layer]['exponent']:.2f}" if key == "seconds" else name
            xs, ys = [row["n"] for row in rows], [row[key] * unit for row in rows]
            axis.plot(xs, ys, marker="os^D"[number], markersize=4, label=label)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xlabel("length n")
        axis.set_ylabel("milliseconds" if key == "seconds" else "megabytes")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.axes[0].axvline(result["d"], color="grey", linestyle=":")
    figure.suptitle(f"A training step of one layer, d = {result['d']} (dotted: n = d)", fontsize=11)
    temporary = path.with_name(f"{path.name}.tmp")
    figure.savefig(temporary, format="png")
    os.replace(temporary, path)


def main() -> None:
    measured, output = Path(sys.argv[1]), Path(sys.argv[2])
    result = summarise([json.loads(line) for line in measured.read_text("utf-8").strip().split("\n")])
    temporary = output / "complexity.json.tmp"
    temporary.write_text(json.dumps(result, indent=2) + "\n", "utf-8")
    os.replace(temporary, output / "complexity.json")
    draw(result, output / "complexity.png")
    print(table(result))


if __name__ == "__main__":
    main()
