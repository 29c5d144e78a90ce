"""Attention against the formula in NumPy, torch's own module and numerical derivatives."""

import math

import numpy as np
import pytest
import reference
import torch
from stock_weights import numpy_attention, randomize
from torch.nn import functional

from vaswani_plugin.modules import CrossAttention, LayerConfig, SelfAttention, attention
from vaswani_plugin.modules.attention import causal_mask, fused_attention

FREE_WIDTHS = LayerConfig(d_model=12, num_heads=3, d_k=5, d_v=2)


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def legal_connections() -> torch.Tensor:
    """(2, 1, 4, 5): sentence 0 mixed, sentence 1 with a query that has no legal key."""
    mask = torch.tensor([[1, 1, 0, 1, 0], [1, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]], dtype=torch.bool)
    other = mask.clone()
    other[2] = False
    return torch.stack([mask, other]).unsqueeze(1)


@pytest.mark.parametrize("compute", ["plain", "fused"])
@pytest.mark.parametrize("mask", [None, legal_connections()])
def test_attention_is_equation_1(compute: str, mask: "torch.Tensor | None") -> None:
    q, k, v = random(2, 3, 4, 6, seed=1), random(2, 3, 5, 6, seed=2), random(2, 3, 5, 7, seed=3)
    result = attention(q, k, v, mask)[0] if compute == "plain" else fused_attention(q, k, v, mask)
    for sentence in range(2):
        legal = None if mask is None else mask[sentence, 0].numpy()
        for head in range(3):
            expected, _ = reference.attention(*(x[sentence, head].numpy() for x in (q, k, v)), legal)
            np.testing.assert_allclose(result[sentence, head].numpy(), expected, atol=1e-12)


def test_weights_of_three_tokens() -> None:
    """X = [[1, 0], [0, 1], [1, 1]] as queries, keys and values: weights by hand from exp(1 / sqrt 2), exp(sqrt 2)."""
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]).view(1, 1, 3, 2)
    _, weights = attention(x, x, x)
    a, b = math.exp(1 / math.sqrt(2)), math.exp(2 / math.sqrt(2))
    expected = torch.tensor([[a, 1.0, a], [1.0, a, a], [a, a, b]])
    expected /= expected.sum(1, keepdim=True)
    torch.testing.assert_close(weights[0, 0], expected)
    torch.testing.assert_close(weights[0, 0, 0], torch.tensor([0.4011, 0.1978, 0.4011]), atol=5e-5, rtol=0)
    torch.testing.assert_close(weights[0, 0, 2], torch.tensor([0.2483, 0.2483, 0.5035]), atol=5e-5, rtol=0)


@pytest.mark.parametrize("d_k", [4, 16, 64, 256])
def test_scaling_keeps_the_variance_of_scores(d_k: int) -> None:
    """Why the paper scales: q k of independent components N(0, 1) has variance d_k, the scaled score 1.

    log softmax moves the scores of a query by a constant, so their variance over the keys is that of its logarithms.
    """
    q, k = random(1, 1, 2000, d_k, seed=1), random(1, 1, 500, d_k, seed=2)
    _, weights = attention(q, k, torch.zeros(1, 1, 500, 1, dtype=torch.float64))
    assert (q @ k.transpose(-2, -1)).var(-1).mean().item() == pytest.approx(d_k, rel=0.1)
    assert weights.log().var(-1).mean().item() == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_illegal_connections_weigh_exactly_zero(dtype: torch.dtype) -> None:
    q, k, v = (random(2, 3, n, 6, seed=n, dtype=dtype) for n in (4, 5, 5))
    mask = legal_connections()
    _, weights = attention(q, k, v, mask)
    assert (weights.masked_select(~mask) == 0.0).all()
    sums = weights.float().sum(-1)
    torch.testing.assert_close(sums, mask.any(-1).float().expand_as(sums), atol=4e-3, rtol=0)
    # A value behind an illegal connection must not matter, however large: 0 times anything finite is 0.
    loud = v.masked_fill(torch.tensor([False, True, False, False, False]).view(1, 1, 5, 1), 6e4)
    only_legal = torch.tensor([True, False, True, True, True]).expand(2, 1, 4, 5)
    assert torch.equal(fused_attention(q, k, loud, only_legal), fused_attention(q, k, v, only_legal))


@pytest.mark.parametrize("compute", [lambda *a: attention(*a)[0], fused_attention])
def test_query_without_legal_key_gets_zeros_and_no_gradient(compute: "callable") -> None:
    q, k, v = (random(1, 1, n, 4, seed=n, dtype=torch.float32).requires_grad_() for n in (2, 3, 3))
    mask = torch.tensor([[True, True, False], [False, False, False]]).view(1, 1, 2, 3)
    result = compute(q, k, v, mask)
    assert (result[0, 0, 1] == 0.0).all()
    result.sum().backward()
    for x in (q, k, v):
        assert x.grad is not None
        assert torch.isfinite(x.grad).all()
    assert (q.grad[0, 0, 1] == 0.0).all()


