"""Pre-softmax projection and label-smoothed loss alone, forward and backward."""

from typing import Any

import torch
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from torch import Tensor
from torch.nn import functional

from benchmarks.peers import SIZES, Turn
from vaswani_plugin.criterions.projected_loss import projected_smoothed_cross_entropy

_TOKENS = 4096
_EPSILON = 0.1


def plugin(task: dict[str, Any]) -> Turn:
    device = "cuda" if torch.cuda.is_available() else "cpu"

    def loss(features: Tensor, weight: Tensor, target: Tensor) -> Tensor:
        with torch.autocast(device, torch.bfloat16, enabled=task["precision"] == "mixed"):
            is_token = torch.ones_like(target, dtype=torch.bool)
            return projected_smoothed_cross_entropy(features, weight, target, is_token, _EPSILON)[0]

    return _turn(task, loss)


def stock(task: dict[str, Any]) -> Turn:
    def loss(features: Tensor, weight: Tensor, target: Tensor) -> Tensor:
        log_p = functional.log_softmax(functional.linear(features, weight), dim=-1)
        return label_smoothed_nll_loss(log_p, target, _EPSILON, ignore_index=1)[0]

    return _turn(task, loss)


def _turn(task: dict[str, Any], loss: Any) -> Turn:
    size = SIZES[task["size"]]
    tokens = task["tokens"] or _TOKENS
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    features = torch.randn(tokens, size.d_model, device=device, requires_grad=True)
    weight = (torch.randn(size.vocabulary, size.d_model, device=device) * size.d_model**-0.5).requires_grad_()
    target = torch.randint(4, size.vocabulary, (tokens,), device=device)

    def run() -> None:
        features.grad = weight.grad = None
        loss(features, weight, target).backward()

    return Turn(run, "pass", {"target_tokens": tokens})
