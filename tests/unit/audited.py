"""The paper's and stock fairseq's arguments, as trainings to audit."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from vaswani_plugin.audit.comparison import Audit
from vaswani_plugin.audit.configuration import from_arguments

PAPER = (
    *("binary", "--task", "vaswani_translation", "--criterion", "vaswani_label_smoothing"),
    *("--lr-scheduler", "vaswani_inverse_sqrt", "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)"),
    *("--adam-eps", "1e-9", "--max-tokens", "4096", "--update-freq", "7", "--distributed-world-size", "1"),
)


BASE = ("--arch", "vaswani_base", "--max-update", "100000", "--save-interval-updates", "1500")


STOCK = (
    *("binary", "--arch", "transformer_wmt_en_de", "--task", "translation", "--optimizer", "adam"),
    *("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1", "--lr-scheduler", "inverse_sqrt"),
    *("--lr", "5e-4", "--warmup-updates", "4000", "--clip-norm", "25", "--max-tokens", "3584"),
    *("--distributed-world-size", "8"),
)


def differing(result: Audit) -> set[str]:
    return {detail.name for detail in result.differences}


def value(result: Audit, name: str) -> Any:
    (found,) = [detail.value for detail in result.details if detail.name == name]
    return found


@cache
def papers_base() -> Mapping[str, Any]:
    """The parts of the configuration that fairseq-train makes of the paper's base arguments."""
    return from_arguments([*PAPER, *BASE])._all
