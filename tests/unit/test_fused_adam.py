"""Adam's fused step beside the formula in float64, epsilon added as the code released with the paper does."""

import random
from argparse import Namespace
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.optim.adam import Adam, FairseqAdam
from fairseq.optim.fused_adam_step import fused_adam_step
from fixed_models import criterion
from toy_task import ToyTask
from trained_toy import WORDS, batch, sentence

from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer

SETTING = {"lr": 1e-3, "betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 0.0}
SHAPES = [(37, 53), (5,), (1, 1), (256, 17)]


def gradients(shape: "tuple[int, ...]", updates: int) -> "list[torch.Tensor]":
    """Of sizes from far below epsilon to 1; a tenth of them 0."""
    generator = torch.Generator().manual_seed(len(shape) + sum(shape))
    numbers = torch.randn(updates, *shape, generator=generator)
    sizes = torch.randint(-10, 1, (updates, *shape), generator=generator)
    zero = torch.rand(updates, *shape, generator=generator) < 0.1
    return list((numbers * 10.0**sizes).masked_fill(zero, 0.0))


def by_the_formula(start: torch.Tensor, grads: "list[torch.Tensor]", setting: "dict[str, Any]") -> np.ndarray:
    p = start.double().numpy().copy()
    beta1, beta2 = setting["betas"]
    m, v = np.zeros_like(p), np.zeros_like(p)
    for t, grad in enumerate(grads, 1):
        g = grad.double().numpy()
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        p -= setting["lr"] * setting["weight_decay"] * p
        p -= setting["lr"] * np.sqrt(1 - beta2**t) / (1 - beta1**t) * m / (np.sqrt(v) + setting["eps"])
    return p


def starts() -> "list[torch.Tensor]":
    torch.manual_seed(3)
    return [torch.nn.Parameter(torch.randn(shape)) for shape in SHAPES]


def steps(optimizer: Adam, parameters: "list[torch.Tensor]", grads: "list[list[torch.Tensor]]") -> None:
    for together in zip(*grads):
        for p, grad in zip(parameters, together):
            p.grad = grad.clone()
        optimizer.step()


@pytest.mark.parametrize(
    "changed", [{}, {"eps": 1e-2}, {"weight_decay": 0.1}, {"betas": (0.8, 0.999)}, {"lr": 0.5}], ids=str
)
def test_forty_updates_are_those_of_the_formula(changed: "dict[str, Any]") -> None:
    setting = {**SETTING, **changed}
    parameters, grads = starts(), [gradients(shape, 40) for shape in SHAPES]
    expected = [by_the_formula(p.detach(), g, setting) for p, g in zip(parameters, grads)]
    steps(Adam(parameters, fused=True, **setting), parameters, grads)
    for p, exact in zip(parameters, expected):
        # Each update rounds the parameter once or, with weight decay, twice.
        np.testing.assert_allclose(p.detach().numpy(), exact, rtol=40 * 2.0**-23, atol=40 * setting["lr"] * 1e-6)


@pytest.mark.parametrize(("first", "then"), [(True, False), (False, True)], ids=["to separate", "to fused"])
def test_a_state_goes_on_with_the_other_kind_of_step(first: bool, then: bool) -> None:
    parameters, grads = starts(), [gradients(shape, 20) for shape in SHAPES]
    expected = [by_the_formula(p.detach(), g, SETTING) for p, g in zip(parameters, grads)]
    before, after = (Adam(parameters, fused=fused, **SETTING) for fused in (first, then))
    steps(before, parameters, [g[:10] for g in grads])
    after.load_state_dict(before.state_dict())
    steps(after, parameters, [g[10:] for g in grads])
    assert {after.state[p]["step"] for p in parameters} == {20}
    for p, exact in zip(parameters, expected):
        np.testing.assert_allclose(p.detach().numpy(), exact, rtol=20 * 2.0**-23, atol=20 * SETTING["lr"] * 1e-6)


def test_a_parameter_that_joins_later_counts_its_own_updates() -> None:
    early, late = starts()[:2]
    grads = [gradients(tuple(p.shape), 10) for p in (early, late)]
    expected = [by_the_formula(early.detach(), grads[0], SETTING), by_the_formula(late.detach(), grads[1][4:], SETTING)]
    optimizer = Adam([early, late], fused=True, **SETTING)
    steps(optimizer, [early], [grads[0][:4]])
    steps(optimizer, [early, late], [g[4:] for g in grads])
    for p, exact in zip((early, late), expected):
        np.testing.assert_allclose(p.detach().numpy(), exact, rtol=10 * 2.0**-23, atol=10 * SETTING["lr"] * 1e-6)


@pytest.mark.parametrize("transposed", ["parameter", "gradient", "both"])
def test_elements_in_another_order_meet_their_own_gradients(transposed: str) -> None:
    # torch's kernel goes through memory and would pair them wrongly, without an error.
    start, grads = torch.randn(7, 9, generator=torch.Generator().manual_seed(1)), gradients((7, 9), 10)
    expected = by_the_formula(start, grads, SETTING)
    p = torch.nn.Parameter(start.t().contiguous().t() if transposed != "gradient" else start.clone())
    optimizer = Adam([p], fused=True, **SETTING)
    for grad in grads:
        p.grad = grad.t().contiguous().t() if transposed != "parameter" else grad
        optimizer.step()
    np.testing.assert_allclose(p.detach().numpy(), expected, rtol=10 * 2.0**-23, atol=10 * SETTING["lr"] * 1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions_are_left_to_separate_operations(dtype: torch.dtype) -> None:
    full, other = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3, dtype=dtype))
    full.grad, other.grad = torch.ones(3), torch.ones(3, dtype=dtype)
    optimizer = Adam([full, other], fused=True, **SETTING)
    assert not fused_adam_step(optimizer)
    assert not optimizer.state
    assert torch.equal(full, torch.ones(3))
    optimizer.step()
    # The first step is lr against the gradient's sign, whatever its size.
    torch.testing.assert_close(full.detach(), torch.full((3,), 1 - 1e-3))
    torch.testing.assert_close(other.detach(), torch.full((3,), 1 - 1e-3, dtype=dtype))


