"""Measures the layers of Table 1: time and memory of a training step of each layer alone, for several lengths.

Usage: python measure.py WIDTH LENGTH...     (prints one JSON object a line)

Each layer has a process of its own, and takes the lengths in ascending order: its memory is the highest that the
process has held so far, beyond what it held before the first step.
"""

import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from vaswani_plugin.modules import LayerConfig, SelfAttention

HEADS = 8
KERNEL = 3
# Repeated until either is reached, so that all of it stays within minutes.
_REPEATS, _SECONDS = 7, 4.0

Layer = Callable[[Tensor], Tensor]


def self_attention(width: int, need_weights: bool) -> tuple[nn.Module, Layer]:
    """Multi-head self-attention with its four projections; with ``need_weights`` the n x n weights are a matrix."""
    config = LayerConfig(d_model=width, num_heads=HEADS, d_k=width // HEADS, d_v=width // HEADS)
    module = SelfAttention(config)
    return module, lambda x: module(x, need_weights=need_weights)[0]


def recurrent(width: int) -> tuple[nn.Module, Layer]:
    module = nn.LSTM(width, width, batch_first=True)
    return module, lambda x: module(x)[0]


def convolution(width: int) -> tuple[nn.Module, Layer]:
    module = nn.Conv1d(width, width, KERNEL, padding=KERNEL // 2)
    return module, lambda x: module(x.transpose(1, 2))


LAYERS: dict[str, Callable[[int], tuple[nn.Module, Layer]]] = {
    "self-attention": lambda width: self_attention(width, True),
    "self-attention-fused": lambda width: self_attention(width, False),
    "recurrent": recurrent,
    "convolution": convolution,
}


def held_bytes() -> int:
    """Resident memory of this process now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def measure(name: str, width: int, lengths: list[int]) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(1)
    module, layer = LAYERS[name](width)
    module.to(device)

    def step(length: int) -> float:
        x = torch.randn(1, length, width, device=device, requires_grad=True)
        if device.type == "cuda":
            torch.cuda.synchronize()
        begun = time.perf_counter()
        layer(x).sum().backward()
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begun

    step(min(lengths))  # loads libraries and makes the gradients of the weights
    before = torch.cuda.memory_allocated() if device.type == "cuda" else held_bytes()
    for length in sorted(lengths):
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        times = [step(length)]
        while len(times) < _REPEATS and sum(times) < _SECONDS:
            times.append(step(length))
        # What else the machine does only adds to the time.
        seconds = min(times)
        highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if device.type == "cuda":
            highest = torch.cuda.max_memory_allocated()
        row = {"layer": name, "n": length, "d": width, "seconds": seconds, "bytes": max(0, highest - before)}
        print(json.dumps({**row, "steps": len(times), "device": device.type}), flush=True)


def main() -> None:
    width, *lengths = map(int, sys.argv[1:])
    for name in LAYERS:
        print(f"  {name}", file=sys.stderr, flush=True)
        # Forked before torch has started a thread or touched a GPU.
        process = multiprocessing.get_context("fork").Process(target=measure, args=(name, width, lengths))
        process.start()
        process.join()
        if process.exitcode:
            sys.exit(f"measuring {name} failed with exit status {process.exitcode}; was there enough memory?")


if __name__ == "__main__":
    main()
