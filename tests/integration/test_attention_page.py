"""vaswani attention through its command, and its page in headless Chromium, driven by a script put into the page."""

import base64
import html
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vaswani_plugin import cli
from vaswani_plugin.figures.attention_maps import KINDS, AttentionMaps
from vaswani_plugin.figures.attention_page import attention_page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--virtual-time-budget=3000"),
)

SOURCE, TARGET = ("▁the", "▁dog", "</script>", "</s>"), ("▁der", "▁Hund", "</s>")
LAYERS, HEADS = 2, 3
# What the driver uses: the state of the page as a person sees it.
DRIVER = """
const $ = (query) => document.querySelector(query);
const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
const mouse = (word, type) => $(`[data-word="${word}"]`).dispatchEvent(new MouseEvent(type));
const seen = () => ({
  checked: [...document.querySelectorAll("input:checked")].map((input) => input.value),
  left: [...document.querySelectorAll(".left button")].map((button) => button.textContent),
  right: [...document.querySelectorAll(".right button")].map((button) => button.textContent),
  chosen: [...document.querySelectorAll(".chosen")].map((button) => button.dataset.word),
  stops: [...document.querySelectorAll(".words [tabindex='0']")].map((button) => button.dataset.word),
  lines: [...document.querySelectorAll("svg line")].map((line) => [Math.floor(+line.getAttribute("y1")),
    Math.floor(+line.getAttribute("y2")), +line.dataset.weight]),
  colours: new Set([...document.querySelectorAll("svg line")].map((line) => line.style.stroke)).size,
  readout: $(".readout").textContent, hash: location.hash,
});
const states = [];
const pre = document.createElement("pre");
try { ACTIONS } catch (error) { states.push(String(error)); }
pre.id = "states";
pre.textContent = JSON.stringify(states);
document.body.append(pre);
"""


def distribution(rows: int, columns: int, causal: bool = False) -> np.ndarray:
    """Random weights, each row a distribution."""
    weights = np.random.default_rng(rows).random((LAYERS, HEADS, rows, columns), dtype=np.float32) + 0.1
    weights = np.tril(weights) if causal else weights
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def maps() -> AttentionMaps:
    weights = {"encoder": distribution(4, 4), "decoder": distribution(3, 3, causal=True), "cross": distribution(3, 4)}
    return AttentionMaps(SOURCE, TARGET, weights)


def drive(maps: AttentionMaps, folder: Path, actions: str, fragment: str = "") -> list[Any]:
    """The states that ``actions`` collected on the page."""
    text = attention_page(maps, "the dog", "der Hund")
    driver = "(() => {" + DRIVER.replace("ACTIONS", actions) + "})();"
    page = folder / "driven.html"
    page.write_text(text.replace("</body>", f"<script>{driver}</script></body>"), "utf-8")
    assert CHROMIUM is not None
    command = [CHROMIUM, *QUIET, f"--user-data-dir={folder / 'profile'}", "--dump-dom", f"{page.as_uri()}{fragment}"]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'<pre id="states">(.*?)</pre>', dom, re.DOTALL)
    assert found is not None, dom[-2000:]
    return json.loads(html.unescape(found.group(1)))


def assert_lines(state: dict[str, Any], expected: list[list[float]]) -> None:
    """The lines drawn: from row, to column, weight."""
    np.testing.assert_allclose(sorted(state["lines"]), sorted(expected), rtol=1e-6)


def test_the_page_has_the_weights_themselves_and_nothing_from_outside(maps: AttentionMaps) -> None:
    text = attention_page(maps, "the <b>dog", "der Hund")
    assert "the &lt;b&gt;dog" in text
    assert "<b>dog" not in text
    data = json.loads(text.partition('id="attention-data">')[2].partition("</script>")[0])
    for kind in KINDS:
        numbers = np.frombuffer(base64.b64decode(data["maps"][kind]["weights"]), "<f4")
        np.testing.assert_array_equal(numbers.reshape(maps.weights[kind].shape), maps.weights[kind])
    assert tuple(data["maps"]["decoder"]["columns"]) == ("</s>", "▁der", "▁Hund")
    assert not re.search(r'(?:src|href)\s*=|url\(|@import|fetch\(|https?://(?!www\.w3\.org/2000/svg")', text)
    assert "default-src 'none'" in text


