"""Text that is not what it should be, through fairseq-preprocess and the vaswani commands."""

from pathlib import Path
from typing import Any, Optional

import pytest
import torch
from conftest import Corpus, Result
from in_process import call, refusal
from strange_lines import strange_lines

from vaswani_plugin import cli

GOOD = b"a b\nc d\n"


def preprocess(folder: Path, source: bytes, target: bytes, *extra: Any, status: int = 0, name: str = "train") -> Result:
    """Binarise one pair of texts: the training's, or another split's beside good training text."""
    texts = {"train": (GOOD, GOOD), name: (source, target)}
    flags: list[Any] = []
    for split, sides in texts.items():
        for ending, text in zip(("en", "de"), sides):
            (folder / f"{split}.{ending}").write_bytes(text)
        flags += [f"--{split}pref", folder / split]
    languages = ("-s", "en", "-t", "de", "--joined-dictionary", "--destdir", folder / "binary")
    return call("fairseq-preprocess", *languages, *flags, *extra, status=status)


def left_behind(folder: Path) -> "list[str]":
    return sorted(path.name for path in (folder / "binary").iterdir() if path.name != "preprocess.log")


@pytest.mark.parametrize("name", ["train", "valid", "test"])
@pytest.mark.parametrize(
    ("source", "target", "sentence"),
    [
        (GOOD, b"a\n", "{0}.en has 2 lines but {0}.de has 1; line n of one must be the translation of line n of the"),
        (b"a\rb\nc\n", b"a\nb\nc\n", "{0}.en has 2 lines but {0}.de has 3; "),
        (b"a\nb\xff\n", GOOD, "{0}.en, line 2: not UTF-8 (byte 0xFF at position 2); convert the file to UTF-8"),
        (GOOD, b"a \xed\xa0\x80\nb\n", "{0}.de, line 1: not UTF-8 (byte 0xED at position 3)"),
        (b"", b"", "{0}.en is empty; give a text with at least one line"),
    ],
    ids=["shorter", "lone carriage return", "not UTF-8", "surrogate", "empty"],
)
def test_refused_before_anything_is_binarised(
    tmp_path: Path, name: str, source: bytes, target: bytes, sentence: str
) -> None:
    done = preprocess(tmp_path, source, target, status=1, name=name)
    assert refusal(done, "fairseq-preprocess").startswith(sentence.format(tmp_path / name))
    assert left_behind(tmp_path) == []


def test_clean_refuses_sides_of_different_length(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.en").write_bytes(GOOD)
    (tmp_path / "a.de").write_bytes(b"a\n")
    files = ["--source", str(tmp_path / "a.en"), "--target", str(tmp_path / "a.de"), "--output", str(tmp_path / "b")]
    assert cli.main(["clean", *files]) == 1
    assert capsys.readouterr().err.startswith(
        f"vaswani clean: {tmp_path / 'a.en'} has 2 lines but {tmp_path / 'a.de'} "
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.de", "a.en"]


@pytest.mark.parametrize("workers", [1, 3])
def test_odd_characters_keep_the_lines_together(tmp_path: Path, workers: int) -> None:
    """Every line is a sentence, whatever is in it, for one worker and several."""
    from fairseq.data import Dictionary, data_utils

    lines = [line for line in strange_lines(100, seed=1) if len(line) < 10_000 and _is_utf8(line)]
    lines += [b"crlf\r", "\ufeffbom".encode(), "u\u2028v \u2029 \u0085".encode(), b""]
    text = b"\n".join([*lines, b"last without an end"])
    preprocess(tmp_path, text, text, "--workers", workers)
    dictionary = Dictionary.load(str(tmp_path / "binary" / "dict.en.txt"))
    sides = [
        data_utils.load_indexed_dataset(str(tmp_path / "binary" / f"train.en-de.{side}"), dictionary)
        for side in ("en", "de")
    ]
    words = [line.decode().split() for line in [*lines, b"last without an end"]]
    for side in sides:
        assert len(side) == len(words)
        for ids, expected in zip((side[index] for index in range(len(side))), words):
            assert ids[-1] == dictionary.eos()
            assert [dictionary[index] for index in ids[:-1]] == expected


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"a 1\nb\n", "{}, line 2: 'b' is no entry of a dictionary; expected a token, a space and its count"),
        (b"a 1\nb 1\na 1\n", "{}, line 3: the entry 'a' is there a second time; remove it"),
        (b"a\xff 1\n", "the dictionary {} is not UTF-8"),
        (None, "there is no file {}"),
    ],
    ids=["no count", "twice", "not UTF-8", "missing"],
)
def test_dictionaries(tmp_path: Path, content: Optional[bytes], sentence: str) -> None:
    path = tmp_path / "dict.txt"
    if content is not None:
        path.write_bytes(content)
    done = preprocess(tmp_path, GOOD, GOOD, "--srcdict", path, status=1)
    assert refusal(done, "fairseq-preprocess").startswith(sentence.format(path))
    assert left_behind(tmp_path) == []


def test_arguments_that_do_not_go_together(tmp_path: Path, corpus: Corpus) -> None:
    done = preprocess(tmp_path, GOOD, GOOD, "--workers", 0, status=1)
    assert refusal(done, "fairseq-preprocess") == "--workers 0 must be at least 1"
    preprocess(tmp_path, GOOD, GOOD)
    before = {path.name: path.read_bytes() for path in (tmp_path / "binary").glob("[!p]*")}
    done = preprocess(tmp_path, b"other\n", b"other\n", status=1)
    assert refusal(done, "fairseq-preprocess").startswith(
        f"{tmp_path / 'binary' / 'dict.en.txt'} is there already; give"
    )
    assert {path.name: path.read_bytes() for path in (tmp_path / "binary").glob("[!p]*")} == before


# the builder's file is closed by the end of the process
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_failure_while_binarising_leaves_no_half_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairseq.binarizer import VocabularyDatasetBinarizer

    binarize = VocabularyDatasetBinarizer.binarize_line

    def full_disk(self: Any, line: str, summary: Any) -> torch.Tensor:
        if line == "d\n":
            raise OSError(28, "No space left on device")
        return binarize(self, line, summary)

    monkeypatch.setattr(VocabularyDatasetBinarizer, "binarize_line", full_disk)
    done = preprocess(tmp_path, b"a\nb\n", b"c\nd\n", status=1)
    assert refusal(done, "fairseq-preprocess") == "a file could not be written: No space left on device"
    assert left_behind(tmp_path) == ["dict.de.txt", "dict.en.txt", "train.en-de.en.bin", "train.en-de.en.idx"]


def test_a_vocabulary_that_the_text_does_not_support(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("one short line\n")
    for size, told in (
        (50_000, "--size 50000 is too large: this text supports at most "),
        (10, "--size 10 is too small: this text needs at least "),
        (0, "--size 0 is no number of pieces; "),
        (-5, "--size -5 is no number of pieces; "),
        (10**12, "--size 1000000000000 is no number of pieces; "),
    ):
        arguments = ["--size", str(size), "--output", str(tmp_path / "joint"), str(tmp_path / "text")]
        assert cli.main(["vocabulary", *arguments]) == 1
        error = capsys.readouterr().err
        assert error.startswith(f"vaswani vocabulary: {told}")
        assert error.count("\n") == 1
        assert [path.name for path in tmp_path.iterdir()] == ["text"]
