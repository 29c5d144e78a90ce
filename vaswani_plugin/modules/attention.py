"""Scaled dot-product attention and multi-head attention (section 3.2)."""

import math
from typing import Any, Optional

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from vaswani_plugin.modules.cache import KeyValueCache
from vaswani_plugin.modules.layer_config import LayerConfig
from vaswani_plugin.modules.linear import Linear
from vaswani_plugin.modules.packing import Packing


def attention(
    q_BHTK: Tensor, k_BHSK: Tensor, v_BHSV: Tensor, mask: Optional[Tensor] = None, dropout: float = 0.0
) -> tuple[Tensor, Tensor]:
    """softmax(Q K^T / sqrt(d_k)) V, equation 1, written out as the paper writes it.

    Args:
        mask: boolean, broadcastable to (B, H, T, S), True where a connection is legal; None means all are.
        dropout: probability of dropping a weight after the softmax (the paper's translation models use 0).

    Returns:
        The weighted values (B, H, T, V) and the weights (B, H, T, S) before dropout. An illegal connection
        has weight exactly 0; a query with no legal key gets zeros instead of NaN.
    """
    scores_BHTS = q_BHTK @ k_BHSK.transpose(-2, -1) / math.sqrt(q_BHTK.size(-1))
    if mask is not None:
        scores_BHTS = scores_BHTS.masked_fill(~mask, -math.inf)
        # A row of -inf alone would make the softmax 0/0; such rows are computed unmasked and then zeroed.
        has_key = mask.any(-1, keepdim=True)
        scores_BHTS = scores_BHTS.masked_fill(~has_key, 0.0)
    weights_BHTS = scores_BHTS.softmax(-1, dtype=_softmax_dtype(scores_BHTS)).to(v_BHSV.dtype)
    if mask is not None:
        weights_BHTS = weights_BHTS * has_key
    return functional.dropout(weights_BHTS, dropout) @ v_BHSV, weights_BHTS


def _softmax_dtype(scores: Tensor) -> torch.dtype:
    return torch.float64 if scores.dtype == torch.float64 else torch.float32


def fused_attention(
    q_BHTK: Tensor, k_BHSK: Tensor, v_BHSV: Tensor, mask: Optional[Tensor] = None, causal: bool = False
) -> Tensor:
    """The same values as :func:`attention` through torch's fused kernel, without the matrix of weights.

    Args:
        mask: as in :func:`attention`.
        causal: position t sees positions 0..t only; excludes ``mask``.
    """
    if mask is None:
        return _scaled_dot_product(q_BHTK, k_BHSK, v_BHSV, None, causal)
    # The kernels disagree about rows with no legal key (zeros, NaN), so such rows never reach them as such.
    has_key = mask.any(-1, keepdim=True)
    if mask.device.type == "cpu" and has_key.all():  # on a GPU, asking would wait for it
        return _scaled_dot_product(q_BHTK, k_BHSK, v_BHSV, mask, causal)
    return _scaled_dot_product(q_BHTK, k_BHSK, v_BHSV, mask | ~has_key, causal).masked_fill(~has_key, 0.0)


def _scaled_dot_product(q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor], causal: bool) -> Tensor:
    if q.device.type == "cpu" and q.dtype in (torch.bfloat16, torch.float16):
        return _Float32Attention.apply(q, k, v, mask, causal)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)


class _Float32Attention(torch.autograd.Function):
    """Of reduced precision, with torch's kernel for float32: on CPUs its gradient is many times faster.

    What is kept between the passes has the reduced precision; for the gradient, the values are computed again.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor], causal: bool) -> Tensor:
        ctx.save_for_backward(q, k, v, mask)
        ctx.causal = causal
        return _in_float32(q.float(), k.float(), v.float(), mask, causal).to(v.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Optional[Tensor], ...]:
        *inputs, mask = ctx.saved_tensors
        q, k, v = (x.float().requires_grad_() for x in inputs)
        with torch.enable_grad():
            output = _in_float32(q, k, v, mask, ctx.causal)
        of_inputs = torch.autograd.grad(output, (q, k, v), gradients[0].float())
        return (*(gradient.to(x.dtype) for gradient, x in zip(of_inputs, inputs)), None, None)


def _in_float32(q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor], causal: bool) -> Tensor:
    with torch.autocast("cpu", enabled=False):
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)


def causal_mask(length: int, device: torch.device) -> Tensor:
    """(T, T) lower triangle: True where the key's position is not after the query's (section 3.2.3)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


