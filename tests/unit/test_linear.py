"""The ways to a product against torch's own, values and gradients, and the rules that choose between them."""

from collections.abc import Iterator
from typing import Optional

import pytest
import torch
from torch.nn import functional

from vaswani_plugin.modules import linear as products
from vaswani_plugin.modules import processor


@pytest.fixture
def _onednn(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(processor.OVERRIDE, "onednn")
    processor.prefers_onednn.cache_clear()
    assert processor.prefers_onednn()
    yield
    processor.prefers_onednn.cache_clear()


@pytest.mark.usefixtures("_onednn")
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (2, 7, 5), (0, 5), (2, 3, 4, 33)])
@pytest.mark.parametrize("with_bias", [True, False])
def test_values_and_gradients_are_those_of_torch(shape: "tuple[int, ...]", with_bias: bool) -> None:
    generator = torch.Generator().manual_seed(1)

    def inputs() -> "tuple[torch.Tensor, torch.Tensor, Optional[torch.Tensor]]":
        generator.manual_seed(1)
        x, weight = torch.randn(shape, generator=generator), torch.randn(6, shape[-1], generator=generator)
        bias = torch.randn(6, generator=generator).requires_grad_() if with_bias else None
        return x.requires_grad_(), weight.requires_grad_(), bias

    mine, other = inputs(), inputs()
    results = [products.linear(*mine), functional.linear(*other)]
    torch.testing.assert_close(*results)
    for result in results:
        (result * torch.randn(result.shape, generator=generator.manual_seed(2))).sum().backward()
    for one, two in zip(mine, other):
        assert one is None or torch.testing.assert_close(one.grad, two.grad) is None


@pytest.mark.usefixtures("_onednn")
def test_transposed_operands() -> None:
    a, b = torch.randn(5, 4), torch.randn(4, 7)
    torch.testing.assert_close(products.product(a, b.T), a @ b)
    torch.testing.assert_close(products.product(a.T, b.new_ones(3, 5)), a.T @ b.new_ones(5, 3))


@pytest.mark.usefixtures("_onednn")
def test_autocast_and_float64_stay_with_torch() -> None:
    x, weight = torch.randn(3, 5), torch.randn(6, 5)
    with torch.autocast("cpu", torch.bfloat16):
        assert products.linear(x, weight).dtype == torch.bfloat16
    assert torch.equal(products.linear(x.double(), weight.double()), functional.linear(x.double(), weight.double()))


@pytest.mark.parametrize(
    ("capability", "vendor", "chosen"),
    [
        ("AVX512", "AuthenticAMD", True),
        ("AVX512", "GenuineIntel", False),
        ("AVX2", "AuthenticAMD", False),
        ("AVX512", "", False),
    ],
)
def test_the_rule(capability: str, vendor: str, chosen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(processor.OVERRIDE, raising=False)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(processor, "_cpuinfo", {"vendor_id": vendor}.get)
    processor.prefers_onednn.cache_clear()
    assert processor.prefers_onednn() is chosen
    processor.prefers_onednn.cache_clear()


def test_the_override(monkeypatch: pytest.MonkeyPatch) -> None:
    processor.prefers_onednn.cache_clear()
    monkeypatch.setenv(processor.OVERRIDE, "torch")
    assert not processor.prefers_onednn()
    processor.prefers_onednn.cache_clear()
    monkeypatch.setenv(processor.OVERRIDE, "mkl")
    for rule in (processor.prefers_onednn, processor.multiplies_packed.__wrapped__):
        with pytest.raises(ValueError, match="VASWANI_MATRIX_PRODUCTS=mkl must be torch or onednn"):
            rule()
    processor.prefers_onednn.cache_clear()


@pytest.fixture
def _emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "multiplies_bfloat16", lambda: False)
    monkeypatch.setattr(products, "prefers_onednn", lambda: False)


def rounded(x: torch.Tensor) -> torch.Tensor:
    return x.detach().bfloat16().double()


@pytest.mark.usefixtures("_emulated")
@pytest.mark.parametrize("shape", [(5,), (1, 1), (3, 5), (2, 7, 5), (0, 5), (2, 3, 4, 33), (1030, 8)])
@pytest.mark.parametrize("autocast", [True, False])
def test_bfloat16_by_float32_is_the_product_of_rounded_numbers(shape: "tuple[int, ...]", autocast: bool) -> None:
    torch.manual_seed(1)
    dtype = torch.float32 if autocast else torch.bfloat16
    x, weight, bias = (torch.randn(size, dtype=dtype).requires_grad_() for size in (shape, (6, shape[-1]), (6,)))
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        result = products.linear(x, weight, bias)
    gradient = torch.randn(result.shape, dtype=torch.bfloat16)
    result.backward(gradient)

    assert result.dtype == torch.bfloat16
    rows, rows_x = (each.reshape(-1, each.size(-1)) for each in (gradient.double(), rounded(x)))
    for got, exact in (
        (result, rounded(x) @ rounded(weight).T + rounded(bias)),
        (x.grad, gradient.double() @ rounded(weight)),
        (weight.grad, rows.T @ rows_x),
        (bias.grad, rows.sum(0)),
    ):
        # Half a unit in the last of 8 bits, and what the sums in float32 lack.
        torch.testing.assert_close(got.double(), exact, rtol=2**-8, atol=1e-5)
    assert [each.grad.dtype for each in (x, weight, bias)] == [dtype] * 3


