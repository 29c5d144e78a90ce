"""Trainings in which a loss, a gradient or a validation is not finite at a stated place."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from vaswani_plugin.criterions.label_smoothing import VaswaniLabelSmoothingCriterion

WEIGHT = "decoder.stack.layers.1.feed_forward.inner.weight"
ADVICE = "; the learning rate is probably too high: lower it (--lr-factor, or --lr) or lengthen --warmup-updates"
HALF = "; or float16 is too narrow, and --bf16 or --mixed-precision will do"

Spoiling = Callable[[Any, Any], Any]
"""From model and loss to the loss that is used."""


def loss_times(value: float) -> Spoiling:
    return lambda model, loss: loss * value


def gradient_of(name: str, value: float) -> Spoiling:
    """The loss stays what it is; each number of the weight's gradient has ``value`` added."""

    def spoil(model: Any, loss: Any) -> Any:
        parameter = dict(model.named_parameters())[name]
        return loss + _Slope.apply(parameter, value)

    return spoil


class _Slope(torch.autograd.Function):
    """0, with a gradient of ``slope`` for every number."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, slope: float) -> torch.Tensor:
        ctx.shape, ctx.slope = x, slope
        return x.new_zeros(())

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> "tuple[torch.Tensor, None]":
        return torch.full_like(ctx.shape, ctx.slope) * gradient, None


def spoil(
    monkeypatch: pytest.MonkeyPatch, spoiling: Spoiling, batches: "set[int] | None" = None, training: bool = True
) -> None:
    """Spoil the loss of the training (or validation) batches of these numbers, from 1, or of all."""
    original = VaswaniLabelSmoothingCriterion.forward
    seen = 0

    def forward(self: Any, model: Any, sample: Any, reduce: bool = True) -> Any:
        nonlocal seen
        loss, size, log = original(self, model, sample, reduce)
        if model.training == training:
            seen += 1
            if batches is None or seen in batches:
                loss = spoiling(model, loss)
                log["loss"] = loss.detach()
        return loss, size, log

    monkeypatch.setattr(VaswaniLabelSmoothingCriterion, "forward", forward)


def updates_in(path: Path) -> int:
    """After how many updates the checkpoint was written; its weights are finite."""
    state = torch.load(path, weights_only=True)
    assert all(tensor.isfinite().all() for tensor in state["model"].values())
    return state["optimizer_history"][-1]["num_updates"]


def spoil_checkpoint(path: Path, target: Path, weight: "str | None", value: float, moment: str = "") -> None:
    """Copy a checkpoint with ``value`` as the first number of a weight, or of the optimiser's ``moment`` of one."""
    state = torch.load(path, weights_only=True)
    tensor = state["model"][weight] if weight else state["last_optimizer_state"]["state"][3][moment]
    tensor.view(-1)[0] = value
    target.parent.mkdir(exist_ok=True)
    torch.save(state, target)
