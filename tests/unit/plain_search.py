"""The rules of the search written plainly for one sentence: lists, full passes over every prefix, no caches."""

import math
from typing import Any

import torch

EOS = 2


@torch.no_grad()
def log_probabilities(ensemble: "list[Any]", source: "list[int]", prefixes: "list[tuple[int, ...]]") -> torch.Tensor:
    """The next token's, for prefixes of equal length, by full passes: (prefixes, V)."""
    shifted = torch.tensor([[EOS, *prefix] for prefix in prefixes])
    sources = torch.tensor([source]).expand(len(prefixes), -1)
    each = [torch.log_softmax(model(sources, None, shifted)[0][:, -1], -1) for model in ensemble]
    result = torch.logsumexp(torch.stack(each), 0) - math.log(len(each))
    result[:, :2] = -math.inf
    return result


def penalty(length: int, alpha: float) -> float:
    return ((5 + length) / 6) ** alpha


def plain_search(
    ensemble: "list[Any]", source: "list[int]", beam: int, alpha: float, longest: int, nbest: int
) -> "list[tuple[float, tuple[int, ...]]]":
    """The rules in the words of the docstring of BeamSearch.

    Returns:
        Scores and outputs of the finished hypotheses, best first.
    """
    alive: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[tuple[float, tuple[int, ...]]] = []
    for length in range(longest + 1):
        following = log_probabilities(ensemble, source, [prefix for _, prefix in alive])
        candidates = [
            (log_p + row[token], (*prefix, token))
            for (log_p, prefix), row in zip(alive, following.tolist())
            for token in range(len(row))
            if row[token] > -math.inf and (length < longest or token == EOS)
        ]
        candidates = sorted(candidates, reverse=True)[: 2 * beam if beam > 1 else 1]
        finished += [(s / penalty(length + 1, alpha), t) for s, t in candidates if t[-1] == EOS]
        finished = sorted(finished, reverse=True)[:beam]
        alive = [(s, t) for s, t in candidates if t[-1] != EOS][:beam]
        if not alive or (
            len(finished) >= nbest and finished[nbest - 1][0] >= alive[0][0] / penalty(longest + 1, alpha)
        ):
            break
    return finished
