"""The paper in plain NumPy: one sentence, no batch, no padding, no caches, float64, written for reading.

Tests hold the plugin to this. It shares no code with the plugin and follows the paper's text, section by section.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def positional_encoding(length: int, d_model: int) -> Array:
    """Section 3.5, entry by entry."""
    table = np.zeros((length, d_model))
    for pos in range(length):
        for column in range(d_model):
            i = column // 2
            angle = pos / 10000 ** (2 * i / d_model)
            table[pos, column] = math.sin(angle) if column % 2 == 0 else math.cos(angle)
    return table


def softmax(scores: Array) -> Array:
    """Over the last axis; a row of -inf alone, which the paper never has, becomes zeros."""
    highest = scores.max(axis=-1, keepdims=True)
    exponentials = np.exp(scores - np.where(np.isinf(highest), 0.0, highest))
    total = exponentials.sum(axis=-1, keepdims=True)
    return np.divide(exponentials, total, out=np.zeros_like(exponentials), where=total > 0)


def attention(q: Array, k: Array, v: Array, legal: "NDArray[np.bool_] | None" = None) -> tuple[Array, Array]:
    """Equation 1 for one head: q (T, d_k), k (S, d_k), v (S, d_v) -> (T, d_v) and the weights (T, S)."""
    scores = q @ k.T / math.sqrt(k.shape[1])
    if legal is not None:
        scores = np.where(legal, scores, -np.inf)
    weights = softmax(scores)
    return weights @ v, weights


@dataclass
class AttentionWeights:
    """One matrix per head: w_q and w_k (h, d_model, d_k), w_v (h, d_model, d_v); w_o (h d_v, d_model)."""

    w_q: Array
    w_k: Array
    w_v: Array
    w_o: Array


def multi_head(queries: Array, memory: Array, weights: AttentionWeights, causal: bool = False) -> Array:
    """Section 3.2.2: queries (T, d_model) over memory (S, d_model)."""
    legal = np.tril(np.ones((len(queries), len(memory)), dtype=bool)) if causal else None
    heads = [
        attention(queries @ w_q, memory @ w_k, memory @ w_v, legal)[0]
        for w_q, w_k, w_v in zip(weights.w_q, weights.w_k, weights.w_v)
    ]
    return np.concatenate(heads, axis=1) @ weights.w_o


@dataclass
class FeedForwardWeights:
    w_1: Array
    b_1: Array
    w_2: Array
    b_2: Array


def feed_forward(x: Array, weights: FeedForwardWeights) -> Array:
    """Equation 2."""
    return np.maximum(0.0, x @ weights.w_1 + weights.b_1) @ weights.w_2 + weights.b_2


@dataclass
class NormWeights:
    gain: Array
    bias: Array


def add_and_norm(x: Array, sublayer_output: Array, weights: NormWeights) -> Array:
    """LayerNorm(x + Sublayer(x)), section 3.1, with epsilon 1e-6 inside the root."""
    total = x + sublayer_output
    mean = total.mean(axis=1, keepdims=True)
    variance = ((total - mean) ** 2).mean(axis=1, keepdims=True)
    return (total - mean) / np.sqrt(variance + 1e-6) * weights.gain + weights.bias


@dataclass
class LayerWeights:
    """An encoder layer has no cross attention."""

    self_attention: AttentionWeights
    cross_attention: "AttentionWeights | None"
    feed_forward: FeedForwardWeights
    norms: list[NormWeights]


def encoder(x: Array, layers: list[LayerWeights]) -> Array:
    for layer in layers:
        x = add_and_norm(x, multi_head(x, x, layer.self_attention), layer.norms[0])
        x = add_and_norm(x, feed_forward(x, layer.feed_forward), layer.norms[1])
    return x


def decoder(x: Array, memory: Array, layers: list[LayerWeights]) -> Array:
    for layer in layers:
        assert layer.cross_attention is not None
        x = add_and_norm(x, multi_head(x, x, layer.self_attention, causal=True), layer.norms[0])
        x = add_and_norm(x, multi_head(x, memory, layer.cross_attention), layer.norms[1])
        x = add_and_norm(x, feed_forward(x, layer.feed_forward), layer.norms[2])
    return x


def embed(ids: list[int], matrix: Array) -> Array:
    """Sections 3.4 and 3.5: embeddings times sqrt(d_model), plus positions from 0 on."""
    d_model = matrix.shape[1]
    return matrix[ids] * math.sqrt(d_model) + positional_encoding(len(ids), d_model)


def logits(
    source: list[int],
    shifted_target: list[int],
    matrix: Array,
    encoder_layers: list[LayerWeights],
    decoder_layers: list[LayerWeights],
) -> Array:
    """Figure 1 up to the softmax, with the one shared matrix: (T, V)."""
    memory = encoder(embed(source, matrix), encoder_layers)
    return decoder(embed(shifted_target, matrix), memory, decoder_layers) @ matrix.T


def smoothed_targets(gold: int, vocabulary_size: int, epsilon: float) -> Array:
    """Section 5.4: 1 - epsilon for the gold id, the rest equally over all others."""
    q = np.full(vocabulary_size, epsilon / (vocabulary_size - 1))
    q[gold] = 1.0 - epsilon
    return q


def cross_entropy(scores: Array, q: Array) -> float:
    """-sum_k q(k) log softmax(scores)(k), in nats."""
    return float(-(q * np.log(softmax(scores))).sum())


def learning_rate(step_num: int, d_model: int, warmup_steps: int) -> float:
    """Equation 3."""
    return d_model**-0.5 * min(step_num**-0.5, step_num * warmup_steps**-1.5)
