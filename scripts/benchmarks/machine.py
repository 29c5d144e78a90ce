"""How fast the machine multiplies matrices, and what part of that an update reaches."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from benchmarks.peers import SIZES, Size

_ROUNDS = 5


def rates(size: Size, tokens: int) -> dict[str, float]:
    """Operations per second of the products of a feed-forward layer with ``tokens`` rows, by the ways to compute them.

    In turns, median of five.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(tokens, size.d_model, device=device)
    weight = torch.randn(size.d_ff, size.d_model, device=device)
    x_16, weight_16 = x.bfloat16(), weight.bfloat16()
    ways: dict[str, Callable[[], Any]] = {
        "F.linear float32": lambda: functional.linear(x, weight),
        "bfloat16": lambda: functional.linear(x_16, weight_16),
    }
    if device == "cpu" and hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        ways["oneDNN float32"] = lambda: torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    with torch.no_grad():
        for turn in range(_ROUNDS + 1):
            for way, compute in ways.items():
                begun = time.perf_counter()
                for _ in range(10):
                    compute()
                if device == "cuda":
                    torch.cuda.synchronize()
                if turn > 0:
                    seconds[way].append((time.perf_counter() - begun) / 10)
    operations = 2 * x.numel() * size.d_ff
    return {way: operations / statistics.median(times) for way, times in seconds.items()}


def report(size_name: str, precision: str, tokens: int, seconds_per_update: float) -> str:
    """The rates, and the counted operations of the plugin's update over its time."""
    from vaswani_plugin.accounting.flops import forward_flops
    from vaswani_plugin.models.architectures import ARCHITECTURES
    from vaswani_plugin.models.config import VaswaniTransformerConfig

    size = SIZES[size_name]
    measured = rates(size, tokens)
    config = VaswaniTransformerConfig(**ARCHITECTURES[size.arch])
    flops = forward_flops(config, size.vocabulary, size.length + 1, size.length + 1).update(tokens, tokens)
    reached = flops / seconds_per_update
    # Where bfloat16 is emulated, the plugin multiplies rounded numbers in float32.
    fitting = [rate for way, rate in measured.items() if "bfloat16" not in way or precision == "mixed"]
    lines = [f"{way}: {rate / 1e9:,.0f} GFLOP/s" for way, rate in measured.items()]
    lines.append(
        f"counted products of an update: {flops / 1e9:,.0f} GFLOP, {reached / 1e9:,.0f} GFLOP/s, "
        f"{100 * reached / max(fitting):.0f} % of the machine's best for {precision}"
    )
    return "\n".join(lines)
