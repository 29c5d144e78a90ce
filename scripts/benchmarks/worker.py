"""The process of one peer: builds what it measures, then runs one turn for every line that comes in."""

import gc
import json
import logging
import os
import sys
import time
import warnings
from typing import Any

import torch


def main() -> None:
    task: dict[str, Any] = json.loads(sys.argv[1])
    # Whatever the libraries print goes where people look; the answers have the real standard output to themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    logging.disable(logging.INFO)
    from benchmarks.peers import peer_named

    turn = peer_named(task["work"], task["peer"]).build(task)

    def answer(message: dict[str, Any]) -> None:
        print(json.dumps(message), file=answers, flush=True)

    device = "cuda" if torch.cuda.is_available() else "cpu"
    answer({"unit": turn.unit, "device": device, "threads": torch.get_num_threads(), **turn.about})
    for _ in sys.stdin:
        gc.collect()
        begun = time.perf_counter()
        turn.run()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds = (time.perf_counter() - begun) / turn.repeats
        answer({"seconds": seconds, "counts": turn.counts, "peak_megabytes": peak_megabytes(device)})


def peak_megabytes(device: str) -> float:
    """The most memory so far: allocated on a GPU, resident on a CPU."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


if __name__ == "__main__":
    main()
