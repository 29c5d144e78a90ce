"""A web page in one file: readable offline, on a phone, in light and in dark."""

import html
import json
from pathlib import Path
from typing import Any

from vaswani_plugin.data.text_files import replacing

STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --quiet: #57606a; --line: #d0d7de; --raised: #f3f5f7;
  --accent: #0b5cad; --bad: #b3261e; --link-light: 42%; }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --text: #e6e9ec; --quiet: #a3abb3; --line: #3a4148;
  --raised: #20252a; --accent: #7db8f5; --bad: #ff8a80; --link-light: 64%; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 70rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; margin: 0 0 .5rem; } h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; }
p { max-width: 46rem; margin: .5rem 0; } .quiet { color: var(--quiet); } .bad { color: var(--bad); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--line); }
pre, code { font: .875rem/1.45 ui-monospace, monospace; }
pre { white-space: pre-wrap; background: var(--raised); padding: .6rem .8rem; border-radius: .4rem; }
.scroll { overflow-x: auto; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
"""

# Nothing is fetched, whatever the page's text says.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page(title: str, body: str, style: str = "", script: str = "") -> str:
    """A whole document around ``body``, which is HTML; ``title`` is text. The script runs after the body is there."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n{body}\n"
        + (f"<script>{script}</script>\n" if script else "")
        + "</body>\n</html>\n"
    )


def escape(text: Any) -> str:
    """Text as HTML, in an element or in a quoted attribute."""
    return html.escape(str(text), quote=True)


def embedded(identifier: str, value: Any) -> str:
    """A value as JSON that a script of the page reads by its element's id."""
    # "</script" inside the text would end the element.
    text = json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{identifier}">{text}</script>'


def write_page(path: Path, text: str) -> None:
    """Under its name only once complete."""
    with replacing(path) as (stream,):
        stream.write(text.encode("utf-8"))