class MultiHeadAttention(nn.Module):
    """Concat(head_1, ..., head_h) W_O with head_i = Attention(Q W_Q,i, K W_K,i, V W_V,i), section 3.2.2.

    The projections of all heads are one matrix each, and those of the same input are fused into one product;
    the two kinds of input (one sequence, or decoder and memory) are the two subclasses.

    d_k and d_v are free of d_model and of each other: W_Q, W_K are (d_model, h d_k), W_V is (d_model, h d_v) and
    W_O is (h d_v, d_model).
    """

    def __init__(self, config: LayerConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.dropout = config.attention_dropout
        self.key_width = config.num_heads * config.d_k
        self.value_width = config.num_heads * config.d_v
        self.output = Linear(self.value_width, config.d_model, bias=config.attention_bias)

    def reset_parameters(self) -> None:
        """Glorot uniform on each (fused) matrix, zero biases: what the code released with the paper did."""
        for projection in self.children():
            if isinstance(projection, nn.Linear):
                nn.init.xavier_uniform_(projection.weight)
                if projection.bias is not None:
                    nn.init.zeros_(projection.bias)

    def split_heads(self, x_BT: Tensor) -> Tensor:
        """(B, T, h * width) -> (B, H, T, width)"""
        batch, length, width = x_BT.shape
        return x_BT.view(batch, length, self.num_heads, width // self.num_heads).transpose(1, 2)

    def attend(
        self,
        q_BHTK: Tensor,
        k_BHSK: Tensor,
        v_BHSV: Tensor,
        mask: Optional[Tensor],
        causal: bool,
        need_weights: bool,
        packing: Optional[Packing],
    ) -> tuple[Tensor, Optional[Tensor]]:
        """All heads at once, then W_O of the (packed) positions.

        Returns (B, T, D) or (1, N, D) and, if asked for, the weights (B, H, T, S).
        """
        dropout = self.dropout if self.training else 0.0
        weights_BHTS: Optional[Tensor] = None
        if need_weights or dropout > 0:
            if causal:
                mask = causal_mask(q_BHTK.size(2), q_BHTK.device)
            heads_BHTV, weights_BHTS = attention(q_BHTK, k_BHSK, v_BHSV, mask, dropout)
        else:
            heads_BHTV = fused_attention(q_BHTK, k_BHSK, v_BHSV, mask, causal)
        concatenated = heads_BHTV.transpose(1, 2).flatten(2)
        if packing is not None:
            concatenated = packing.pack(concatenated)
        return self.output(concatenated), weights_BHTS if need_weights else None


class SelfAttention(MultiHeadAttention):
    """Queries, keys and values from one sequence (encoder, and decoder with a causal mask)."""

    def __init__(self, config: LayerConfig) -> None:
        super().__init__(config)
        width = 2 * self.key_width + self.value_width
        self.query_key_value = Linear(config.d_model, width, bias=config.attention_bias)
        self.reset_parameters()

    def forward(
        self,
        x_BTD: Tensor,
        mask: Optional[Tensor] = None,
        causal: bool = False,
        cache: Optional[KeyValueCache] = None,
        need_weights: bool = False,
        packing: Optional[Packing] = None,
    ) -> tuple[Tensor, Optional[Tensor]]:
        """
        Args:
            x_BTD: the sequence; with ``cache``, only its newest positions; with ``packing``, (1, N, D).
            mask: True where legal, broadcastable to (B, H, T, S).
            causal: position t sees 0..t; without ``mask`` and ``cache``.
            cache: keys and values of the positions before; extended by the new ones.
            packing: of the sequence, in and out.
        """
        widths = [self.key_width, self.key_width, self.value_width]
        q, k, v = _unpacked(self.query_key_value(x_BTD), packing).split(widths, dim=-1)
        q_BHTK, k_BHTK, v_BHTV = self.split_heads(q), self.split_heads(k), self.split_heads(v)
        if cache is not None:
            k_BHTK, v_BHTV = cache.extend(k_BHTK, v_BHTV)
        return self.attend(q_BHTK, k_BHTK, v_BHTV, mask, causal, need_weights, packing)


class CrossAttention(MultiHeadAttention):
    """Queries from the decoder, keys and values from the encoder's output (the paper's memory)."""

    def __init__(self, config: LayerConfig) -> None:
        super().__init__(config)
        width = self.key_width + self.value_width
        self.query = Linear(config.d_model, self.key_width, bias=config.attention_bias)
        self.key_value = Linear(config.d_model, width, bias=config.attention_bias)
        self.reset_parameters()

    def forward(
        self,
        x_BTD: Tensor,
        memory_BSD: Tensor,
        mask: Optional[Tensor] = None,
        cache: Optional[KeyValueCache] = None,
        need_weights: bool = False,
        packing: Optional[Packing] = None,
        memory_packing: Optional[Packing] = None,
    ) -> tuple[Tensor, Optional[Tensor]]:
        """
        Args:
            mask: (B, 1, 1, S), True where the source position is a token.
            cache: where the memory's keys and values are kept from the first step on.
            packing: of the sequence, in and out.
            memory_packing: of the memory.
        """
        if cache is not None and cache.length > 0:
            k_BHSK, v_BHSV = cache.stored()
        else:
            projected = _unpacked(self.key_value(memory_BSD), memory_packing)
            k, v = projected.split([self.key_width, self.value_width], dim=-1)
            k_BHSK, v_BHSV = self.split_heads(k), self.split_heads(v)
            if cache is not None:
                cache.extend(k_BHSK, v_BHSV)
        q_BHTK = self.split_heads(_unpacked(self.query(x_BTD), packing))
        return self.attend(q_BHTK, k_BHSK, v_BHSV, mask, False, need_weights, packing)


def _unpacked(x: Tensor, packing: Optional[Packing]) -> Tensor:
    return x if packing is None else packing.unpack(x)