@needs_chromium
def test_hovering_a_word_draws_its_links_and_the_mouse_chooses_layer_and_head(
    maps: AttentionMaps, tmp_path: Path
) -> None:
    start, hovered, seen_from, left, other = drive(
        maps,
        tmp_path,
        """
        states.push(seen());
        mouse("q1", "mouseenter"); states.push(seen());
        mouse("q1", "mouseleave"); mouse("k2", "mouseenter"); states.push(seen());
        mouse("k2", "mouseleave"); states.push(seen());
        $("input[name=kind][value=decoder]").click(); $("input[name=layer][value='0']").click();
        $("input[name=head][value='2']").click(); states.push(seen());
        """,
    )
    cross = maps.weights["cross"][1]
    assert start["checked"] == ["cross", "1", "-1"]
    assert (tuple(start["left"]), tuple(start["right"])) == (TARGET, SOURCE)
    assert len(start["lines"]) == HEADS * 3 * 4
    assert start["colours"] == HEADS
    assert start["chosen"] == []
    assert start["readout"] == ""
    # One word's links only, with every head's own weight.
    assert_lines(hovered, [[1, k, w[1, k]] for w in cross for k in range(4)])
    mean = cross.mean(0)[1]
    strongest = int(mean.argmax())
    assert hovered["readout"].startswith(f"▁Hund looks at {SOURCE[strongest]} {mean[strongest]:.2f}")
    assert hovered["readout"].endswith("(mean of 3 heads)")
    assert_lines(seen_from, [[q, 2, w[q, 2]] for w in cross for q in range(3)])
    assert seen_from["readout"].startswith("</script> is seen by ")
    assert left["lines"] == start["lines"]
    # One head of the decoder: nothing is drawn to what is not yet written.
    decoder = maps.weights["decoder"][0, 2]
    assert other["checked"] == ["decoder", "0", "2"]
    assert other["right"] == ["</s>", "▁der", "▁Hund"]
    assert other["colours"] == 1
    assert_lines(other, [[q, k, decoder[q, k]] for q in range(3) for k in range(q + 1)])
    assert other["hash"] == "#decoder-1-3"


@needs_chromium
def test_the_keyboard_moves_between_words_and_a_link_recalls_the_view(maps: AttentionMaps, tmp_path: Path) -> None:
    start, down, across, end, left = drive(
        maps,
        tmp_path,
        """
        states.push(seen());
        $("[data-word=q0]").focus(); press("ArrowDown"); states.push(seen());
        press("ArrowRight"); states.push(seen());
        press("End"); states.push(seen());
        press("Escape"); states.push(seen());
        """,
        fragment="#encoder-2-1-k3",
    )
    assert start["checked"] == ["encoder", "1", "0"]
    assert start["chosen"] == start["stops"] == ["k3"]
    assert len(start["lines"]) == 4
    assert down["chosen"] == down["stops"] == ["q1"]
    assert down["hash"] == "#encoder-2-1-q1"
    assert (across["chosen"], end["chosen"], left["chosen"]) == (["k1"], ["k3"], [])
    assert left["stops"] == ["q0"]
    assert len(left["lines"]) == 4 * 4


@pytest.fixture(scope="module")
def model(corpus: Any, trained: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packaged") / "model"
    assert cli.main(["package", str(trained.directory), str(folder), "--data", str(corpus.binary)]) == 0
    return folder


def test_the_command_writes_every_layer_as_png_and_svg_and_the_page(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    folder = tmp_path / "deep" / "maps"
    arguments = ["attention", str(model), "w1 w2 w3", "--target", "w3 w2 w1", "--output", str(folder)]
    assert cli.main(arguments) == 0
    out, errors = capsys.readouterr()
    assert out.startswith("source: w1 w2 w3\ntarget: w3 w2 w1\n")
    assert errors == ""
    pictures = {f"{kind}-layer{n}.{end}" for kind in KINDS for n in (1, 2) for end in ("png", "svg")}
    assert {path.name for path in folder.iterdir()} == {*pictures, "attention.html"}
    data = json.loads(
        (folder / "attention.html").read_text("utf-8").partition('id="attention-data">')[2].partition("</script>")[0]
    )
    assert data["maps"]["cross"]["rows"] == ["w3", "w2", "w1", "</s>"]
    weights = np.frombuffer(base64.b64decode(data["maps"]["decoder"]["weights"]), "<f4").reshape(2, 2, 4, 4)
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-6)
    assert (np.triu(weights, 1) == 0.0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["w1"], "no-model is not a folder: "),
        ([""], "the source sentence is empty"),
        (["zz yy"], "no piece of the source sentence is in the model's dictionary"),
        (["w1", "--target", " "], "the target sentence is empty"),
        (["w1 " * 200], "the source sentence has 201 pieces with its </s>, more than the 128"),
        (["w1 \udcff"], "the sentence is not valid UTF-8"),
    ],
)
def test_mistakes_end_in_a_sentence(
    arguments: list[str], message: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    place = tmp_path / "no-model" if message.startswith("no-model") else model
    assert cli.main(["attention", str(place), *arguments, "--output", str(tmp_path / "maps")]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("vaswani attention: ")
    assert message in errors
    assert errors.count("\n") == 1
    assert not list(tmp_path.glob("maps/*"))


def test_no_matplotlib_is_told_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert cli.main(["attention", "nowhere", "w1", "--output", str(tmp_path / "maps")]) == 1
    assert "pip install 'vaswani-plugin[figures]'" in capsys.readouterr().err
    assert not (tmp_path / "maps").exists()