@pytest.mark.parametrize("multiplies", [True, False])
@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_operands_are_rounded(multiplies: bool, precision: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "multiplies_bfloat16", lambda: multiplies)
    x = torch.randn(5, 40)
    made = products.operand(x, precision)
    assert torch.equal(made.double(), x.to(precision).double())
    emulated = precision == torch.bfloat16 and not multiplies
    assert made.dtype == (torch.float32 if emulated else precision)


@pytest.mark.usefixtures("_emulated")
def test_only_bfloat16_goes_by_float32() -> None:
    x, weight = torch.randn(3, 5), torch.randn(6, 5)
    assert torch.equal(products.linear(x, weight), functional.linear(x, weight))
    with torch.autocast("cpu", torch.bfloat16):
        assert products.linear(x.double(), weight.double()).dtype == torch.float64
    with torch.autocast("cpu", torch.float16):
        assert products.linear(x, weight).dtype == torch.float16


@pytest.mark.parametrize(
    ("machine", "capability", "vendor", "flags", "multiplies"),
    [
        ("x86_64", "AVX2", "AuthenticAMD", "sse avx2", False),
        ("AMD64", "DEFAULT", "", "", False),
        ("x86_64", "AVX512", "AuthenticAMD", "avx512f avx512_bf16", True),
        ("x86_64", "AVX512", "GenuineIntel", "avx512f avx512_bf16", False),
        ("x86_64", "AVX512", "GenuineIntel", "avx512f", False),
        ("x86_64", "AVX512", "GenuineIntel", "avx512f avx512_bf16 amx_bf16", True),
        ("x86_64", "AVX2", "GenuineIntel", "avx512f avx512_bf16 amx_bf16", False),
        ("aarch64", "DEFAULT", "", "", True),
    ],
)
def test_the_rule_for_bfloat16(
    machine: str, capability: str, vendor: str, flags: str, multiplies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor.platform, "machine", lambda: machine)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(processor, "_cpuinfo", {"vendor_id": vendor, "flags": flags}.get)
    processor.multiplies_bfloat16.cache_clear()
    assert processor.multiplies_bfloat16() is multiplies
    processor.multiplies_bfloat16.cache_clear()


@pytest.fixture
def multiplied(monkeypatch: pytest.MonkeyPatch) -> "list[torch.Tensor]":
    """The matrices that oneDNN multiplied by, on a processor that gains by packed ones."""
    seen: list[torch.Tensor] = []
    multiply = products._onednn

    def recorded(x: torch.Tensor, matrix: torch.Tensor, bias: Optional[torch.Tensor]) -> torch.Tensor:
        seen.append(matrix)
        return multiply(x, matrix, bias)

    monkeypatch.setattr(products, "multiplies_packed", lambda: True)
    monkeypatch.setattr(products, "prefers_onednn", lambda: False)
    monkeypatch.setattr(products, "_onednn", recorded)
    return seen


@pytest.mark.parametrize("shape", [(4, 5), (64, 33), (2, 7, 5), (0, 5), (3, 5)])
@pytest.mark.parametrize("with_bias", [True, False])
def test_packed_matrices(shape: "tuple[int, ...]", with_bias: bool, multiplied: "list[torch.Tensor]") -> None:
    torch.manual_seed(1)
    x, module = torch.randn(shape), products.Linear(shape[-1], 6, bias=with_bias)
    products.pack(module.weight)
    with torch.no_grad():
        result = module(x)
    torch.testing.assert_close(result, functional.linear(x, module.weight, module.bias))
    assert len(multiplied) == (x.numel() >= 4 * shape[-1] > 0)


def test_packed_matrices_are_those_of_the_weights(multiplied: "list[torch.Tensor]") -> None:
    """Not after a change, in another place or type, or where a gradient is wanted."""
    x, module = torch.randn(8, 5), products.Linear(5, 6)
    products.pack(module.weight)
    module(x).sum().backward()
    assert module.weight.grad is not None
    with torch.no_grad():
        module.weight.data += module.weight.grad  # as fairseq's optimisers do, which torch's count of changes misses
        torch.testing.assert_close(module(x), functional.linear(x, module.weight, module.bias))
    products.pack(module.weight)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        module(x)
    with torch.no_grad():
        module.weight[2, 3] += 1.0
        torch.testing.assert_close(module(x), functional.linear(x, module.weight, module.bias))
        products.pack(module.weight)
        module.half().float()
        module(x)
        products.pack(module.weight)
        module.double()(x.double())
    assert multiplied == []
    with torch.inference_mode():
        inside = products.Linear(5, 6)
        products.pack(inside.weight)
        inside(x)


@pytest.mark.parametrize(
    ("capability", "choice", "gains"),
    [("AVX512", None, True), ("AVX2", None, False), ("AVX512", "torch", False), ("AVX512", "onednn", True)],
)
def test_the_rule_for_packed_matrices(
    capability: str, choice: Optional[str], gains: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(processor.OVERRIDE, raising=False)
    if choice is not None:
        monkeypatch.setenv(processor.OVERRIDE, choice)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert processor.multiplies_packed.__wrapped__() is gains
