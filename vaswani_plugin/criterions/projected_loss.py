"""Pre-softmax projection and label-smoothed loss in one, without the matrix of tokens times vocabulary."""

from typing import Any, Optional

import torch
from torch import Tensor

from vaswani_plugin.modules.linear import operand, product

_CHUNK_ELEMENTS = 2**22
"""Logits held at a time: 16 MB in float32, small enough to stay in a processor's caches between their uses."""

_FEWEST_TOKENS = 256
"""Tokens in a chunk however large the vocabulary: each chunk passes once over the whole gradient of the matrix."""


def projected_smoothed_cross_entropy(
    features_ND: Tensor,
    weight_VD: Tensor,
    target_N: Tensor,
    is_token_N: Tensor,
    epsilon: float,
    count_correct: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss of logits ``features @ weight.T``, as :func:`smoothed_cross_entropy` defines it.

    Tokens go through projection, softmax and loss in chunks, and each chunk's gradient is computed while its logits
    are still there; the backward pass only scales it. Under autocast the products have its precision; softmax, loss
    and kept gradients are float32 at least.

    Args:
        features_ND: the decoder's outputs.
        weight_VD: the pre-softmax matrix.
        target_N: gold ids.
        is_token_N: True at the positions to count.
        count_correct: also count gold tokens that are ranked first, which takes another pass over the logits.

    Returns:
        The smoothed loss, with a gradient, and the negative log-likelihood, without one, each summed in nats; the
        number of gold tokens ranked first, 0 if not asked for.
    """
    loss, nll, correct = _ProjectedLoss.apply(features_ND, weight_VD, target_N, is_token_N, epsilon, count_correct)
    return loss, nll, correct


class _ProjectedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features_ND: Tensor,
        weight_VD: Tensor,
        target_N: Tensor,
        is_token_N: Tensor,
        epsilon: float,
        count_correct: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        device = features_ND.device.type
        precision = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight_VD.dtype
        tensors = (features_ND, weight_VD, target_N, is_token_N)
        ctx.save_for_backward(*tensors)
        wanted = ctx.needs_input_grad[:2]
        ctx.settings = (epsilon, precision, wanted)
        (loss, nll, correct), ctx.gradients = _in_chunks(*tensors, epsilon, precision, wanted, count_correct)
        ctx.mark_non_differentiable(nll, correct)
        return loss, nll, correct

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        # Scaled where they are: a second matrix of the vocabulary's size would stand at the peak of an update's memory.
        # Of a graph that is kept and gone through again, they are computed again.
        kept, ctx.gradients = ctx.gradients, None
        if kept is None:
            _, kept = _in_chunks(*ctx.saved_tensors, *ctx.settings)
        scaled = (
            None if gradient is None else gradient.mul_(gradients[0]).to(of.dtype)
            for gradient, of in zip(kept, ctx.saved_tensors)
        )
        return (*scaled, None, None, None, None)


def _in_chunks(
    features_ND: Tensor,
    weight_VD: Tensor,
    target_N: Tensor,
    is_token_N: Tensor,
    epsilon: float,
    precision: torch.dtype,
    wanted: tuple[bool, bool],
    count_correct: bool = False,
) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[Optional[Tensor], Optional[Tensor]]]:
    """The three results, and the loss's gradients for features and matrix where they are ``wanted``."""
    # Gradients of single logits are below float16's smallest number before the loss is scaled.
    gradient_precision = torch.float32 if precision == torch.float16 else precision
    exact = torch.promote_types(weight_VD.dtype, torch.float32)
    size = weight_VD.size(0)
    share = epsilon / (size - 1)
    wants_features, wants_weight = wanted
    grad_features = torch.empty_like(features_ND, dtype=exact) if wants_features else None
    grad_weight = torch.zeros_like(weight_VD, dtype=exact) if wants_weight else None
    loss, nll = (torch.zeros((), dtype=exact, device=features_ND.device) for _ in range(2))
    correct = torch.zeros((), dtype=torch.long, device=features_ND.device)

    with torch.no_grad(), torch.autocast(features_ND.device.type, enabled=False):
        weight = operand(weight_VD, precision)
        weight_back = weight if gradient_precision == precision else weight.to(gradient_precision)
        step = max(_FEWEST_TOKENS, _CHUNK_ELEMENTS // size)
        # New memory for each chunk would cost half as much time again as the product that it is for.
        memory = weight.new_empty(min(step, features_ND.size(0)), size)
        for start in range(0, features_ND.size(0), step):
            part = slice(start, start + step)
            features, target, is_token = operand(features_ND[part], precision), target_N[part], is_token_N[part]
            logits = product(features, weight, out=memory[: features.size(0)]).to(exact)
            if count_correct:
                correct += (logits.argmax(dim=1).eq(target) & is_token).sum()
            # Below the highest, where differences of large logits are exact.
            logits.sub_(logits.amax(dim=1, keepdim=True))
            gold = logits.gather(1, target.unsqueeze(1)).squeeze(1)
            sum_of_logits = logits.sum(dim=1)
            # One exponential serves the sum and, in the same memory, the probabilities.
            exponentials = logits.exp_()
            total = exponentials.sum(dim=1)
            log_total = total.log()
            token_nll = (log_total - gold).masked_fill_(~is_token, 0.0).sum()
            all_ids = (size * log_total - sum_of_logits).masked_fill_(~is_token, 0.0).sum()
            nll += token_nll
            loss += (1.0 - epsilon - share) * token_nll + share * all_ids
            if not (wants_features or wants_weight):
                continue
            # d loss / d logit = probability - q, nothing at padding
            gradient = exponentials.mul_((is_token / total).unsqueeze(1))
            gradient.sub_((share * is_token.to(exact)).unsqueeze(1))
            excess = (share + epsilon - 1.0) * is_token.to(exact)
            gradient.scatter_add_(1, target.unsqueeze(1), excess.unsqueeze(1))
            gradient = operand(gradient, gradient_precision)
            if grad_features is not None:
                grad_features[part] = product(gradient, weight_back.T)
            if grad_weight is not None:
                _add_product(grad_weight, gradient.T, features.to(weight_back.dtype))
    return (loss, nll, correct), (grad_features, grad_weight)


def _add_product(total: Tensor, a: Tensor, b: Tensor) -> None:
    """total += a @ b, without the memory of the product where the precisions agree."""
    if total.dtype == a.dtype:
        total.addmm_(a, b)
    else:
        total += product(a, b.T)
