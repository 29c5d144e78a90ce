"""Dropout on CPU: rate, scale, gradient, independence, and that the random state decides it."""

import pytest
import torch

from vaswani_plugin.modules.dropout import Dropout, random_keep


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.9])
def test_rate_and_scale(rate: float) -> None:
    torch.manual_seed(1)
    keep, probability = random_keep(torch.empty(1001, 999), rate)
    assert probability == pytest.approx(1 - rate, abs=2**-17)
    n = keep.numel()
    # Six standard deviations of a binomial share.
    assert keep.double().mean().item() == pytest.approx(probability, abs=6 * (rate * (1 - rate) / n) ** 0.5)
    x = torch.full((1001, 999), 2.0)
    y = Dropout(rate).train()(x)
    assert sorted(y.unique().tolist()) == pytest.approx([0.0, 2.0 / probability])


def test_each_of_the_four_numbers_of_a_draw_is_uniform_and_independent() -> None:
    torch.manual_seed(2)
    keep, _ = random_keep(torch.empty(4 * 100_000), 0.5)
    columns = keep.view(-1, 4).double()
    assert (columns.mean(0) - 0.5).abs().max() < 6 * 0.5 / 100_000**0.5
    correlation = torch.corrcoef(columns.T) - torch.eye(4, dtype=torch.float64)
    assert correlation.abs().max() < 6 / 100_000**0.5


def test_gradient_passes_where_the_value_passed() -> None:
    torch.manual_seed(3)
    x = torch.ones(50, 40, requires_grad=True)
    y = Dropout(0.3).train()(x)
    y.backward(torch.full_like(y, 5.0))
    torch.testing.assert_close(x.grad, 5.0 * y.detach())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_with_a_residual_it_is_the_sum(dtype: torch.dtype) -> None:
    """Values and gradients of residual + Dropout(x); in mixed precision x has fewer bits than the residual."""
    choose = torch.Generator().manual_seed(5)
    x = torch.randn(50, 40, generator=choose).to(dtype).requires_grad_()
    residual = torch.randn(50, 40, generator=choose).requires_grad_()
    gradient = torch.randn(50, 40, generator=choose)
    layer = Dropout(0.3).train()
    torch.manual_seed(6)
    total = layer(x * 1.0, residual)
    grad_x, grad_residual = torch.autograd.grad(total, (x, residual), gradient)
    torch.manual_seed(6)
    expected = residual.double() + layer((x.detach() * 1.0).double())
    torch.testing.assert_close(total.double(), expected, rtol=1e-6, atol=1e-6)
    dropped = total.detach() == residual.detach()
    assert 0.2 < dropped.double().mean() < 0.4
    torch.testing.assert_close(grad_x.float(), gradient.masked_fill(dropped, 0.0) / 0.7, rtol=0.005, atol=1e-4)
    assert grad_x.dtype == dtype
    assert torch.equal(grad_residual, gradient)


def test_a_residual_is_added_outside_of_training_too() -> None:
    x, residual = torch.randn(5), torch.randn(5)
    assert torch.equal(Dropout(0.5).eval()(x, residual), residual + x)
    assert torch.equal(Dropout(0.0).train()(x, residual), residual + x)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5])
def test_odd_sizes(size: int) -> None:
    assert Dropout(0.5).train()(torch.ones(size)).shape == (size,)


def test_same_random_state_same_mask() -> None:
    masks = []
    for _ in range(2):
        torch.manual_seed(4)
        masks.append(Dropout(0.3).train()(torch.ones(100, 7)))
    assert torch.equal(*masks)
    assert not torch.equal(masks[0], Dropout(0.3).train()(torch.ones(100, 7)))


def test_nothing_happens_outside_of_training_or_at_rate_zero() -> None:
    x = torch.randn(5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0).train()(x) is x


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_dtype_is_kept(dtype: torch.dtype) -> None:
    assert Dropout(0.5).train()(torch.ones(9, dtype=dtype)).dtype == dtype
