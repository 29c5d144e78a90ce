"""The likeliest next tokens of every hypothesis, without the matrix of all log-probabilities."""

import torch
from torch import Tensor

_CHUNK_ELEMENTS = 2**19
"""Logits handled at a time: 2 MB in float32 stay in a processor's cache between the passes over them."""


def likeliest(logits_NV: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The top of each row, and what turns its logits into log-probabilities.

    Args:
        logits_NV: float32; overwritten.
        count: how many of each row; all of them if the vocabulary is smaller.

    Returns:
        Logits (N, count), best first; their ids (N, count); the logarithm of the sum of exponentials (N, 1).
    """
    size = logits_NV.size(1)
    rows = max(1, _CHUNK_ELEMENTS // size)
    tops = []
    for logits in logits_NV.split(rows):
        values, ids = logits.topk(min(count, size))
        highest = values[:, :1]
        total = logits.sub_(highest).exp_().sum(dim=1, keepdim=True)
        tops.append((values, ids, highest + total.log()))
    values, ids, log_total = zip(*tops)
    return torch.cat(values), torch.cat(ids), torch.cat(log_total)
