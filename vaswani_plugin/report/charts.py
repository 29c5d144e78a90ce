"""Line charts as SVG inside a page; colours and text follow the page's style, light or dark."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from vaswani_plugin.figures.web_page import escape

STYLE = """
.charts { display: grid; gap: 1rem 1.5rem; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); }
figure { margin: 0; } figcaption { font-weight: 600; } figcaption span { font-weight: 400; margin-left: .75rem;
  white-space: nowrap; }
figcaption span::before { content: ""; display: inline-block; width: .9rem; height: .25rem; margin-right: .3rem;
  vertical-align: middle; background: var(--series); }
.series0 { --series: #0b72b9; } .series1 { --series: #c4511d; }
@media (prefers-color-scheme: dark) { .series0 { --series: #6cb6ff; } .series1 { --series: #f0a070; } }
.chart { width: 100%; display: block; } .chart text { font: 11px system-ui, sans-serif; fill: var(--quiet); }
.chart .grid { stroke: var(--line); stroke-width: 1; }
.chart polyline { fill: none; stroke: var(--series); stroke-width: 1.75; stroke-linejoin: round; }
.chart circle { fill: var(--series); }
"""

Points = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT = 400, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 8, 24
_MOST_POINTS = 300
_FEW = 25


@dataclass(frozen=True)
class Series:
    """(update, value) pairs under a name; ``dots`` leaves out the line between them."""

    name: str
    points: Points
    dots: bool = False


def chart(title: str, series: Sequence[Series], logarithmic: bool = False, note: str = "") -> str:
    """A figure with a ``note`` below, or a sentence in its place where no series has a number that can be drawn."""
    drawn = [Series(one.name, thinned(_drawable(one.points, logarithmic)), one.dots) for one in series]
    left_out = sum(not math.isfinite(y) for one in series for _, y in one.points)
    below = f'<p class="bad">{left_out} logged values are not finite numbers.</p>' if left_out else ""
    below += f'<p class="quiet">{escape(note)}</p>' if note else ""
    drawn = [one for one in drawn if one.points]
    if not drawn:
        return (
            f'<figure><figcaption>{escape(title)}</figcaption><p class="quiet">Nothing logged yet.</p>{below}</figure>'
        )
    xs = [x for one in drawn for x, _ in one.points]
    ys = [y for one in drawn for _, y in one.points]
    x_ticks = ticks(0, max(xs), 4)
    y_ticks = decades(min(ys), max(ys)) if logarithmic else ticks(min(ys), max(ys), 4)
    scale = math.log if logarithmic else float
    bottom, top = scale(min(*ys, *y_ticks)), scale(max(*ys, *y_ticks))
    right = max(*xs, x_ticks[-1], 1)

    def x_of(x: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * x / right, 1)

    def y_of(y: float) -> float:
        return round(_TOP + (_HEIGHT - _TOP - _BOTTOM) * (top - scale(y)) / ((top - bottom) or 1), 1)

    parts = []
    for tick in y_ticks:
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y_of(tick)}" y2="{y_of(tick)}"/>')
        parts.append(f'<text x="{_LEFT - 5}" y="{y_of(tick) + 4}" text-anchor="end">{short(tick)}</text>')
    for tick in x_ticks:
        anchor = "end" if x_of(tick) > _WIDTH - 20 else "middle"
        parts.append(f'<text x="{x_of(tick)}" y="{_HEIGHT - 7}" text-anchor="{anchor}">{short(tick)}</text>')
    for number, one in enumerate(drawn):
        places = [(x_of(x), y_of(y)) for x, y in one.points]
        if not one.dots:
            path = " ".join(f"{x},{y}" for x, y in places)
            parts.append(f'<polyline class="series{number}" points="{path}"/>')
        if one.dots or len(places) <= _FEW:
            radius = 2 if len(places) > _FEW else 2.5
            parts += [f'<circle class="series{number}" cx="{x}" cy="{y}" r="{radius}"/>' for x, y in places]
    legend = "".join(f'<span class="series{number}">{escape(one.name)}</span>' for number, one in enumerate(drawn))
    said = f"{title}. " + " ".join(f"{one.name}: {_spoken(one.points)}." for one in drawn)
    return (
        f"<figure><figcaption>{escape(title)}{legend}</figcaption>"
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(said)}">'
        f"{''.join(parts)}</svg>{below}</figure>"
    )


def thinned(points: Points, most: int = _MOST_POINTS) -> list[tuple[float, float]]:
    """At most ``most`` points: means of neighbours, each at its last update."""
    width = math.ceil(len(points) / most) if points else 1
    groups = [points[start : start + width] for start in range(0, len(points), width)]
    return [(group[-1][0], sum(y for _, y in group) / len(group)) for group in groups]


def ticks(low: float, high: float, about: int) -> list[float]:
    """Numbers 1, 2 or 5 times a power of ten apart, the first not above ``low``, the last not below ``high``."""
    if high <= low:
        low, high = min(low, 0.0), max(high, low + 1e-9, 0.0)
    rough = (high - low) / about or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = power * min(factor for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, last + 1)]


def decades(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten (only the powers, where those span three) from below ``low`` to above ``high``."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1,) if len(powers) > 3 else (1, 2, 5)
    values = [factor * 10.0**power for power in powers for factor in factors]
    first = max((index for index, value in enumerate(values) if value <= low), default=0)
    last = min((index for index, value in enumerate(values) if value >= high), default=len(values) - 1)
    return values[first : last + 1]


def short(number: float) -> str:
    """At most about five characters: 12k, 1.5M, 0.002, 2e-04."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.4g}{letter}"
    if number and abs(number) < 1e-3:
        return f"{number:.1e}".replace("e-0", "e-").replace(".0e", "e")
    return f"{number:.4g}"


def _drawable(points: Points, logarithmic: bool) -> list[tuple[float, float]]:
    return [(x, y) for x, y in points if math.isfinite(y) and (y > 0 or not logarithmic)]


def _spoken(points: Points) -> str:
    (first_x, first), (last_x, last) = points[0], points[-1]
    return f"from {first:.4g} at update {first_x:,.0f} to {last:.4g} at update {last_x:,.0f}"
