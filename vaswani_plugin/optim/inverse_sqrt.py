"""The paper's learning-rate schedule (section 5.3)."""

import math
from argparse import Namespace
from dataclasses import dataclass, field
from typing import Any, List, Optional

from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.configs import OptimizationConfig
from fairseq.optim.lr_scheduler import FairseqLRScheduler, register_lr_scheduler
from omegaconf import II, DictConfig

from vaswani_plugin.errors import UserError


@dataclass
class InverseSqrtConfig(FairseqDataclass):
    warmup_updates: int = field(default=4000, metadata={"help": "updates over which the rate rises linearly"})
    lr_factor: float = field(default=1.0, metadata={"help": "multiplies the paper's rate everywhere"})
    lr: List[float] = II("optimization.lr")


def learning_rate(update: int, d_model: int, warmup_updates: int, factor: float = 1.0) -> float:
    """factor * d_model^-0.5 * min(n^-0.5, n * warmup^-1.5), equation 3, for the n-th update, n = 1, 2, ..."""
    return factor * d_model**-0.5 * min(update**-0.5, update * warmup_updates**-1.5)


@register_lr_scheduler("vaswani_inverse_sqrt", dataclass=InverseSqrtConfig)
class VaswaniInverseSqrtSchedule(FairseqLRScheduler):
    """A function of the update's number and the model's width alone, so that resuming needs no state.

    The width is the model's: d_model, or a stock fairseq model's embedding width.

    Raises:
        ValueError: settings under which the schedule has no meaning; the sentence names the flag.
    """

    def __init__(self, cfg: DictConfig, optimizer: Any) -> None:
        super().__init__(cfg, optimizer)
        # fairseq hands over the scheduler's own part; the model's is beside it in the same configuration.
        whole = cfg._get_parent()
        self.d_model = model_width(getattr(whole, "model", None))
        self.warmup_updates: int = cfg.warmup_updates
        self.factor: float = cfg.lr_factor
        if self.warmup_updates < 1:
            raise UserError(
                f"--warmup-updates {self.warmup_updates} must be at least 1: the schedule divides by it "
                "(1 starts at the peak rate; the paper: 4000)"
            )
        if not (self.factor > 0.0 and math.isfinite(self.factor)):
            raise UserError(f"--lr-factor {self.factor} must be a positive number (the paper: 1)")
        self._refuse_lr(list(cfg.lr))
        optimization = getattr(whole, "optimization", None)
        self._check_stop_min_lr(getattr(optimization, "stop_min_lr", -1.0))
        self.optimizer.set_lr(self.rate(1))

    def rate(self, update: int) -> float:
        """Learning rate of the ``update``-th update, counted from 1."""
        return learning_rate(update, self.d_model, self.warmup_updates, self.factor)

    def step_update(self, num_updates: int) -> float:
        """Set the rate of the update after the first ``num_updates``; fairseq logs it from here."""
        rate = self.rate(num_updates + 1)
        self.optimizer.set_lr(rate)
        return rate

    def _refuse_lr(self, lr: List[float]) -> None:
        if lr != OptimizationConfig().lr:
            peak = self.rate(self.warmup_updates)
            raise UserError(
                f"--lr {lr[0] if len(lr) == 1 else lr} has no effect on --lr-scheduler vaswani_inverse_sqrt, whose "
                f"peak rate {peak:.4g} follows from d_model and --warmup-updates: leave --lr out, and scale the "
                f"rate with --lr-factor (--lr-factor {self.factor * lr[0] / peak:.4g} gives that peak)"
            )

    def _check_stop_min_lr(self, stop_min_lr: float) -> None:
        # fairseq compares at every epoch's start, the warm-up included.
        if stop_min_lr >= self.rate(1):
            reached = math.ceil((self.factor / stop_min_lr) ** 2 / self.d_model)
            raise UserError(
                f"--stop-min-lr {stop_min_lr} is not below the first warm-up rate {self.rate(1):.4g}, so training "
                f"would end before it starts: give a smaller one, or --max-update {reached}, where the rate has "
                "fallen to it"
            )


def model_width(model: Any) -> int:
    """d_model of a model's configuration, ours or a stock fairseq one's.

    Raises:
        ValueError: the configuration says nothing about the width.
    """
    for path in ("d_model", "decoder.embed_dim", "decoder_embed_dim", "encoder_embed_dim"):
        width = _lookup(model, path)
        if width:
            return int(width)
    name = _lookup(model, "_name") or _lookup(model, "arch")
    raise UserError(
        f"--lr-scheduler vaswani_inverse_sqrt cannot tell the width of --arch {name}, which has none of d_model, "
        "decoder_embed_dim, encoder_embed_dim: use --lr-scheduler inverse_sqrt with --lr for it"
    )


def _lookup(config: Any, path: str) -> Optional[Any]:
    for name in path.split("."):
        if isinstance(config, Namespace):
            config = getattr(config, name, None)
        elif isinstance(config, DictConfig):
            config = config.get(name)
        else:
            return None
    return config
