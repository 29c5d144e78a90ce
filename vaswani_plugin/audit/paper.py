"""The paper's three models as numbers (Table 3, sections 5.1 to 6.1)."""

from dataclasses import dataclass
from typing import Any, Optional

TOKENS_PER_UPDATE = 25_000
"""Source tokens, and as many target tokens (section 5.1)."""
# "Approximately": what counts as the same.
TOLERANCE = 0.2


@dataclass(frozen=True)
class PaperModel:
    """Sizes, rates and counts that differ between the models; the interval is 10 minutes of the paper's machine."""

    name: str
    d_model: int
    d_ff: int
    num_heads: int
    dropout: float
    updates: int
    save_interval: int
    averaged: int
    num_layers: int = 6
    target_language: Optional[str] = None

    @property
    def d_head(self) -> int:
        return self.d_model // self.num_heads


BASE = PaperModel("base", 512, 2048, 8, 0.1, updates=100_000, save_interval=1500, averaged=5)
BIG = PaperModel("big", 1024, 4096, 16, 0.3, 300_000, save_interval=600, averaged=20, target_language="de")
# Section 6.1: "the Transformer (big) model trained for English-to-French used dropout rate 0.1, instead of 0.3".
BIG_EN_FR = PaperModel("big for English-French", 1024, 4096, 16, 0.1, 300_000, 600, 20, target_language="fr")
MODELS = (BASE, BIG, BIG_EN_FR)


@dataclass(frozen=True)
class Detail:
    """One thing that the paper says, and what a run has in its place.

    ``same`` is None where the run does not tell. ``note`` says where the run's value comes from.
    """

    group: str
    name: str
    section: str
    paper: Any
    value: Any
    same: Optional[bool]
    why: str
    note: str = ""


def compared(group: str, name: str, section: str, paper: Any, value: Any, why: str, note: str = "") -> Detail:
    """A detail that is the same where the two values are equal."""
    return Detail(group, name, section, paper, value, value == paper, why, note)
