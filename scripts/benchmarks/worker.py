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
    before = megabytes_now(device)
    answer({"unit": turn.unit, "device": device, "threads": torch.get_num_threads(), **turn.about})
    for line in sys.stdin:
        gc.collect()
        if line == "profile\n":
            answer({"profile": profile(turn, device)})
            continue
        begun = time.perf_counter()
        turn.run()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds = (time.perf_counter() - begun) / turn.repeats
        peak = peak_megabytes(device)
        memory = {"peak_megabytes": peak, "added_megabytes": peak - before}
        answer({"seconds": seconds, "counts": turn.counts, **memory})


def profile(turn: Any, device: str) -> str:
    """The operators in which one turn spends its time, those first that take most of it themselves."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # or the profiler prints when it starts and stops
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as record:
        turn.run()
    clock = "self_device_time_total" if device == "cuda" else "self_cpu_time_total"
    events = sorted(record.key_averages(), key=lambda event: getattr(event, clock), reverse=True)
    whole = sum(getattr(event, clock) for event in events)
    return "\n".join(f"{getattr(event, clock) / whole:6.1%}  {event.count:6} x {event.key}" for event in events[:12])


def peak_megabytes(device: str) -> float:
    """The most memory so far: allocated on a GPU, resident on a CPU."""
    return torch.cuda.max_memory_allocated() / 2**20 if device == "cuda" else _status("VmHWM")


def megabytes_now(device: str) -> float:
    return torch.cuda.memory_allocated() / 2**20 if device == "cuda" else _status("VmRSS")


def _status(name: str) -> float:
    """A size that Linux tells of this process, in megabytes."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith(name))


if __name__ == "__main__":
    main()
