"""vaswani report on a real run: its own log, checkpoints, translations and score, and the page in a browser."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import reference
from test_attention_page import CHROMIUM, QUIET, needs_chromium

from vaswani_plugin import cli


@pytest.fixture(scope="module")
def run_folder(corpus: Any, trained: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run: checkpoints, fairseq-train's log, fairseq-generate's output, score.json."""
    folder = tmp_path_factory.mktemp("runs") / "reversal"
    folder.mkdir()
    shutil.copy(trained.last, folder / "checkpoint_last.pt")
    (folder / "train.log").write_text(trained.log, "utf-8")
    (folder / "generate.txt").write_text(corpus.generate(trained.last).output, "utf-8")
    scores = {"sacrebleu": {"score": 12.25, "signature": "nrefs:1|tok:13a"}}
    (folder / "score.json").write_text(json.dumps(scores), "utf-8")
    return folder


@pytest.fixture(scope="module")
def page(run_folder: Path) -> str:
    assert cli.main(["report", str(run_folder)]) == 0
    return (run_folder / "report.html").read_text("utf-8")


def test_the_page_tells_of_the_run(page: str, trained: Any) -> None:
    logged = [float(value) for value in re.findall(r"train_inner \| .* loss=([\d.]+)", trained.log)]
    assert len(logged) == 200
    assert f"Loss in bits. training: from {logged[0]:.4g} at update 1 to {logged[-1]:.4g} at update 200." in page
    assert "the logged rates agree with it" in page
    peak = max(reference.learning_rate(update + 1, 16, 100) for update in range(1, 201))
    assert f"its peak so far is {peak:.3g};" in page
    assert "Finished after 200 updates" in page
    assert "<td>sacrebleu</td><td>12.25</td>" in page
    assert re.search(r"<td>vaswani_plugin \d\S*, fairseq \d\S*, torch \d\S*, Python 3\S*, ", page)
    command = html.unescape(re.search(r"<h3>Command</h3>\s*<pre>(.*?)</pre>", page, re.DOTALL)[1])
    assert command.startswith("fairseq-train ")
    assert "--lr-scheduler vaswani_inverse_sqrt --warmup-updates 100" in command


def test_translations_and_one_sentences_attention(page: str, corpus: Any) -> None:
    sources = (corpus.raw / "test.en").read_text().strip().split("\n")
    shown, worst = page.partition("worst by chrF</h2>")[::2]
    assert re.findall(r"<b>source</b>(.*?)</p>", shown) == sources  # 15, fewer than 20: all of them
    values = [float(value) for value in re.findall(r"chrF ([\d.]+)</p>", worst)]
    assert len(values) == 10
    assert values == sorted(values)
    data = json.loads(page.partition('id="attention-data">')[2].partition("</script>")[0])
    assert (data["layers"], data["heads"]) == (2, 2)
    assert " ".join(data["maps"]["encoder"]["rows"][:-1]) in sources


def test_the_audits_table(page: str, run_folder: Path, capsys: pytest.CaptureFixture) -> None:
    assert cli.main(["audit", "--json", str(run_folder)]) == 0
    audit = json.loads(capsys.readouterr().out)
    told = [detail for detail in audit["details"] if detail["same"] is not None]
    assert (
        f"<p>{audit['differences']} of {len(told)} details differ from the paper's {audit['model']} model.</p>" in page
    )
    assert page.count('<tr class="emphasised">') == audit["differences"] > 0
    for detail in audit["details"]:
        assert f"<td>{html.escape(detail['name'])}</td>" in page


def test_a_run_that_goes_on(run_folder: Path, tmp_path: Path) -> None:
    """Half of the log, no translations yet."""
    text = (run_folder / "train.log").read_text("utf-8")
    (tmp_path / "train.log").write_text(text[: text.index("num_updates=121,") + 5], "utf-8")
    output = tmp_path / "elsewhere" / "page.html"
    assert cli.main(["report", str(tmp_path), "--output", str(output)]) == 0
    assert "120 of 200 updates; the log's last line is of " in output.read_text("utf-8")
    assert not (tmp_path / "report.html").exists()


@needs_chromium
def test_a_phone_shows_it_without_scrolling_sideways(page: str, tmp_path: Path) -> None:
    script = """
      document.documentElement.style.width = "360px";
      const wide = [...document.querySelectorAll("body *")].filter((element) =>
        element.getBoundingClientRect().right > 361 && !element.closest(".scroll")).map((element) => element.outerHTML);
      const pre = document.createElement("pre");
      pre.id = "result";
      pre.textContent = JSON.stringify([wide.slice(0, 3), document.querySelectorAll("svg.chart").length,
        document.querySelectorAll(".attention line").length > 0]);
      document.body.append(pre);
    """
    (tmp_path / "page.html").write_text(page.replace("</body>", f"<script>{script}</script></body>"), "utf-8")
    command = [CHROMIUM, *QUIET, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    dom = subprocess.run(
        [*command, (tmp_path / "page.html").as_uri()], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    result = json.loads(html.unescape(re.search(r'<pre id="result">(.*?)</pre>', dom, re.DOTALL)[1]))
    assert result == [[], 5, True]
