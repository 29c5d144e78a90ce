"""Damage to files: single bits that flipped, and ends that were cut off."""

import argparse
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from omegaconf import OmegaConf


def flipped(content: bytes, count: int, seed: int = 1) -> "Iterator[tuple[str, bytes]]":
    """``count`` times the content with one random bit turned, and in words which one."""
    choose = random.Random(seed)
    for _ in range(count):
        place, bit = choose.randrange(len(content)), choose.randrange(8)
        other = bytearray(content)
        other[place] ^= 1 << bit
        yield f"bit {bit} of byte {place}", bytes(other)


def cut_off(content: bytes, count: int) -> "Iterator[tuple[str, bytes]]":
    """The content's beginnings at ``count`` places, a third of them in the last hundred bytes."""
    near = {len(content) - 1 - 100 * place // max(count // 3, 1) for place in range(count // 3)}
    rest = count - len(near)
    for length in sorted(near | {1 + (len(content) - 102) * place // rest for place in range(rest)}):
        yield f"{length} of {len(content)} bytes", content[:length]


def outcome(read: Callable[[], Any], intact: Any, same: "Callable[[Any, Any], bool]", named: str) -> str:
    """How reading a damaged file went: "the same" as the intact one, or the one sentence that says what is wrong.

    Anything else is an AssertionError: another exception than a ValueError, other contents, or no file's name.
    """
    try:
        found = read()
    except ValueError as error:
        told = error
    else:
        assert same(found, intact), "other contents, without a word"
        return "the same"
    assert getattr(told, "is_user_error", False), repr(told)
    assert named in str(told), str(told)
    assert "\n" not in str(told).strip(), str(told)
    return str(told)


def count_told(what: str, outcomes: "list[str]") -> int:
    """How many of the outcomes were an error's sentence; printed for who runs the tests with -rP."""
    told = sum(sentence != "the same" for sentence in outcomes)
    print(f"{what}: {told} of {len(outcomes)} told")
    return told


def equal(one: Any, other: Any) -> bool:
    """Whether two states are bit for bit the same, in all their parts."""
    if OmegaConf.is_config(one):
        one = OmegaConf.to_container(one)
    if OmegaConf.is_config(other):
        other = OmegaConf.to_container(other)
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other)
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, argparse.Namespace):
        return equal(vars(one), vars(other))
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)
