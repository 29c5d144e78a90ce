"""Attention maps as a web page: layer and head are chosen by mouse or keyboard, a word shows its links."""

import base64
from collections.abc import Iterable

from vaswani_plugin.figures.attention_maps import KINDS, AttentionMaps, Kind
from vaswani_plugin.figures.attention_script import SCRIPT, STYLE
from vaswani_plugin.figures.web_page import embedded, escape, page

__all__ = ["SCRIPT", "STYLE", "attention_page", "attention_section"]

TITLES: dict[Kind, str] = {"encoder": "Encoder", "decoder": "Decoder", "cross": "Cross"}
_COLUMNS: dict[Kind, tuple[str, str]] = {
    "encoder": ("source piece", "sees"),
    "decoder": ("writes", "sees"),
    "cross": ("writes", "sees"),
}


def attention_page(maps: AttentionMaps, source: str, target: str) -> str:
    """A whole page; ``source`` and ``target`` are the sentences as text."""
    body = (
        f"<main>\n<h1>Attention</h1>\n<table><tr><th>source</th><td>{escape(source)}</td></tr>"
        f"<tr><th>target</th><td>{escape(target)}</td></tr></table>\n{attention_section(maps)}\n</main>"
    )
    return page(f"Attention: {source}", body, STYLE, SCRIPT)


def attention_section(maps: AttentionMaps) -> str:
    """The part of a page that shows ``maps``, one to a page; the page needs ``STYLE`` and ``SCRIPT`` too."""
    layers, heads = maps.weights["encoder"].shape[:2]
    data = {
        "layers": layers,
        "heads": heads,
        "maps": {
            kind: {
                "rows": maps.rows(kind),
                "columns": maps.columns(kind),
                "looking": _COLUMNS[kind][0],
                "seen": _COLUMNS[kind][1],
                # (layer, head, row, column) in little-endian float32: the model's numbers, not rounded ones.
                "weights": base64.b64encode(maps.weights[kind].astype("<f4").tobytes()).decode("ascii"),
            }
            for kind in KINDS
        },
    }
    return "\n".join(
        [
            '<div class="attention">',
            _choice("kind", "Attention", ((kind, TITLES[kind]) for kind in KINDS)),
            _choice("layer", "Layer", ((str(layer), str(layer + 1)) for layer in range(layers))),
            _choice("head", "Head", [("-1", "all"), *((str(head), str(head + 1)) for head in range(heads))]),
            '<div class="links"><h3></h3><span></span><h3></h3>',
            '<div class="words left" role="group" aria-label="pieces that look"></div>',
            '<svg preserveAspectRatio="none" aria-hidden="true"></svg>',
            '<div class="words right" role="group" aria-label="pieces that are looked at"></div></div>',
            '<p class="readout" aria-live="polite"></p>',
            '<p class="quiet">Point at a piece, or move with Tab and the arrow keys, to see its links; Escape shows '
            "all again. The stronger a line, the larger the weight; links below 0.02 are not drawn. All heads: "
            "one colour each.</p>",
            "<noscript><p>This part needs JavaScript; the pictures beside this page show the same.</p></noscript>",
            embedded("attention-data", data),
            "</div>",
        ]
    )


def _choice(name: str, legend: str, options: Iterable[tuple[str, str]]) -> str:
    labels = "".join(
        f'<label{f" data-head={value}" if name == "head" else ""}><input type="radio" name="{name}" value="{value}">'
        f"<span>{escape(text)}</span></label>"
        for value, text in options
    )
    return f"<fieldset><legend>{legend}</legend>{labels}</fieldset>"
