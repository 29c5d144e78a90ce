"""Products with 8-bit integers against the same integers in NumPy, and how far they are from real numbers."""

import math
from typing import Optional

import numpy as np
import pytest
import torch

from vaswani_plugin.modules import int8_linear
from vaswani_plugin.modules.int8_linear import Int8Linear, largest_integer

SHAPES = [(1, 1, 1), (1, 3, 5), (7, 13, 3), (4, 33, 65), (65, 512, 31), (3, 2048, 129), (260, 48, 17), (0, 5, 6)]


@pytest.fixture(params=sorted({90, largest_integer()}), autouse=True)
def steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The largest integer: what is right on every processor, and this one's own."""
    monkeypatch.setattr(int8_linear, "largest_integer", lambda: request.param)
    return request.param


def numpy_rounded(rows: np.ndarray, steps: int) -> "tuple[np.ndarray, np.ndarray]":
    """Integers from -steps to steps, and the scale of each row."""
    largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True, initial=0), 1e-30)
    return np.rint(rows * (steps / largest)).astype(np.int64), largest / steps


def numpy_product(x: np.ndarray, weight: np.ndarray, bias: "Optional[np.ndarray]", steps: int) -> np.ndarray:
    (x_integers, x_scale), (w_integers, w_scale) = numpy_rounded(x, steps), numpy_rounded(weight, steps)
    product = (x_integers @ w_integers.T) * x_scale.astype(np.float64) * w_scale.T
    return product if bias is None else product + bias


def operands(rows: int, inputs: int, outputs: int) -> "tuple[torch.Tensor, torch.Tensor, torch.Tensor]":
    generator = torch.Generator().manual_seed(rows + inputs)
    x, weight = torch.randn(rows, inputs, generator=generator), torch.randn(outputs, inputs, generator=generator)
    # Channels and positions of very different sizes.
    scales, bias = torch.randn(rows + outputs, 1, generator=generator), torch.randn(outputs, generator=generator)
    return x * 10 ** scales[:rows], weight * 10 ** scales[rows:], bias


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("with_bias", [True, False])
def test_product_is_that_of_the_integers(shape: "tuple[int, int, int]", with_bias: bool, steps: int) -> None:
    x, weight, bias = operands(*shape)
    result = Int8Linear(weight, bias if with_bias else None)(x)
    expected = numpy_product(x.numpy(), weight.numpy(), bias.numpy() if with_bias else None, steps)
    assert result.shape == (shape[0], shape[2])
    assert result.dtype == torch.float32
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max(initial=0))


@pytest.mark.parametrize(("highest", "expected"), [(math.inf, 127), (2 * 2**15 - 1, 90)])
def test_integers_are_smaller_where_sums_are_clipped(
    highest: float, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As without VNNI: 64 products of 255 and 127 in twos, each at most 2^15 - 1, in place of 64,770."""

    def product(matrix: object, moved: torch.Tensor) -> torch.Tensor:
        return moved.sum(dim=1, dtype=torch.float32).mul(127).clamp(max=16 * highest).unsqueeze(1)

    monkeypatch.setattr(int8_linear._PackedMatrix, "product", product)
    assert largest_integer.__wrapped__() == expected


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("inputs", [1, 2, 64, 4096])
def test_the_largest_sums_are_not_clipped(inputs: int, sign: float) -> None:
    """Neighbouring products are the largest there can be, which processors without VNNI add in 16 bits."""
    result = Int8Linear(sign * torch.ones(5, inputs))(torch.ones(3, inputs))
    np.testing.assert_allclose(result.numpy(), sign * inputs, rtol=1e-6)
    alternating = torch.ones(4, inputs)
    alternating[1::2] = -1.0
    result = Int8Linear(sign * torch.ones(5, inputs))(alternating)
    expected = sign * inputs * alternating[:, :1].expand(4, 5)
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-6)


@pytest.mark.parametrize("shape", SHAPES[:-1])
def test_error_of_each_channel_is_bounded(shape: "tuple[int, int, int]", steps: int) -> None:
    """Each number is off by half a step at most, a step being 1/90 or 1/127 of the largest of its row."""
    x, weight, _ = (tensor.double() for tensor in operands(*shape))
    error = (Int8Linear(weight.float())(x.float()).double() - x @ weight.T).abs()
    x_half, w_half = (rows.abs().amax(dim=1, keepdim=True) / steps / 2 for rows in (x, weight))
    bound = x_half * weight.abs().sum(1) + x.abs().sum(1, keepdim=True) * w_half.T + shape[1] * x_half * w_half.T
    assert (error <= bound * (1 + 1e-4) + 1e-30).all()


def test_a_row_does_not_depend_on_its_batch() -> None:
    x, weight, bias = operands(70, 64, 37)
    module = Int8Linear(weight, bias)
    whole = module(x)
    for row in (0, 1, 31, 69):
        assert torch.equal(module(x[row : row + 1])[0], whole[row])
    assert torch.equal(module(x.view(7, 2, 5, 64)).view(70, 37), whole)


def test_zeros() -> None:
    x, weight, bias = operands(5, 16, 6)
    x[2], weight[3] = 0.0, 0.0
    result = Int8Linear(weight, bias)(x)
    assert torch.equal(result[2], bias)
    assert torch.equal(result[:, 3], bias[3].expand(5))
    assert torch.isfinite(result).all()
    assert (Int8Linear(weight * 0.0)(x * 0.0) == 0.0).all()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_no_number_stays_so(bad: float) -> None:
    x, weight, _ = operands(4, 8, 5)
    module = Int8Linear(weight)
    x[1, 3] = bad
    finite = module(x).isfinite()
    assert not finite[1].any()
    assert finite[[0, 2, 3]].all()
    weight[2, 6] = bad
    assert not Int8Linear(weight)(x)[:, 2].isfinite().any()


def test_numbers_are_rounded_to_the_nearest_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of 0.01, of 4/90 and none."""
    monkeypatch.setattr(int8_linear, "largest_integer", lambda: 90)
    rows = [[0.9, -0.634, 0.0, 0.026, -0.006], [3.0, 0.0, -4.0, 1.1, 0.02], [0.0, 0.0, 0.0, 0.0, 0.0]]
    result = Int8Linear(torch.eye(5))(torch.tensor(rows))
    integers = [[90, -63, 0, 3, -1], [68, 0, -90, 25, 0], [0, 0, 0, 0, 0]]
    expected = torch.tensor(integers) * torch.tensor([[0.01], [4 / 90], [1.0]])
    torch.testing.assert_close(result, expected, atol=1e-6, rtol=1e-6)
