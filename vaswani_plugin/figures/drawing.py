"""Attention maps as pictures: one for each layer and kind of attention, with all of its heads."""

import math
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vaswani_plugin.data.text_files import replacing
from vaswani_plugin.errors import UserError
from vaswani_plugin.figures.attention_maps import KINDS, AttentionMaps, Kind

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")
_NAMES: dict[Kind, str] = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Decoder attention to the source",
}
_DOTS_PER_INCH = 120
_INCHES_PER_PIECE = 0.19
_INCHES_PER_LETTER = 0.085
_HEADS_IN_A_ROW = 4


def draw_maps(maps: AttentionMaps, folder: Path) -> Iterator[Path]:
    """Writes KIND-layerN.png and .svg for each layer into ``folder``, and yields their paths one by one.

    Raises:
        ValueError: matplotlib is not installed.
    """
    for kind in KINDS:
        for layer in range(len(maps.weights[kind])):
            figure = draw_layer(maps, kind, layer)
            for ending in FORMATS:
                path = folder / f"{kind}-layer{layer + 1}.{ending}"
                save(figure, path)
                yield path


def draw_layer(maps: AttentionMaps, kind: Kind, layer: int) -> "Figure":
    """All heads of one layer (from 0), each a matrix of weights from white (0) to dark (1)."""
    figure_class = load_figure_class()
    heads = maps.weights[kind][layer]
    rows, columns = maps.rows(kind), maps.columns(kind)
    across = min(_HEADS_IN_A_ROW, len(heads))
    down = math.ceil(len(heads) / across)
    # Sizes in inches: cells are square, and the labels, on the left and below only, have the room they need.
    left, below = (0.2 + _INCHES_PER_LETTER * max(map(len, labels)) for labels in (rows, columns))
    above, right, gap = 0.65, 0.9, 0.3
    wide, high = _INCHES_PER_PIECE * len(columns), _INCHES_PER_PIECE * len(rows)
    width = left + across * wide + (across - 1) * gap + right
    height = above + down * high + (down - 1) * gap + below
    figure = figure_class(figsize=(width, height), dpi=_DOTS_PER_INCH)
    figure.text(left / width, 1 - 0.1 / height, f"{_NAMES[kind]}, layer {layer + 1}", va="top", fontsize=11)
    for head, weights in enumerate(heads):
        row, column = divmod(head, across)
        x, y = left + column * (wide + gap), height - above - high - row * (high + gap)
        axis = figure.add_axes((x / width, y / height, wide / width, high / height))
        image = axis.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, interpolation="nearest", aspect="auto")
        axis.set_title(f"head {head + 1}", fontsize=9, pad=3)
        axis.tick_params(length=0)
        # A piece may hold a dollar sign, which is not the start of a formula here.
        axis.set_yticks(range(len(rows)), rows if column == 0 else (), fontsize=8, parse_math=False)
        lowest = head + across >= len(heads)
        axis.set_xticks(range(len(columns)), columns if lowest else (), rotation=90, fontsize=8, parse_math=False)
    bar = figure.add_axes(((width - right + 0.2) / width, 1 - (above + high) / height, 0.12 / width, high / height))
    figure.colorbar(image, cax=bar, ticks=(0, 0.5, 1)).ax.tick_params(labelsize=8)
    return figure


def load_figure_class() -> type["Figure"]:
    """matplotlib's figure, which is drawn into files without a display."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError(
            f"drawing needs matplotlib ({error}): install it with pip install 'vaswani-plugin[figures]'"
        ) from error
    return Figure


def save(figure: "Figure", path: Path) -> None:
    """As PNG or SVG by the name's end; complete or not there. The text in an SVG stays text."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "font.family": _font_families()}), warnings.catch_warnings():
        # Characters that no installed font has become boxes in a PNG; the SVG and the page leave them to the browser.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        with replacing(path) as (stream,):
            # No date inside: the same weights give the same file.
            metadata = {"Date": None} if path.suffix == ".svg" else {}
            figure.savefig(stream, format=path.suffix[1:], metadata=metadata)


def _font_families() -> Sequence[str]:
    """matplotlib's own font, then the installed ones of wide coverage for what it lacks."""
    from matplotlib import font_manager

    wide = ("Noto Sans CJK", "Noto Sans", "WenQuanYi", "Unifont", "Arial Unicode")
    return ["DejaVu Sans", *(name for name in sorted(set(font_manager.get_font_names())) if name.startswith(wide))]
