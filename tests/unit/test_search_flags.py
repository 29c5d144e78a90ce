"""Flags of the search without a meaning, and the ones at their limits."""

from argparse import Namespace
from typing import Any

import pytest

from vaswani_plugin.errors import UserError
from vaswani_plugin.generation.search_flags import check_search_flags


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"beam": 0}, "--beam 0 must be at least 1"),
        ({"beam": -1}, "--beam -1 must be at least 1"),
        ({"beam": 10}, "--beam 10 is larger than the target dictionary, which has 9 entries: give a smaller one (the "),
        ({"nbest": 0}, "--nbest 0 must be at least 1"),
        ({"nbest": 5}, "--nbest 5 needs a --beam of at least that, but --beam is 4"),
        ({"max_len_a": -0.1}, "--max-len-a -0.1 must be at least 0"),
        ({"max_len_a": float("inf")}, "--max-len-a inf must be at least 0"),
        ({"max_len_b": -1}, "--max-len-b -1 must be at least 0"),
        ({"min_len": -1}, "--min-len -1 must be at least 0"),
        ({"prefix_size": -1}, "--prefix-size -1 must be at least 0"),
        ({"no_repeat_ngram_size": -1}, "--no-repeat-ngram-size -1 must be at least 0"),
        ({"temperature": 0.0}, "--temperature 0.0 must be above 0"),
        ({"temperature": float("nan")}, "--temperature nan must be above 0"),
        ({"diverse_beam_groups": 3}, "--diverse-beam-groups 3 does not divide --beam 4: change one of them"),
        ({"sampling": True, "sampling_topp": 1.5}, "--sampling-topp 1.5 must be at most 1"),
        ({"unkpen": float("nan")}, "--unkpen nan must be a number"),
    ],
)
def test_refused(flags: "dict[str, Any]", sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        check_search_flags(Namespace(**{"beam": 4, **flags}), vocabulary=9)
    assert str(caught.value).startswith(sentence)


def test_limits_themselves_are_fine() -> None:
    flags = {"nbest": 9, "max_len_a": 0, "max_len_b": 0, "min_len": 0, "temperature": 0.1, "diverse_beam_groups": 3}
    assert check_search_flags(Namespace(beam=9, **flags), vocabulary=9) is None
    # drawing is with replacement, so that there may be more samples than words
    assert check_search_flags(Namespace(beam=20, nbest=20, sampling=True, sampling_topp=1.0), vocabulary=9) is None
