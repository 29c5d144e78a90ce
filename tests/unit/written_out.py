"""The model with everything that is there for speed put back to how the paper writes it."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from vaswani_plugin.models import sequence_decoder, sequence_encoder
from vaswani_plugin.modules import dropout as dropout_module
from vaswani_plugin.modules import embedding as embedding_module
from vaswani_plugin.modules import linear as linear_module

# The package has a function of that name.
attention_module = importlib.import_module("vaswani_plugin.modules.attention")


def plain_attention(q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False) -> torch.Tensor:
    return attention_module.attention(q, k, v, attention_module.causal_mask(q.size(2), q.device) if causal else mask)[0]


def plain_linear(x: Any, weight: Any, bias: Any = None) -> torch.Tensor:
    product = (x.unsqueeze(-2) * weight).sum(-1)
    return product if bias is None else product + bias


def plain_dropout(x: torch.Tensor, rate: float, residual: "torch.Tensor | None" = None) -> torch.Tensor:
    keep, probability = dropout_module.random_keep(x, rate)
    return x * keep / probability + (0.0 if residual is None else residual)


def plain_source_mask(tokens: torch.Tensor, pad: int) -> torch.Tensor:
    return tokens.ne(pad)[:, None, None, :]


def plain_target_mask(tokens: torch.Tensor, pad: int) -> torch.Tensor:
    sentences = torch.zeros_like(tokens, dtype=torch.bool)
    for row, of_tokens in zip(sentences, tokens.ne(pad)):
        places = of_tokens.nonzero()
        if len(places) > 0:
            row[int(places[0]) : int(places[-1]) + 1] = True
    return torch.ones(tokens.size(1), tokens.size(1)).tril().bool() & sentences[:, None, None, :]


@contextmanager
def written_out() -> "Iterator[None]":
    """Attention as equation 1, products as sums of products, every mask there, dropout as a multiplication.

    Padding is left out as before: the dropout masks of all places would be others.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention_module, "fused_attention", plain_attention)
        patch.setattr(linear_module, "linear", plain_linear)
        patch.setattr(embedding_module, "linear", plain_linear)
        patch.setattr(dropout_module._CheapDropout, "apply", plain_dropout)
        patch.setattr(sequence_encoder, "source_mask", plain_source_mask)
        patch.setattr(sequence_decoder, "target_mask", plain_target_mask)
        yield
