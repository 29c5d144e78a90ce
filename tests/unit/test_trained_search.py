"""Trained weights: the search on every fast path against plain rules on the model written out."""

import copy
import math
from argparse import Namespace
from typing import Any

import pytest
import torch
from plain_search import plain_search
from trained_toy import Output, bleu, found, sources, trained_model, translation
from written_out import written_out

from vaswani_plugin.modules import linear

TIE = 1e-5
SHORT = sources(128, 8)


@pytest.fixture(scope="module")
def model() -> Any:
    return trained_model()


def assert_same(one: "list[Output]", other: "list[Output]") -> None:
    """The same outputs with the same scores, in an order that only a tie may change."""
    assert [score for score, _ in one] == pytest.approx([score for score, _ in other], abs=TIE)
    for rank, ((score, tokens), (_, expected)) in enumerate(zip(one, other)):
        others = [s for place, (s, _) in enumerate(other) if place != rank]
        assert tokens == expected or min(abs(score - s) for s in others) < TIE


@pytest.fixture(scope="module")
def many(model: Any) -> "list[list[Output]]":
    return found(model, SHORT)


def test_the_model_has_learned_something(many: "list[list[Output]]") -> None:
    right = [best[0][1] == tuple(translation(source)) for source, best in zip(SHORT, many)]
    assert sum(right) > 64


@pytest.fixture(scope="module")
def exact(model: Any) -> Any:
    """In float64, so that what is compared is how far the fast paths are from the truth, not from other roundings."""
    return copy.deepcopy(model).double()


def test_128_sentences_are_those_of_plain_rules(exact: Any, many: "list[list[Output]]") -> None:
    with written_out():
        for source, outputs in zip(SHORT, many):
            assert_same(outputs, plain_search([exact], source, 4, 0.6, len(source) - 1 + 50, 1))


def test_packed_matrices(model: Any, many: "list[list[Output]]", monkeypatch: pytest.MonkeyPatch) -> None:
    """As fairseq-generate makes them, on a processor that gains by them."""
    monkeypatch.setattr(linear, "multiplies_packed", lambda: True)
    packed = copy.deepcopy(model)
    packed.prepare_for_inference_(Namespace(task=Namespace(), generation=Namespace()))  # of a task without a dataclass
    assert sum(hasattr(weight, "packed") for weight in packed.parameters()) > 10
    for outputs, expected in zip(found(packed, SHORT), many):
        assert_same(outputs, expected)


def test_a_sentence_alone_is_as_among_128(model: Any, many: "list[list[Output]]") -> None:
    for source, outputs in zip(SHORT, many):
        assert_same(found(model, [source])[0], outputs)


@pytest.mark.parametrize("settings", [{}, {"alpha": 1.0, "nbest": 4}, {"beam": 1}], ids=str)
def test_long_beside_short(model: Any, exact: Any, settings: "dict[str, Any]") -> None:
    """Sources of 1 and of 90 words in one batch; the cache grows, and short sentences leave it early."""
    chosen = [*sources(2, 1), *(s for s in sources(60, 90) if len(s) > 75), *sources(2, 8)]
    limits = {"max_len_a": 1.0, "max_len_b": 5}
    expected = {"beam": 4, "alpha": 0.6, "nbest": 1, **settings}
    assert max(map(len, chosen)) > 85
    with written_out():
        plain = [plain_search([exact], source, longest=len(source) - 1 + 5, **expected) for source in chosen]
    for outputs, theirs in zip(found(model, chosen, **limits, **settings), plain):
        assert_same(outputs, theirs)
    assert all(math.isfinite(score) for outputs in plain for score, _ in outputs)


def test_mixed_precision_has_the_bleu_of_float32(model: Any, many: "list[list[Output]]") -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = found(model, SHORT)
    assert [best[0][0] for best in mixed] != [best[0][0] for best in many]
    assert bleu(SHORT, mixed) == pytest.approx(bleu(SHORT, many), abs=1.0)
