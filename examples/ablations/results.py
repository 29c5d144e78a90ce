"""Collects the rows that run.sh has trained beside the paper's: score.json, ablations.txt, ablations.png.

Usage: python results.py WORK --seeds SEED... [--rows NAME...]
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rows import ROWS, Row, chosen

from vaswani_plugin.data.text_files import replacing
from vaswani_plugin.report.training_log import read_training_log

PAPER_BASE = ROWS[0]
# Whether more is better.
MEASURES = {"perplexity": False, "bleu": True}


def measured(folder: Path) -> dict[str, float]:
    """Of one training: what its last look at the development set said, and BLEU of its translations of that set."""
    validation = read_training_log(folder / "checkpoints" / "train.log").validation
    if not validation:
        sys.exit(
            f"ablations: {folder / 'checkpoints' / 'train.log'} has no validation in it: remove {folder}, run again"
        )
    score = json.loads((folder / "score.json").read_text("utf-8"))
    return {
        "updates": validation[-1]["num_updates"],
        "perplexity": validation[-1]["ppl"],
        "bleu": score["sacrebleu"]["score"],
    }


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def direction(change: float, more_is_better: bool, noise: float = 0.0) -> str:
    """In words; a change that is not larger than ``noise`` has no direction."""
    if abs(change) <= noise:
        return "unclear" if noise else "equal"
    return "better" if (change > 0) == more_is_better else "worse"


def compare(runs: dict[str, list[dict[str, float]]], names: Sequence[Row]) -> list[dict[str, Any]]:
    """For each row and measure: mean over the seeds, range, change against the base, directions here and there.

    With several seeds, a change counts when it is larger than the range of the base and that of the row.
    """
    table = []
    for row in names:
        entry: dict[str, Any] = {"row": row.name, "paper_setting": row.paper, "setting": row.here}
        entry["arguments"] = row.arguments()
        entry["runs"] = runs[row.name]
        for measure, more_is_better in MEASURES.items():
            values, base = ([run[measure] for run in runs[name]] for name in (row.name, PAPER_BASE.name))
            spread = max(max(values) - min(values), max(base) - min(base))
            change = mean(values) - mean(base)
            there = getattr(row, measure) - getattr(PAPER_BASE, measure)
            entry[measure] = {
                "mean": mean(values),
                "change": change,
                "spread": spread,
                "paper": getattr(row, measure),
                # Two digits after the point is what the paper prints.
                "paper_change": round(there, 2),
                "direction": direction(change, more_is_better, spread),
                "paper_direction": direction(round(there, 2), more_is_better),
            }
        table.append(entry)
    return table


def agreement(table: Sequence[dict[str, Any]], measure: str) -> tuple[int, int]:
    """How many rows moved as in the paper, of those that moved both here and there."""
    moved = [
        entry[measure]
        for entry in table
        if {entry[measure]["direction"], entry[measure]["paper_direction"]} <= {"better", "worse"}
    ]
    return sum(each["direction"] == each["paper_direction"] for each in moved), len(moved)


def as_text(result: dict[str, Any]) -> str:
    """Perplexity first, then BLEU, each with the change against the base beside the paper's."""
    head = f"{'mean':>8}{'change':>8}{'':>9}{'paper':>8}{'change':>8}{'':>8}"
    lines = [
        f"development set, {len(result['seeds'])} seed(s), {result['updates']:,} updates; the paper: newstest2013",
        f"{'':<26}{'perplexity':>17}{'':>33}{'BLEU':>10}",
        f"{'':<26}{head}  {head}".rstrip(),
    ]
    for entry in result["rows"]:
        cells = []
        for measure in MEASURES:
            value = entry[measure]
            is_base = entry["row"] == PAPER_BASE.name
            here = f"{value['mean']:>8.2f}" + (
                f"{'':>17}" if is_base else f"{value['change']:>+8.2f} {value['direction']:<8}"
            )
            there = f"{value['paper']:>8.2f}" + (
                f"{'':>16}" if is_base else f"{value['paper_change']:>+8.2f} {value['paper_direction']:<7}"
            )
            cells.append(here + there)
        lines.append(f"{entry['row']:<5} {entry['setting']:<20}{'  '.join(cells)}".rstrip())
    for measure in MEASURES:
        same, moved = result["agreement"][measure]
        lines.append(f"{measure}: {same} of the {moved} rows that moved here and in the paper moved the same way")
    lines.append(
        "unclear: not more than the seeds differ" if len(result["seeds"]) > 1 else "one seed: no spread is known"
    )
    return "\n".join(lines)


def draw(result: dict[str, Any], path: Path) -> None:
    """Changes against the base: perplexity in percent and BLEU in points, each seed a dot, the paper's a ring."""
    from vaswani_plugin.figures.drawing import load_figure_class, save

    rows = [entry for entry in result["rows"] if entry["row"] != PAPER_BASE.name]
    base = next(entry for entry in result["rows"] if entry["row"] == PAPER_BASE.name)
    figure = load_figure_class()(figsize=(9, 1.5 + 0.3 * len(rows)), dpi=110, layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, measure in zip(axes, MEASURES):
        middle = base[measure]["mean"]

        def change(value: float, start: float, relative: bool = measure == "perplexity") -> float:
            return 100 * (value / start - 1) if relative else value - start

        for height, entry in enumerate(rows):
            xs = [change(run[measure], middle) for run in entry["runs"]]
            axis.plot(
                xs, [height] * len(xs), "o", color="C0", markersize=4, label="here, each seed" if not height else None
            )
            there = change(entry[measure]["paper"], base[measure]["paper"])
            axis.plot([there], [height], "o", color="C1", fillstyle="none", label="the paper" if not height else None)
        spread = [change(run[measure], middle) for run in base["runs"]]
        axis.axvspan(min(spread), max(spread), color="C0", alpha=0.15)
        axis.axvline(0, color="grey", linewidth=0.8)
        axis.set_xlabel("perplexity, % more than base" if measure == "perplexity" else "BLEU, points more than base")
        axis.grid(axis="x", alpha=0.3)
    axes[0].set_yticks(range(len(rows)), [f"{entry['row']}  {entry['setting']}" for entry in rows], fontsize=8)
    axes[0].invert_yaxis()
    axes[0].legend(fontsize=8)
    figure.suptitle("Table 3 in small (band: the base's seeds)", fontsize=11)
    save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--seeds", nargs="+", required=True)
    parser.add_argument("--rows", nargs="*", default=[])
    options = parser.parse_args()
    rows = chosen(options.rows)
    runs = {
        row.name: [measured(options.work / "rows" / f"{row.name}-seed{seed}") for seed in options.seeds] for row in rows
    }
    table = compare(runs, rows)
    result: dict[str, Any] = {
        "seeds": [int(seed) for seed in options.seeds],
        "updates": int(runs[PAPER_BASE.name][0]["updates"]),
        "agreement": {measure: agreement(table, measure) for measure in MEASURES},
        "rows": table,
    }
    text = as_text(result)
    with replacing(options.work / "score.json", options.work / "ablations.txt") as (scores, lines):
        scores.write((json.dumps(result, indent=2) + "\n").encode())
        lines.write((text + "\n").encode())
    draw(result, options.work / "ablations.png")
    print(text)


if __name__ == "__main__":
    main()
