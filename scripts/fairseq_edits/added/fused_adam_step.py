"""A step of Adam with all parameters in one fused kernel of torch, by the formula that fairseq writes out."""

import math
from collections import defaultdict
from typing import Any, Dict, List, Tuple

import torch
from torch.optim.adamw import adamw

# "cpu" and "cuda" are the devices for which all supported versions of torch have the kernel.
_DEVICES = ("cpu", "cuda")


def fused_adam_step(optimizer: torch.optim.Optimizer) -> bool:
    """Does one step of ``optimizer``, fairseq's Adam, in torch's fused kernel.

    Returns False, with nothing done, where the kernel would do something else: reduced precision, sparse gradients,
    amsgrad, steps beyond float32, which fairseq's operations refuse, and tensors that do not lie in memory row by row,
    since the kernel pairs an element with its gradient by their places. The state is that of fairseq's own steps, so
    that a checkpoint of either goes on with the other.
    """
    groups = [(group, [p for p in group["params"] if p.grad is not None]) for group in optimizer.param_groups]
    if not all(_is_plain(group) and all(map(_fits, parameters)) for group, parameters in groups):
        return False
    for group, parameters in groups:
        together: Dict[Tuple[int, torch.device], List[torch.Tensor]] = defaultdict(list)
        for p in parameters:
            state = optimizer.state[p]
            if not state:
                state.update(step=0, exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
            state["step"] += 1
            together[state["step"], p.device].append(p)
        for (step, device), alike in together.items():
            _step(group, alike, [optimizer.state[p] for p in alike], step, device)
    return True


def _is_plain(group: Dict[str, Any]) -> bool:
    largest = torch.finfo(torch.float32).max
    lr, beta1 = group["lr"], group["betas"][0]
    # The step is lr times sqrt(1 - beta2^t) / (1 - beta1^t), which is at most 1 / (1 - beta1).
    return not group["amsgrad"] and lr <= largest * (1 - beta1) and lr * group["weight_decay"] <= largest


def _fits(p: torch.Tensor) -> bool:
    grad = p.grad
    assert grad is not None
    return (
        p.device.type in _DEVICES
        and p.dtype == grad.dtype == torch.float32
        and grad.layout == torch.strided
        and p.is_contiguous()
        and grad.is_contiguous()
    )


def _step(
    group: Dict[str, Any],
    parameters: List[torch.Tensor],
    states: List[Dict[str, Any]],
    step: int,
    device: torch.device,
) -> None:
    beta1, beta2 = group["betas"]
    grads: List[Any] = [p.grad for p in parameters]
    # torch counts the step itself, in one tensor for each parameter.
    steps_before = torch.full((len(parameters),), float(step - 1), device=device)
    with torch.no_grad():
        adamw(
            parameters,
            grads,
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            list(steps_before.unbind()),
            fused=True,
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            # The kernel adds epsilon to the corrected root, fairseq to the uncorrected one.
            eps=group["eps"] / math.sqrt(1 - beta2**step),
            maximize=False,
        )
