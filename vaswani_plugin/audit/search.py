"""How fairseq-generate would translate unless told otherwise: the task decides."""

from typing import Any

from vaswani_plugin.audit.configuration import Configuration
from vaswani_plugin.audit.paper import Detail, compared
from vaswani_plugin.tasks.vaswani_translation import PAPER_SEARCH

_GROUP, _SECTION = "search", "6.1"
_PAPER_END = "no living one can win"


def search_details(config: Configuration) -> list[Detail]:
    if config.name("task") == "vaswani_translation":
        settings: dict[str, Any] = dict(PAPER_SEARCH)
        penalty = f"((5 + n) / 6)^{config.number('task', 'length_penalty_alpha', 0.6):g}"
        end, note = _PAPER_END, "fairseq-generate's default under --task vaswani_translation"
    else:
        stock = {"beam": 5, "max_len_a": 0, "max_len_b": 200}
        settings = {name: config.number("generation", name, value) for name, value in stock.items()}
        penalty = f"n^{config.number('generation', 'lenpen', 1.0):g}"
        end, note = "as many finished as beam", f"fairseq-generate's default under --task {config.name('task')}"
    longest = f"{settings['max_len_a']:g} x input + {settings['max_len_b']:g}"
    return [
        compared(_GROUP, "beam", _SECTION, 4, settings["beam"], "hypotheses kept alive", note),
        compared(
            _GROUP, "length penalty", _SECTION, "((5 + n) / 6)^0.6", penalty, "decides how long outputs are", note
        ),
        compared(_GROUP, "longest output", _SECTION, "1 x input + 50", longest, "cuts off long sentences", note),
        compared(_GROUP, "end of search", _SECTION, _PAPER_END, end, "ending earlier misses better outputs", note),
    ]
