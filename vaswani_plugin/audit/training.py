"""How the model is trained: loss, optimiser, schedule, batches, length and checkpoints."""

import math
from typing import Any, Optional

from vaswani_plugin.audit.configuration import Configuration
from vaswani_plugin.audit.paper import TOKENS_PER_UPDATE, TOLERANCE, Detail, PaperModel, compared
from vaswani_plugin.audit.progress import Progress

WARMUP = 4000


def loss_details(config: Configuration) -> list[Detail]:
    name = config.name("criterion")
    epsilon = 0.0
    if config.value("criterion", "label_smoothing") is not None and name != "cross_entropy":
        epsilon = config.number("criterion", "label_smoothing")
    why = "worse perplexity, better BLEU (Table 3 D)"
    return [compared("regularisation", "label smoothing", "5.4", 0.1, epsilon, why, f"--criterion {name}")]


def optimizer_details(config: Configuration) -> list[Detail]:
    group = "optimiser"
    name = config.name("optimizer")
    details = [compared(group, "optimiser", "5.3", "adam", name or "none", "the schedule is made for Adam's step size")]
    if "adam" in name:
        betas = ", ".join(f"{beta:g}" for beta in config.numbers("optimizer", "adam_betas"))
        details.append(compared(group, "betas", "5.3", "0.9, 0.98", betas, "how long gradients are remembered"))
        epsilon = config.number("optimizer", "adam_eps", 1e-8)
        details.append(compared(group, "epsilon", "5.3", 1e-9, epsilon, "larger, it slows rarely seen words"))
    decay = config.number("optimizer", "weight_decay", 0.0)
    clip = config.number("optimization", "clip_norm", 0.0)
    details.append(compared(group, "weight decay", "5.3", 0, decay, "the paper names none"))
    details.append(compared(group, "clipping", "5.3", 0, clip, "the paper names none; it changes large steps"))
    return details


def schedule_details(config: Configuration, d_model: Any) -> list[Detail]:
    """The stock schedule of the same shape is told by the factor that its peak amounts to."""
    group, name = "schedule", config.name("lr_scheduler")
    this: Any = name
    factor: Optional[float] = None
    first: Any = None
    warmup = config.number("lr_scheduler", "warmup_updates", 0)
    note = ""
    if name == "vaswani_inverse_sqrt":
        this, factor, first = "inverse square root", config.number("lr_scheduler", "lr_factor", 1.0), 1
    elif name == "inverse_sqrt":
        this, first = "inverse square root", 0
        peak = config.numbers("optimization", "lr")[0]
        if isinstance(d_model, (int, float)) and d_model > 0:
            factor = float(f"{peak * math.sqrt(d_model * max(warmup, 1)):.4g}")
            note = f"--lr {peak:g}"
    details = [
        compared(group, "learning rate", "5.3", "inverse square root", this, "falls with the update's square root"),
        compared(group, "warm-up", "5.3", WARMUP, warmup, "shorter means a higher peak, and may diverge"),
    ]
    if factor is not None:
        why = "1 is d_model^-0.5, and no free rate"
        details.append(Detail(group, "rate factor", "5.3", 1, factor, math.isclose(factor, 1, rel_tol=2e-3), why, note))
    if first is not None:
        why = "counted from 0, the first update has rate 0 and is lost"
        details.append(compared(group, "first update's number", "5.3", 1, first, why))
    return details


def batch_details(config: Configuration, progress: Progress) -> list[Detail]:
    """Source and target tokens of an update: what the run has logged, else what its settings allow at most."""
    why = "fewer make noisier steps at the same rate"
    at_most, how = _most_tokens(config)
    details = []
    for side, logged in (("source", progress.source_tokens), ("target", progress.target_tokens)):
        name, paper = f"{side} tokens", f"about {TOKENS_PER_UPDATE:,}"
        if logged is not None:
            same = abs(logged - TOKENS_PER_UPDATE) <= TOLERANCE * TOKENS_PER_UPDATE
            details.append(Detail("batch", name, "5.1", paper, round(logged), same, why, "logged mean of an update"))
        elif at_most is None:
            details.append(Detail("batch", name, "5.1", paper, "not known", None, why, how))
        else:
            # With padding: the paper's tokens are some 70 to 90 % of such a count.
            same = (1 - TOLERANCE / 2) * TOKENS_PER_UPDATE <= at_most <= 1.4 * TOKENS_PER_UPDATE
            details.append(Detail("batch", name, "5.1", paper, f"at most {at_most:,}", same, why, how))
    return details


def _most_tokens(config: Configuration) -> tuple[Optional[int], str]:
    workers = config.number("distributed_training", "distributed_world_size", 1)
    batches = config.numbers("optimization", "update_freq") if config.has("optimization", "update_freq") else [1]
    if config.value("dataset", "max_tokens") is None:
        return None, "no --max-tokens"
    tokens = config.number("dataset", "max_tokens")
    how = f"--max-tokens {tokens} x --update-freq {batches[0]:g} x {workers} worker{'' if workers == 1 else 's'}"
    return int(tokens * batches[0] * workers), how


def length_details(config: Configuration, paper: PaperModel, progress: Progress) -> list[Detail]:
    planned = int(config.number("optimization", "max_update", 0))
    why = "more training is more BLEU"
    if progress.updates is None:
        value: Any = planned or "no end"
        return [compared("length", "updates", "5.2", paper.updates, value, why)]
    note = f"of {planned:,}" if planned and planned != progress.updates else ""
    return [compared("length", "updates", "5.2", paper.updates, progress.updates, why, note)]


def checkpoint_details(config: Configuration, paper: PaperModel, progress: Progress) -> list[Detail]:
    group = "checkpoints"
    interval = int(config.number("checkpoint", "save_interval_updates", 0))
    value: Any = interval or "an epoch"
    kept = int(config.number("checkpoint", "keep_interval_updates", -1))
    if config.flag("checkpoint", "no_save"):
        value, kept = "none", 0
    enough = kept == -1 or kept >= paper.averaged
    details = [
        compared(group, "checkpoint every", "6.1", paper.save_interval, value, "10 minutes of the paper's machine"),
        Detail(
            group,
            "checkpoints kept",
            "6.1",
            paper.averaged,
            kept if kept >= 0 else "all",
            enough,
            "fewer cannot be averaged",
        ),
    ]
    why = "the mean of the last ones is better than the last one"
    if progress.averaged is None:
        details.append(Detail(group, "checkpoints averaged", "6.1", paper.averaged, "not yet", None, why))
    else:
        details.append(compared(group, "checkpoints averaged", "6.1", paper.averaged, progress.averaged, why))
    return details
