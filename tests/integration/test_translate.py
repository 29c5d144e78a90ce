"""Models in use through the real commands: a run of fairseq-train, pipes, fairseq's own tools; and pages of docs/."""

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import PLUGIN, Corpus, Run, run
from small_run import make_run, sentences, translation

from vaswani_plugin import cli
from vaswani_plugin.inference.packaging import package
from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Laid out as the README's five commands leave it, with the packaged model beside."""
    folder = tmp_path_factory.mktemp("run")
    make_run(folder, steps=150)
    (folder / "averaged.pt").write_bytes((folder / "checkpoints" / "checkpoint_last.pt").read_bytes())
    lines = sentences(12, seed=9)
    (folder / "valid.en").write_text("".join(f"{line}\n" for line in lines))
    (folder / "valid.de").write_text("".join(f"{translation(line)}\n" for line in lines))
    package(folder, folder / "packaged")
    return folder


def detokenised(output: str) -> list[str]:
    """The D lines of fairseq-generate or -interactive, in order."""
    found = {int(n): text for n, text in re.findall(r"^D-(\d+)\t[^\t]*\t(.*)$", output, re.MULTILINE)}
    return [found[n] for n in sorted(found)]


def test_a_real_run_in_python_is_as_fairseq_generate(corpus: Corpus, trained: Run, tmp_path: Path) -> None:
    expected = detokenised(corpus.generate(trained.last).output)
    lines = (corpus.raw / "test.en").read_text().split("\n")[:-1]
    assert len(expected) == len(lines) == 15
    model = VaswaniTransformer.from_pretrained(trained.directory, "checkpoint_last.pt", corpus.binary)
    assert model.translate(lines) == expected
    arguments = ["package", str(trained.directory), str(tmp_path / "model"), "--checkpoint", str(trained.last)]
    assert cli.main(arguments) == 0
    packaged = VaswaniTransformer.from_pretrained(tmp_path / "model")
    assert packaged.models[0].cfg.dropout == 0.1
    assert packaged.translate(lines) == expected


def test_an_ensemble(corpus: Corpus, trained: Run) -> None:
    other = next(trained.directory.glob("checkpoint_*_50.pt"))
    expected = detokenised(corpus.generate(f"{trained.last}:{other}").output)
    model = VaswaniTransformer.from_pretrained(trained.directory, f"checkpoint_last.pt:{other.name}", corpus.binary)
    assert model.translate((corpus.raw / "test.en").read_text().split("\n")[:-1]) == expected


def test_translate_is_as_fairseq_interactive(folder: Path) -> None:
    lines = [*sentences(8, seed=11), "", "Größe\rΩ"]
    text = "".join(f"{line}\n" for line in lines)
    translated = run("vaswani", "translate", folder / "packaged", "--cpu", stdin=text).output
    interactive = run(
        *("fairseq-interactive", folder / "packaged", "--user-dir", PLUGIN, "--task", "vaswani_translation", "--cpu"),
        *("--path", folder / "packaged" / "model.pt", "--source-lang", "en", "--target-lang", "de"),
        *("--bpe", "sentencepiece", "--sentencepiece-model", folder / "packaged" / "sentencepiece.bpe.model"),
        stdin=text,
    ).output
    # Nothing else is printed, on neither stream.
    assert translated.split("\n") == [*detokenised(interactive), ""]
    assert len(set(detokenised(interactive))) > 5


def test_lines_are_answered_while_the_pipe_is_open(folder: Path) -> None:
    command = [sys.executable, "-m", "vaswani_plugin", "translate", str(folder / "packaged"), "--cpu"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(2):
            process.stdin.write(b"the house\n")
            process.stdin.flush()
            assert process.stdout.readline().endswith(b"\n")  # would wait for ever
            time.sleep(0.1)
        process.stdin.write(b"\xff\n\n" + b"the " * 10_000 + b"\na")
        rest, errors = process.communicate()
    assert process.returncode == 1
    assert [len(line) > 0 for line in rest.split(b"\n")] == [True, False, False, True, False]
    first, second, last = errors.decode().strip().split("\n")
    assert first == "vaswani translate: line 3 is not UTF-8; U+FFFD stands for what cannot be read"
    assert second.startswith("vaswani translate: line 5 has 10,001 tokens with </s>, more than the model's 10,000")
    assert last == "vaswani translate: 1 of 6 lines could not be translated, and are empty in the output"


def test_a_folder_that_is_no_model_is_told(tmp_path: Path, capsys: Any) -> None:
    for name, message in (("nowhere", "is not a folder"), ("", "has no model.pt")):
        assert cli.main(["translate", str(tmp_path / name)]) == 1
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    (tmp_path / "model.pt").write_bytes(b"nothing")
    assert cli.main(["translate", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "model.pt" in error
    assert error.count("\n") == 1


def test_limits_in_the_pages_are_the_codes() -> None:
    from vaswani_plugin.models.sequence_encoder import UNLIMITED_LENGTH

    assert UNLIMITED_LENGTH == 10_000
    for page in ("python.md", "export.md"):
        assert "10,000 tokens" in (DOCS / page).read_text("utf-8")
