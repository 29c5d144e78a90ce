"""What this machine's processor is good at, by rules: measured, a resumed run might compute other numbers."""

import functools
import os
import platform
from typing import Optional

import torch

from vaswani_plugin.errors import UserError

OVERRIDE = "VASWANI_MATRIX_PRODUCTS"
"""The environment variable that chooses: ``torch`` for torch's default (MKL), ``onednn``."""


@functools.lru_cache
def prefers_onednn() -> bool:
    """Whether float32 products on this CPU go through oneDNN.

    On AMD processors with AVX-512 it multiplies more than twice as fast as MKL, which is made for Intel's; on others
    the two are equal or MKL is ahead.
    """
    choice = _choice()
    available = hasattr(torch.ops.mkldnn, "_linear_pointwise")
    if choice is not None:
        return choice == "onednn" and available
    return available and _has_avx512() and _cpuinfo("vendor_id") == "AuthenticAMD"


@functools.lru_cache
def multiplies_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 matrices faster than float32's.

    Of x86, those with AMX do, and AMD's with AVX-512. Intel's with AVX-512 alone multiply them at half of float32's
    rate, and without AVX-512 torch emulates it, at a tenth to a hundredth. There the numbers are rounded to bfloat16
    as everywhere, and float32 products are taken of them: the same values but for the order of the sums.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        return True
    flags = _cpuinfo("flags").split()
    return _has_avx512() and (
        "amx_bf16" in flags or ("avx512_bf16" in flags and _cpuinfo("vendor_id") == "AuthenticAMD")
    )


@functools.lru_cache
def multiplies_packed() -> bool:
    """Whether this CPU gains by matrices in the order in which oneDNN reads them, for which they are copied.

    A fifth with AVX-512, next to nothing with AVX2.
    """
    return (
        _choice() != "torch"
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and _has_avx512()
    )


def _choice() -> Optional[str]:
    choice = os.environ.get(OVERRIDE)
    if choice not in (None, "onednn", "torch"):
        raise UserError(f"{OVERRIDE}={choice} must be torch or onednn")
    return choice


def _has_avx512() -> bool:
    return "AVX512" in torch.backends.cpu.get_cpu_capability()


def _cpuinfo(name: str) -> str:
    """What Linux says of the first processor under ``name``; nothing elsewhere."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")
    except OSError:
        return ""
