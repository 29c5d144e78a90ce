"""Sentences longer than --max-tokens are found before the first update, by number, in each part of the data."""

import re
from pathlib import Path
from typing import Any

import in_process
import pytest
from conftest import Corpus
from in_process import call, refusal

LONG = "w1 " * 49  # and </s>


def write(folder: Path, name: str, pairs: "list[tuple[str, str]]") -> None:
    for side, lines in zip(("en", "de"), zip(*pairs)):
        (folder / f"{name}.{side}").write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture(scope="module")
def binary(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight pairs to train on, of which the third has 50 source tokens and the sixth 50 target tokens."""
    folder = tmp_path_factory.mktemp("tokens")
    pairs = [("w1 w2 w3", "w3 w2 w1")] * 8
    pairs[2], pairs[5] = (LONG, "w1"), ("w1", LONG)
    write(folder, "train", pairs)
    write(folder, "valid", [("w1 w2", "w2 w1"), ("w2", LONG)])
    call(
        *("fairseq-preprocess", "-s", "en", "-t", "de", "--joined-dictionary", "--destdir", folder / "binary"),
        *("--srcdict", corpus.binary / "dict.en.txt", "--trainpref", folder / "train", "--validpref", folder / "valid"),
    )
    return folder / "binary"


def stock(binary: Path, folder: Path, *extra: Any, **options: Any) -> Any:
    """fairseq's own translation task, which has no limit but the model's."""
    return in_process.train(binary, folder, "--task", "translation", *extra, **options)


LEFT_OUT = "2 of 8 sentences of train are left out, with more than (49, 49) tokens with </s>"


@pytest.mark.parametrize("train", [in_process.train, stock])
def test_training_leaves_them_out_and_says_which(binary: Path, tmp_path: Path, train: Any) -> None:
    """6 pairs of 4 tokens remain; with 50 tokens to a batch all 8 do."""
    flags = ("--disable-validation", "--max-epoch", 1)
    log = train(binary, tmp_path / "left-out", *flags, "--max-tokens", 49).output
    assert (
        f"{LEFT_OUT} (the least of --max-tokens, --max-source-positions and --max-target-positions), such as 3, 6"
        in log
    )
    assert log.index(LEFT_OUT) < log.index("begin training epoch 1")
    assert re.findall(r"\| wpb (\d+) \|", log) == ["24"]
    log = train(binary, tmp_path / "all", *flags, "--max-tokens", 50, "--update-freq", 8).output
    assert "are left out" not in log
    assert re.findall(r"\| wpb (\d+) \|", log) == [str(6 * 4 + 2 + 50)]


def test_batches_of_a_multiple_do_not_grow_beyond_it(binary: Path, tmp_path: Path) -> None:
    """12 tokens are 3 of the pairs, of which --required-batch-size-multiple 2 takes 2."""
    flags = ("--disable-validation", "--max-tokens", 12, "--log-interval", 1, "--max-epoch", 1)
    log = stock(binary, tmp_path, *flags, "--required-batch-size-multiple", 2, "--max-update", 9).output
    assert re.findall(r"bsz=(\d+)", log) == ["2", "2", "2"]


def test_a_limit_of_positions_is_named_too(binary: Path, tmp_path: Path) -> None:
    flags = ("--disable-validation", "--max-tokens", 200, "--max-source-positions", 49)
    log = in_process.train(binary, tmp_path, *flags).output
    assert "1 of 8 training pairs left out: more than --max-source-positions 49 or --max-target-positions 256" in log


def test_none_that_is_short_enough(binary: Path, tmp_path: Path) -> None:
    done = in_process.train(binary, tmp_path, "--disable-validation", "--max-tokens", 1, status=1)
    assert refusal(done, "fairseq-train").startswith("no sentences are left, because the data is empty or every")
    assert list(tmp_path.iterdir()) == []


def test_validation(binary: Path, tmp_path: Path) -> None:
    """The plugin gives such a sentence a batch of its own; fairseq's own task refuses it before the first update."""
    log = in_process.train(binary, tmp_path / "plugin", "--max-tokens", 49).output
    assert "valid on 'valid' subset" in log
    done = stock(binary, tmp_path / "stock", "--max-tokens", 49, status=1)
    expected = "sentence 2 has 50 tokens with </s>, more than --max-tokens 49; give a larger one"
    assert refusal(done, "fairseq-train") == expected
    assert "begin training epoch" not in done.output
    log = stock(binary, tmp_path / "more", "--max-tokens", 49, "--max-tokens-valid", 50).output
    assert "valid on 'valid' subset" in log


def test_a_truncated_source_fits(binary: Path, tmp_path: Path) -> None:
    """Of 50 tokens 20 are left, with </s>; the pair with the long target stays out."""
    flags = ("--disable-validation", "--truncate-source", "--max-source-positions", 20, "--max-tokens", 30)
    log = in_process.train(binary, tmp_path, *flags, "--max-epoch", 1, "--update-freq", 8).output
    assert "1 of 8 sentences of train are left out, with more than (30, 30) tokens" in log
    assert re.findall(r"\| wpb (\d+) \|", log) == [str(6 * 4 + 2)]
