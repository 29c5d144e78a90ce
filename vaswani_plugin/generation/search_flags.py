"""Flags of the search that have no meaning, alone or together."""

import math
from typing import Any

from vaswani_plugin.errors import UserError

# flag (as fairseq names it in its configuration) and its smallest value with a meaning
_SMALLEST = {
    "beam": 1,
    "nbest": 1,
    "max_len_a": 0,
    "max_len_b": 0,
    "min_len": 0,
    "prefix_size": 0,
    "no_repeat_ngram_size": 0,
}


def check_search_flags(args: Any, vocabulary: int) -> None:
    """
    Args:
        args: fairseq's generation settings; what is not there has its default.
        vocabulary: entries of the target dictionary.

    Raises:
        ValueError: a value that no search can use; the sentence names the flag.
    """
    for name, smallest in _SMALLEST.items():
        value = getattr(args, name, smallest)
        if not (math.isfinite(value) and value >= smallest):
            raise UserError(f"--{name.replace('_', '-')} {value} must be at least {smallest}")
    sampling = getattr(args, "sampling", False)
    if args.beam > vocabulary and not sampling:
        raise UserError(
            f"--beam {args.beam} is larger than the target dictionary, which has {vocabulary} entries: give a smaller "
            "one (the paper: 4)"
        )
    nbest = getattr(args, "nbest", 1)
    if nbest > args.beam:
        raise UserError(f"--nbest {nbest} needs a --beam of at least that, but --beam is {args.beam}")
    temperature = getattr(args, "temperature", 1.0)
    if not (math.isfinite(temperature) and temperature > 0):
        raise UserError(f"--temperature {temperature} must be above 0")
    groups = getattr(args, "diverse_beam_groups", -1)
    if groups > 0 and args.beam % groups:
        raise UserError(f"--diverse-beam-groups {groups} does not divide --beam {args.beam}: change one of them")
    top_p = getattr(args, "sampling_topp", -1.0)
    if sampling and top_p > 1:
        raise UserError(f"--sampling-topp {top_p} must be at most 1")
    for name in ("lenpen", "unkpen"):
        if not math.isfinite(getattr(args, name, 0)):
            raise UserError(f"--{name} {getattr(args, name)} must be a number")