@pytest.mark.parametrize("changed", [{"lr": 1e300}, {"lr": 1e30, "weight_decay": 1e30}], ids=str)
def test_a_step_beyond_float32_is_refused_as_before(changed: "dict[str, Any]") -> None:
    p = torch.nn.Parameter(torch.ones(3))
    p.grad = torch.ones(3)
    with pytest.raises(RuntimeError, match="cannot be converted to type float without overflow"):
        Adam([p], fused=True, **{**SETTING, **changed}).step()
    assert torch.equal(p.detach(), torch.ones(3))


def test_sparse_gradients_are_refused_as_before() -> None:
    table = torch.nn.Embedding(5, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        Adam(table.parameters(), fused=True, **SETTING).step()


def test_all_of_this_model_s_gradients_fit_the_kernel() -> None:
    torch.manual_seed(1)
    sizes = {"num_layers": 2, "d_model": 32, "d_ff": 64, "num_heads": 4, "max_source_positions": 64}
    model = VaswaniTransformer.build_model({**sizes, "max_target_positions": 64}, ToyTask(WORDS)).train()
    choose = random.Random(0)
    loss, _, _ = criterion(0.1)(model, batch([sentence(choose, 8) for _ in range(8)]))
    loss.backward()
    assert fused_adam_step(Adam(model.parameters(), fused=True, **SETTING))


@pytest.mark.parametrize("separate", [False, True])
def test_use_old_adam_keeps_the_separate_operations(separate: bool) -> None:
    flags = Namespace(
        lr=[1e-3], adam_betas="(0.9, 0.98)", adam_eps=1e-9, weight_decay=0.0, use_old_adam=separate, tpu=False
    )
    flags.fp16_adam_stats = False
    assert FairseqAdam(flags, starts()).optimizer.fused is not separate
