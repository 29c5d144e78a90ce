"""NaN and infinity in training: told with the update, the tensor that has them first, and what to do."""

import os
from typing import Any, Dict, List, Mapping, Optional

import torch
from fairseq.user_error import UserError

# A hundred halvings of a loss scale span more than float32 does: what is still not finite then is not its fault.
_MOST_SKIPPED = 100


def kind(value: Any) -> Optional[str]:
    """ "NaN" or "infinite" if any number of the tensor or number is, else None."""
    tensor = torch.as_tensor(value)
    if bool(tensor.isfinite().all()):
        return None
    return "NaN" if bool(tensor.isnan().any()) else "infinite"


def check_loaded(model: torch.nn.Module, path: str, what_to_do: str) -> None:
    """Raise UserError if a weight of ``model``, which was loaded from ``path``, is not finite."""
    weight = _weight(model)
    if weight is not None:
        raise UserError(f"{path}: {weight}, so its training had diverged; {what_to_do}")


def check_optimizer_state(state: Mapping[str, Any], path: str) -> None:
    """Raise UserError if a number that the optimiser had summed up, such as Adam's moments, is not finite."""
    for number, tensors in state.get("state", {}).items():
        for name, tensor in tensors.items():
            found = kind(tensor) if torch.is_tensor(tensor) else None
            if found is not None:
                raise UserError(
                    f"{path}: the optimiser's {name} of parameter {number} is {found}, so its training had diverged; "
                    "go on from an earlier checkpoint with --restore-file, or add --reset-optimizer"
                )


def check_update(trainer: Any, logging_outputs: List[Dict[str, Any]], grad_norm: torch.Tensor) -> None:
    """Raise UserError, before the update in hand is made, if its loss or its gradient is not finite."""
    if kind(_loss(logging_outputs)) is not None or kind(grad_norm) is not None:
        raise _stop(trainer, _culprit(trainer, logging_outputs))


def scale_at_its_end(trainer: Any, logging_outputs: List[Dict[str, Any]]) -> UserError:
    """What ends a training in float16 whose loss scale cannot be lowered any more."""
    found = _culprit(trainer, logging_outputs)
    smallest = trainer.cfg.common.min_loss_scale
    return _stop(trainer, f"{found} even with the loss scale at --min-loss-scale {smallest}")


def step_too_large(trainer: Any) -> UserError:
    """What ends a training whose learning rate makes a step that float32 cannot hold."""
    updates = trainer.get_num_updates()
    return _stop(trainer, f"update {updates + 1}: the learning rate {trainer.get_lr():g} makes a step beyond float32")


def check_skipped(trainer: Any, logging_outputs: List[Dict[str, Any]]) -> None:
    """Raise UserError if skipping this batch, and lowering the loss scale, cannot help."""
    trainer.skipped_in_a_row += 1
    if _weight(trainer.get_model()) is not None:
        raise _stop(trainer, _culprit(trainer, logging_outputs))
    if trainer.skipped_in_a_row >= _MOST_SKIPPED:
        found = _culprit(trainer, logging_outputs)
        raise _stop(trainer, f"{found}, as in the {_MOST_SKIPPED - 1} batches before, which were skipped")


def check_validation(trainer: Any, subset: str, stats: Mapping[str, Any], metric: str) -> None:
    """Raise UserError if the loss on ``subset`` is not finite, or the ``metric`` that tells the best model is NaN."""
    found = {name: kind(stats[name]) for name in ("loss", metric) if name in stats}
    if found.get("loss") is None and found.get(metric) != "NaN":
        return
    updates = trainer.get_num_updates()
    weight = _weight(trainer.get_model())
    if weight is not None:
        raise _stop(trainer, f"after update {updates} {weight}")
    name = "loss" if found.get("loss") is not None else metric
    raise _stop(
        trainer, f"after update {updates} the {name} of {subset} is {found[name]} though all weights are finite"
    )


def check_validated(path: str, subset: str, stats: Mapping[str, Any]) -> None:
    """Raise UserError if the loss of the model at ``path`` on ``subset`` is not finite."""
    found = kind(stats["loss"]) if "loss" in stats else None
    if found is not None:
        raise UserError(
            f"{path}: the loss of {subset} is {found} though all weights are finite; leave --fp16 out, or look for odd "
            f"sentences in {subset}"
        )


def check_before_saving(trainer: Any) -> None:
    """Raise UserError, on every worker, instead of writing a checkpoint with a weight that is not finite."""
    weight = _weight(trainer.get_model())
    if weight is not None:
        raise _stop(trainer, f"after update {trainer.get_num_updates()} {weight}")


def _loss(logging_outputs: List[Dict[str, Any]]) -> float:
    return sum(float(log["loss"]) for log in logging_outputs if "loss" in log)


def _weight(model: torch.nn.Module) -> Optional[str]:
    for name, parameter in model.named_parameters():
        found = kind(parameter.detach())
        if found is not None:
            return f"the weight {name} is {found}"
    return None


def _gradient(model: torch.nn.Module) -> Optional[str]:
    # The backward pass comes from the end: what lies before the culprit has it from there.
    for name, parameter in reversed(list(model.named_parameters())):
        found = kind(parameter.grad) if parameter.grad is not None else None
        if found is not None:
            return f"the gradient of {name} is {found}"
    return None


def _culprit(trainer: Any, logging_outputs: List[Dict[str, Any]]) -> str:
    """The first that is not finite of weights, loss and gradients: each makes the next so."""
    updates = trainer.get_num_updates()
    weight = _weight(trainer.get_model())
    if weight is not None:
        return f"after update {updates} {weight}"
    loss = kind(_loss(logging_outputs))
    if loss is not None:
        return f"update {updates + 1}: the loss is {loss}"
    gradient = _gradient(trainer.get_model())
    if gradient is not None:
        return f"update {updates + 1}: {gradient} though the loss is finite"
    return f"update {updates + 1}: the norm of the gradient is not finite though each of its numbers is"


def _stop(trainer: Any, found: str) -> UserError:
    advice = "the learning rate is probably too high: lower it (--lr-factor, or --lr) or lengthen --warmup-updates"
    if trainer.cfg.common.fp16 or trainer.cfg.common.amp:
        advice += "; or float16 is too narrow, and --bf16 or --mixed-precision will do"
    last = os.path.join(trainer.cfg.checkpoint.save_dir, f"checkpoint_last{trainer.checkpoint_suffix}.pt")
    kept = f"; {last} is from before" if os.path.exists(last) else ""
    error = UserError(f"{found}; {advice}{kept}")
    # the statistics and gradients are sums over the workers, unless each goes its own way for a while
    sharing = trainer.cfg.distributed_training.ddp_backend not in ("fully_sharded", "slowmo")
    error.of_all_workers = sharing and not trainer.cfg.optimization.use_bmuf
    return error