def test_causal_kernel_is_the_lower_triangle() -> None:
    q, k, v = (random(2, 3, 6, 4, seed=n) for n in (1, 2, 3))
    torch.testing.assert_close(fused_attention(q, k, v, causal=True), attention(q, k, v, causal_mask(6, q.device))[0])
    assert causal_mask(3, q.device).tolist() == [[True, False, False], [True, True, False], [True, True, True]]


def test_dropout_drops_weights_before_the_values() -> None:
    """With values = identity the output shows the weights: each either 0 or weight / (1 - p)."""
    q, k = random(1, 1, 40, 8, seed=1), random(1, 1, 40, 8, seed=2)
    dropped, weights = attention(q, k, torch.eye(40, dtype=torch.float64).view(1, 1, 40, 40), dropout=0.25)
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], (weights / 0.75)[kept])
    assert 0.70 < kept.double().mean() < 0.80


@pytest.mark.parametrize("compute", [lambda *a: attention(*a)[0], fused_attention])
def test_gradients(compute: "callable") -> None:
    q, k, v = (random(2, 2, n, 3, seed=n).requires_grad_() for n in (4, 5, 5))
    assert torch.autograd.gradcheck(lambda *x: compute(*x, legal_connections()), (q, k, v))


@pytest.mark.parametrize("need_weights", [False, True])
def test_multi_head_attention_with_free_widths(need_weights: bool) -> None:
    """d_k and d_v unrelated to d_model, Table 3 rows (B)."""
    for kind in (SelfAttention, CrossAttention):
        module = kind(FREE_WIDTHS).double().eval()
        randomize(module)
        x, memory = random(1, 4, 12, seed=4), random(1, 6, 12, seed=5)
        inputs = (x,) if kind is SelfAttention else (x, memory)
        result, weights = module(*inputs, need_weights=need_weights)
        weights_of_heads = numpy_attention(module, FREE_WIDTHS)
        expected = reference.multi_head(x[0].numpy(), inputs[-1][0].numpy(), weights_of_heads)
        np.testing.assert_allclose(result[0].detach().numpy(), expected, atol=1e-12)
        assert (weights is not None) == need_weights


@pytest.mark.parametrize("need_weights", [False, True])
def test_weights_are_dropped_in_training_only(need_weights: bool) -> None:
    config = LayerConfig(d_model=12, num_heads=3, d_k=5, d_v=2, attention_dropout=0.5)
    module = SelfAttention(config).double().eval()
    randomize(module)
    x = random(1, 4, 12, seed=4)
    expected = reference.multi_head(x[0].numpy(), x[0].numpy(), numpy_attention(module, config))
    for _ in range(3):
        np.testing.assert_allclose(module(x, need_weights=need_weights)[0][0].detach(), expected, atol=1e-12)
    assert not torch.equal(module.train()(x)[0], module(x)[0])


def test_bias_switch_adds_all_four_biases_as_torch_has_them() -> None:
    config = LayerConfig(d_model=8, num_heads=2, d_k=4, d_v=4, attention_bias=True)
    module = SelfAttention(config).double()
    assert all((p == 0).all() for name, p in module.named_parameters() if name.endswith("bias"))
    randomize(module)
    x = random(2, 5, 8)
    weight, bias = module.query_key_value.weight, module.query_key_value.bias
    expected, _ = functional.multi_head_attention_forward(
        *[x.transpose(0, 1)] * 3, 8, 2, weight, bias, None, None, False, 0.0, module.output.weight, module.output.bias
    )
    torch.testing.assert_close(module(x)[0], expected.transpose(0, 1))


@pytest.mark.parametrize(
    ("kind", "name", "limit"),
    [
        (SelfAttention, "query_key_value", 0.0541266),
        (SelfAttention, "output", 0.0765466),
        (CrossAttention, "query", 0.0765466),
        (CrossAttention, "key_value", 0.0625),
    ],
)
def test_initial_weights_fill_the_glorot_interval(kind: type, name: str, limit: float) -> None:
    """Limits sqrt(6 / (fan_in + fan_out)) of the (fused) matrices of the base model."""
    weight = getattr(kind(LayerConfig()), name).weight
    assert weight.abs().max().item() == pytest.approx(limit, rel=1e-3)
    assert weight.std().item() == pytest.approx(limit / math.sqrt(3), rel=1e-2)


def test_initial_interval_follows_narrow_keys() -> None:
    """d_k = 16 (Table 3, B): sqrt(6 / (512 + 2 * 128 + 512))."""
    weight = SelfAttention(LayerConfig(d_k=16)).query_key_value.weight
    assert weight.abs().max().item() == pytest.approx(0.0684653, rel=1e-3)
