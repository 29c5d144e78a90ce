"""The likeliest next tokens of every hypothesis, without the matrix of all log-probabilities."""

import torch
from torch import Tensor

_CHUNK_ELEMENTS = 2**20
"""Logits handled at a time: 4 MB in float32 stay in a processor's caches between the passes over them."""
_BLOCK = 64
"""Logits of which only the highest is looked at, unless it is among the highest of all blocks."""


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
        top, of_top = _top(logits, min(count, size))
        highest = top[:, :1]
        total = logits.sub_(highest).exp_().sum(dim=1, keepdim=True)
        tops.append((top, of_top, highest + total.log()))
    values, ids, log_total = zip(*tops)
    return torch.cat(values), torch.cat(ids), torch.cat(log_total)


def _top(logits_NV: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """As ``topk``, which on a CPU goes through a whole row several times slower than a maximum does.

    The highest ``count`` of a row are in the ``count`` blocks with the highest maxima.
    """
    rows, size = logits_NV.shape
    blocks = size // _BLOCK
    if blocks < 4 * count:
        return logits_NV.topk(count)
    whole = blocks * _BLOCK
    logits_NMb = logits_NV[:, :whole].view(rows, blocks, _BLOCK)
    _, chosen_Nm = logits_NMb.amax(dim=2).topk(count, sorted=False)
    chosen_Nm1 = chosen_Nm.unsqueeze(2)
    in_block = torch.arange(_BLOCK, device=logits_NV.device)
    rest = torch.arange(whole, size, device=logits_NV.device)
    candidates = logits_NMb.gather(1, chosen_Nm1.expand(-1, -1, _BLOCK)).flatten(1)
    candidates = torch.cat([candidates, logits_NV[:, whole:]], dim=1)
    ids = torch.cat([(chosen_Nm1 * _BLOCK + in_block).flatten(1), rest.expand(rows, -1)], dim=1)
    values, places = candidates.topk(count)
    return values, ids.gather(1, places)
