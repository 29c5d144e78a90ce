#!/usr/bin/env python3
"""Loss curves of mixed precision beside float32: a picture, and a table in Markdown.

Reads what ``examples/multi30k/run.sh`` leaves in the folders float32-seed1, bfloat16-seed1, and so on, of FOLDER. The
table holds the difference that the precision makes against the one that the seed makes.
"""

import argparse
import re
import sys
from pathlib import Path
from statistics import fmean

from vaswani_plugin.figures.drawing import load_figure_class, save
from vaswani_plugin.report.curves import points
from vaswani_plugin.report.training_log import TrainingLog, read_training_log

PRECISIONS = ("float32", "bfloat16")
_SPAN = 100
"""Updates whose training loss is averaged for one row."""

Runs = dict[str, dict[int, TrainingLog]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="with float32-seed1, bfloat16-seed1, ...: WORK of each training")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE.png")
    options = parser.parse_args()
    runs = read(options.folder)
    draw(runs, options.output)
    print("\n".join(table(runs)))
    return 0


def read(folder: Path) -> Runs:
    """The logs by precision and seed; both precisions with the same seeds, two at least."""
    runs: Runs = {precision: {} for precision in PRECISIONS}
    for path in sorted(folder.glob("*-seed*")):
        named = re.fullmatch(r"(\w+)-seed(\d+)", path.name)
        if named and named[1] in runs:
            runs[named[1]][int(named[2])] = read_training_log(path / "checkpoints" / "train.log")
    if len({tuple(seeds) for seeds in runs.values()}) != 1 or len(runs["float32"]) < 2:
        sys.exit(f"{folder} must have folders float32-seedN and bfloat16-seedN, with the same two seeds or more")
    return runs


def curve(log: TrainingLog) -> dict[str, dict[float, float]]:
    """nll in bits by update: of the development set, and of the training batches as means of :data:`_SPAN` updates."""
    spans: dict[float, list[float]] = {}
    for update, nll in points(log.training, "nll_loss"):
        spans.setdefault(-(-update // _SPAN) * _SPAN, []).append(nll)
    training = {update: fmean(values) for update, values in spans.items()}
    return {"training": training, "development": dict(points(log.validation, "nll_loss"))}


def table(runs: Runs) -> list[str]:
    """A row for each update that all runs have: every run, then the two differences."""
    curves = {name: {seed: curve(log) for seed, log in seeds.items()} for name, seeds in runs.items()}
    names = [f"{name}, seed {seed}" for name, seeds in runs.items() for seed in seeds]
    heads = ["nll in bits", "updates", *names, "between seeds in float32", "between the precisions' means"]
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    for kind in ("training", "development"):
        everything = [curves[name][seed][kind] for name in runs for seed in runs[name]]
        for update in sorted(set.intersection(*(set(each) for each in everything))):
            values = {name: [seed[kind][update] for seed in curves[name].values()] for name in runs}
            between_seeds = max(values["float32"]) - min(values["float32"])
            between_precisions = fmean(values["bfloat16"]) - fmean(values["float32"])
            cells = [f"{value:.3f}" for name in runs for value in values[name]]
            differences = [f"{between_seeds:.3f}", f"{between_precisions:+.3f}"]
            lines.append(f"| {' | '.join([kind, f'{update:,.0f}', *cells, *differences])} |")
    return lines


def draw(runs: Runs, path: Path) -> None:
    figure = load_figure_class()(figsize=(9, 4), dpi=110, layout="constrained")
    for axis, kind in zip(figure.subplots(1, 2), ("training", "development")):
        for color, (precision, seeds) in enumerate(runs.items()):
            for style, (seed, log) in zip(("-", "--", ":", "-."), seeds.items()):
                values = sorted(curve(log)[kind].items())
                # The first wide and pale, to be seen under the others where they are the same.
                look = {"color": f"C{color}", "linewidth": 4 - 3 * color, "alpha": 0.4 + 0.6 * color}
                axis.plot(*zip(*values), style, **look, label=f"{precision}, seed {seed}")
        axis.set_xlabel("updates")
        axis.set_ylabel(f"{kind} nll, bits")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    save(figure, path)


if __name__ == "__main__":
    sys.exit(main())
