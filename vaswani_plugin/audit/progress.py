"""How far a run has come, and what it has counted on the way, from its checkpoint."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from vaswani_plugin.checkpoints.reading import num_updates


@dataclass(frozen=True)
class Progress:
    """None is what nothing tells of: all of it, before a training.

    Args:
        updates: done so far.
        source_tokens, target_tokens: means of an update.
        averaged: of how many checkpoints the weights are the mean.
    """

    updates: Optional[int] = None
    source_tokens: Optional[float] = None
    target_tokens: Optional[float] = None
    averaged: Optional[int] = None


def read_progress(state: Mapping[str, Any], averaged: bool) -> Progress:
    """From what fairseq saved.

    Args:
        averaged: whether the weights are for translating, so that it matters of how many checkpoints they are.
    """
    extra = state.get("extra_state")
    extra = extra if isinstance(extra, Mapping) else {}
    sources = extra.get("averaged")
    return Progress(
        updates=num_updates(dict(state)),
        source_tokens=_mean(extra, "src_wpb"),
        target_tokens=_mean(extra, "wpb"),
        averaged=(len(sources) if isinstance(sources, list) else 1) if averaged else None,
    )


def _mean(extra: Mapping[str, Any], meter: str) -> Optional[float]:
    """fairseq saves a list of (priority, name, kind, state) for each of its groups; "default" covers the whole run."""
    metrics = extra.get("metrics")
    entries = metrics.get("default") if isinstance(metrics, Mapping) else None
    for entry in entries if isinstance(entries, (list, tuple)) else ():
        if not isinstance(entry, (list, tuple)) or len(entry) != 4 or entry[1] != meter:
            continue
        try:
            return float(entry[3]["sum"]) / float(entry[3]["count"])
        except (TypeError, ValueError, KeyError, ZeroDivisionError, RuntimeError):
            return None
    return None
