"""``vaswani score`` against the ``sacrebleu`` command, to the last digit that it prints."""

import gzip
import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vaswani_plugin import cli

TEXT = "Der Hund und die Katze gehen heute z.B. zum Rhein-Main-Gebiet, weil „alles“ dort schön ist: 3,5 % mehr!"
WORDS = TEXT.split(" ")
DIGITS = 6
LENGTHS = ("hyp_len", "ref_len")
CELL = r"([\d.]+) \(\d+\.\d+ ± "


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ref, and two systems that have left out, doubled or lowered some of its words, of which one as gzip."""
    folder = tmp_path_factory.mktemp("texts")
    choose = random.Random(5)
    references = [[choose.choice(WORDS) for _ in range(choose.randint(1, 25))] for _ in range(60)]
    (folder / "ref").write_text("".join(" ".join(words) + "\n" for words in references), "utf-8")
    for name, faults in (("good", 0.1), ("bad", 0.14)):
        with open(folder / name, "w", encoding="utf-8", newline="\n") as file:
            for words in references:
                heard = [choose.choice((word.lower(), "", f"{word} {word}")) if choose.random() < faults else word
                         for word in words]  # fmt: skip
                file.write(" ".join(heard) + "\n")
    (folder / "good.gz").write_bytes(gzip.compress((folder / "good").read_bytes()))
    return folder


def official(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "sacrebleu", "ref", *arguments, "-w", str(DIGITS), "-m", "bleu", "chrf"]
    return subprocess.run(command, check=True, capture_output=True, cwd=folder, encoding="utf-8").stdout


def ours(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    files = ["--hypothesis", str(folder / "good.gz"), "--reference", str(folder / "ref")]
    assert cli.main(["score", *files, "--target-lang", "de", "--json", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


@pytest.mark.parametrize("lowercase", [False, True])
def test_equal_with_confidence(texts: Path, lowercase: bool, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["-lc", "--chrf-lowercase"] if lowercase else []
    bleu, chrf = json.loads(official(texts, "-i", "good", "--confidence", *flags))
    scores = ours(texts, capsys, "--confidence", *(["--lowercase"] if lowercase else []))
    for name, theirs in (("sacrebleu", bleu), ("chrf", chrf)):
        assert round(scores[name]["score"], DIGITS) == theirs["score"]
        assert scores[name]["signature"] == theirs["signature"]
        assert round(scores[name]["confidence"]["mean"], DIGITS) == theirs["confidence_mean"]
        assert round(scores[name]["confidence"]["half_width"], DIGITS) == theirs["confidence_var"]
    lengths = scores["sacrebleu"]
    assert f"hyp_len = {lengths['hyp_len']} ref_len = {lengths['ref_len']}" in bleu["verbose_score"]


def test_equal_in_the_paired_bootstrap_test(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A table: a column for each metric, a row for each system, and below the second one its p-values.
    table = official(texts, "-i", "bad", "good", "--paired-bs", "--no-color", "--format", "text")
    (bad, good), p_values = (re.findall(pattern, table) for pattern in (rf"{CELL}.*? {CELL}", r"p = ([\d.]+)"))
    assert p_values[0] not in ("0.0010", "1.0000")  # it depends on the samples
    scores = ours(texts, capsys, "--compare", str(texts / "bad"))
    for name, theirs, other, p_value in zip(("sacrebleu", "chrf"), good, bad, p_values):
        score, compared = scores[name], scores[name]["compared"]
        assert f"{score['score']:.{DIGITS}f}" == theirs
        assert f"{compared['score']:.{DIGITS}f}" == other
        assert f"{compared['p_value']:.4f}" == p_value
        assert compared["signature"] in table
        assert "bs:1000|seed:12345|" in compared["signature"]
        assert "bs:" not in score["signature"]
    assert all("p_value" in score["compared"] for score in scores.values())


def test_equal_on_tokenised_text(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The words as they are counted is what ``sacrebleu --tokenize none`` says of the same files."""
    bleu, chrf = json.loads(official(texts, "-i", "good", "--tokenize", "none"))
    files = ["--hypothesis", str(texts / "good"), "--reference", str(texts / "ref")]
    assert cli.main(["score", *files, "--tokenized", "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("vaswani score: warning: sacrebleu and chrf are for raw text")
    scores = json.loads(captured.out)
    assert round(scores["tokenized"]["score"], DIGITS) == bleu["score"]
    assert scores["tokenized"]["signature"] == bleu["signature"]
    assert round(scores["chrf"]["score"], DIGITS) == chrf["score"]


def test_table_of_confidence_and_comparison(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = ours(texts, capsys, "--compare", str(texts / "bad"), "--confidence")
    files = ["--hypothesis", str(texts / "good"), "--reference", str(texts / "ref"), "--target-lang", "de"]
    assert cli.main(["score", *files, "--compare", str(texts / "bad"), "--confidence"]) == 0
    header, *rows = capsys.readouterr().out.rstrip("\n").split("\n")
    assert header.split() == ["metric", "score", *LENGTHS, "95", "%", "compared", "p", "signature"]
    for row, (name, score) in zip(rows, scores.items(), strict=True):
        interval, other = score["confidence"], score["compared"]
        cells = [name, f"{score['score']:.2f}", *(f"{score[key]:,}" if key in score else "-" for key in LENGTHS)]
        cells += [f"{interval['mean']:.2f}", "±", f"{interval['half_width']:.2f}", f"{other['score']:.2f}"]
        assert row.split() == [*cells, f"{other['p_value']:.4f}", score["signature"]]
