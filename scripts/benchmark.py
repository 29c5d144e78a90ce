#!/usr/bin/env python3
"""Measures this plugin beside stock fairseq and others: same machine, same batches, in turns.

Every peer runs in a process of its own, so that memory and allocator settings are its own, and waits while another is
measured. A round is one turn of each; what is printed is the median over the rounds with the spread between quartiles.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.peers import PEERS, SIZES
from benchmarks.turns import measure


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="example: python scripts/benchmark.py train --size tiny --rounds 3",
    )
    parser.add_argument("work", choices=tuple(PEERS), help="what to measure")
    parser.add_argument("--size", choices=tuple(SIZES), default="tiny", help="of the model (default: tiny)")
    parser.add_argument("--precision", choices=("float32", "mixed", "int8"), default="float32", help="of the plugin")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="turns of each peer (default: 5)")
    parser.add_argument(
        "--peers", nargs="+", metavar="NAME", help="beside the plugin (default: all that are installed)"
    )
    parser.add_argument("--tokens", type=int, metavar="N", help="target tokens of a batch (default: by size)")
    parser.add_argument("--same-length", action="store_true", help="sentences of one length, so no padding (train)")
    parser.add_argument("--raise-thresholds", action="store_true", help="glibc keeps freed memory, for every peer")
    parser.add_argument("--profile", action="store_true", help="also where each peer's time goes, by operator")
    parser.add_argument("--json", metavar="FILE", help="also write the rows there")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds {options.rounds} must be at least 1")
    if options.precision == "int8" and options.work != "decode":
        parser.error(f"--precision int8 is for decode, not for {options.work}")
    if options.same_length and options.work != "train":
        parser.error(f"--same-length is for train, not for {options.work}")

    known = [peer.name for peer in PEERS[options.work] if peer.name != "plugin"]
    unknown = set(options.peers or ()) - set(known)
    if unknown:
        parser.error(f"--peers {', '.join(sorted(unknown))}: {options.work} knows {', '.join(known)}")
    peers = [peer for peer in PEERS[options.work] if peer.name in {"plugin", *(options.peers or known)}]
    missing = [peer.name for peer in peers if not peer.installed()]
    if "plugin" in missing:
        parser.error("this Python has no torch: make the environment with scripts/setup.sh and activate it")
    if missing:
        print(f"not installed, left out: {', '.join(missing)}", file=sys.stderr)
    results = measure([peer for peer in peers if peer.installed()], options)
    rows = compare(results, options)
    print(table(results, rows))
    if options.work == "train":
        ours = results["plugin"]
        print(machine.report(options.size, options.precision, ours["tokens"], ours["metrics"]["seconds_per_update"]))
    for name, result in results.items():
        if options.profile:
            print(f"\none {result['unit']} of {name}, share of its operators' own time:\n{result['profile']}")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=2) + "\n", "utf-8")
    return 0


def compare(results: dict[str, dict[str, Any]], options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row per peer and metric: speed ratios are plugin over peer, and so are memory ratios."""
    ours = results["plugin"]
    rows = []
    for name, theirs in results.items():
        if name == "plugin":
            continue
        for metric in ours["metrics"].keys() & theirs["metrics"].keys():
            plugin, other = ours["metrics"][metric], theirs["metrics"][metric]
            less_is_better = metric.startswith("seconds")
            kind = "memory_ratio" if metric.endswith("megabytes") else "speed_ratio"
            rows.append(
                {
                    "work": options.work,
                    "size": options.size,
                    "precision": options.precision,
                    "device": ours["device"],
                    "peer": name,
                    "metric": metric,
                    "plugin": plugin,
                    "other": other,
                    kind: (other / plugin) if less_is_better else (plugin / other),
                    "spread": {"plugin": ours["spread"], "other": theirs["spread"]},
                }
            )
    return sorted(rows, key=lambda row: (row["peer"], row["metric"]))


def table(results: dict[str, dict[str, Any]], rows: list[dict[str, Any]]) -> str:
    lines = []
    for name, result in results.items():
        metrics = ", ".join(f"{metric} {value:,.4g}" for metric, value in result["metrics"].items())
        lines.append(f"{name:12} {metrics}  (quartiles {result['spread'][0]:.4g} to {result['spread'][1]:.4g} s)")
    lines.append("")
    for row in rows:
        ratio = row.get("speed_ratio", row.get("memory_ratio"))
        kind = "x the speed" if "speed_ratio" in row else "x the memory"
        lines.append(f"plugin / {row['peer']:12} {row['metric']:28} {ratio:.2f} {kind}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
