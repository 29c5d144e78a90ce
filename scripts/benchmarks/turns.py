"""Peers in processes of their own that take turns."""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers import Peer

_WARM_UP = 2
# A quarter of a gigabyte, over any temporary of these sizes: glibc neither maps nor trims below it.
_THRESHOLDS = {f"MALLOC_{name}_": str(2**28) for name in ("MMAP_THRESHOLD", "TRIM_THRESHOLD", "TOP_PAD")}


def measure(peers: Sequence[Peer], options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Warm-up, then rounds in turns.

    Returns:
        By peer: "metrics" (medians and totals), "spread" (quartiles of seconds), "device", what the worker tells, and
        "profile" if asked for.
    """
    workers = [_Worker(peer, options) for peer in peers]
    try:
        for turn in range(_WARM_UP + options.rounds):
            for worker in workers:
                worker.take_turn(timed=turn >= _WARM_UP)
            print(f"\rround {turn + 1} of {_WARM_UP + options.rounds}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        results = {worker.peer.name: worker.result() for worker in workers}
        if options.profile:
            for worker in workers:
                results[worker.peer.name]["profile"] = worker.profile()
        return results
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """Answers each line of its input with one line of JSON: the seconds and the counts of one turn."""

    def __init__(self, peer: Peer, options: argparse.Namespace) -> None:
        self.peer = peer
        environment = dict(os.environ, PYTHONPATH=str(Path(__file__).parents[1]))
        if options.raise_thresholds:
            environment.update(_THRESHOLDS)
        task = {
            "work": options.work,
            "peer": peer.name,
            "size": options.size,
            "precision": options.precision,
            "tokens": options.tokens,
            "same_length": options.same_length,
        }
        command = [sys.executable, "-m", "benchmarks.worker", json.dumps(task)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.about = self._answer()
        self.seconds: list[float] = []
        self.last: dict[str, Any] = {}

    def take_turn(self, timed: bool) -> None:
        self.last = self._ask("turn")
        if timed:
            self.seconds.append(self.last["seconds"])

    def result(self) -> dict[str, Any]:
        seconds = statistics.median(self.seconds)
        quartiles = statistics.quantiles(self.seconds, n=4) if len(self.seconds) > 1 else [seconds] * 3
        metrics = {f"seconds_per_{self.about['unit']}": seconds}
        metrics.update({f"{name}_per_second": count / seconds for name, count in self.last["counts"].items()})
        metrics.update({name: self.last[name] for name in ("peak_megabytes", "added_megabytes")})
        return {**self.about, "metrics": metrics, "spread": [quartiles[0], quartiles[2]]}

    def profile(self) -> str:
        return self._ask("profile")["profile"]

    def _ask(self, what: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return self._answer()

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(
                f"benchmark: {self.peer.name} ended with status {self.process.wait()}; its words are above"
            )
        return json.loads(line)
