"""Blank lines and sentences of 10,000 tokens in training, validation and generation."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from conftest import PLUGIN, Corpus, Run
from in_process import call, generate, refusal, train

TEN_THOUSAND = "w1 " * 10_000
PLUGIN_FLAGS = ("--user-dir", PLUGIN, "--task", "vaswani_translation", "--cpu", "--max-tokens", 200)


def pairs(name: str, source: "Sequence[str]", target: "Sequence[str]", folder: Path) -> None:
    for side, lines in (("en", source), ("de", target)):
        (folder / f"{name}.{side}").write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture(scope="module")
def binary(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lengths")
    pairs("train", ["w1 w2", TEN_THOUSAND, "w3 w4", "", "w5"], ["w2 w1", "w1", TEN_THOUSAND, "w3", ""], folder)
    pairs("valid", ["w1", "w2 " * 300, ""], ["w1", "w3", ""], folder)
    pairs("long", ["w2", TEN_THOUSAND], ["w2", "w1"], folder)
    pairs("test", ["w1", TEN_THOUSAND, "w3 w4", "", "w5 " * 300], ["w1", "w2", TEN_THOUSAND, "w3", "w5"], folder)
    prefixes = ("--trainpref", folder / "train", "--validpref", f"{folder / 'valid'},{folder / 'long'}")
    call(
        *("fairseq-preprocess", "-s", "en", "-t", "de", "--joined-dictionary", "--destdir", folder / "binary"),
        *("--srcdict", corpus.binary / "dict.en.txt", *prefixes, "--testpref", folder / "test"),
    )
    return folder / "binary"


def test_training_leaves_them_out_and_takes_blank_lines(binary: Path, tmp_path: Path) -> None:
    """Two pairs of 10,001 tokens are left out; a validation line longer than --max-tokens is a batch of its own."""
    done = train(binary, tmp_path, "--ignore-unused-valid-subsets")
    told = "2 of 5 training pairs left out: more than --max-source-positions 256 or --max-target-positions 256 tokens"
    assert told in done.output
    # tokens of the targets with </s>: 3 + 2 + 1
    (wpb,) = re.findall(r"epoch 001 \| loss .*\| wpb (\d+) \|", done.output)
    assert wpb == "6"
    loss = float(re.search(r"valid on 'valid' subset \| loss ([\d.]+)", done.output).group(1))
    assert math.isfinite(loss)
    for value in torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)["model"].values():
        assert value.isfinite().all()


def test_a_text_of_blank_lines_alone_trains_to_silence(corpus: Corpus, tmp_path: Path) -> None:
    pairs("train", [""] * 20, [""] * 20, tmp_path)
    call(
        *("fairseq-preprocess", "-s", "en", "-t", "de", "--joined-dictionary", "--destdir", tmp_path / "binary"),
        *("--srcdict", corpus.binary / "dict.en.txt", "--trainpref", tmp_path / "train"),
    )
    done = train(tmp_path / "binary", tmp_path, "--disable-validation", "--batch-size", 20)
    assert "0 of 20 training pairs left out" in done.output


def test_validation_refuses_them_before_the_training_begins(binary: Path, tmp_path: Path) -> None:
    subsets = ("--valid-subset", "valid1", "--ignore-unused-valid-subsets")
    done = train(binary, tmp_path, *subsets, status=1)
    assert refusal(done, "fairseq-train") == (
        "sentence 2 of valid1 has 10001 and 2 tokens with </s>, more than the (10000, 10000) that the model takes; "
        "leave such sentences out with --skip-invalid-size-inputs-valid-test"
    )
    assert "begin training epoch" not in done.output
    assert list(tmp_path.glob("*.pt")) == []
    done = train(binary, tmp_path, *subsets, "--skip-invalid-size-inputs-valid-test")
    assert "valid on 'valid1' subset" in done.output


def test_validate_refuses_them_too(binary: Path, trained: Run) -> None:
    done = call("fairseq-validate", binary, *PLUGIN_FLAGS, "--path", trained.last, "--valid-subset", "valid1", status=1)
    assert refusal(done, "fairseq-validate").startswith("sentence 2 of valid1 has 10001 and 2 tokens with </s>")


def test_generation_keeps_the_line(binary: Path, trained: Run) -> None:
    """The second source is too long; the third reference is, which is nothing to the translation."""
    done = generate(binary, trained.last, "--max-tokens", 200)
    found = {int(n): text for n, text in re.findall(r"^D-(\d+)\t\S+\t(.*)$", done.output, re.MULTILINE)}
    assert sorted(found) == [0, 1, 2, 3, 4]
    assert [number for number, text in found.items() if text == ""] in ([1, 3], [3, 1])
    told = (
        "line 2 of test has 10,001 tokens with </s>, more than the 10,000 that the model takes: its translation is left"
    )
    assert told in done.output
    (reference,) = re.findall(r"^T-2\t(.*)$", done.output, re.MULTILINE)
    assert len(reference.split()) == 10_000


def test_learned_positions_limit_what_is_translated(corpus: Corpus, binary: Path, tmp_path: Path) -> None:
    """A table of 300 rows: 300 tokens with </s> would fit, 301 do not; scoring a longer reference is refused."""
    flags = ("--learned-positions", "--max-source-positions", 300, "--max-target-positions", 300)
    train(corpus.binary, tmp_path, *flags)
    done = generate(binary, tmp_path / "checkpoint_last.pt", *flags[1:], "--max-len-b", 0)
    for line, tokens in ((2, "10,001"), (5, "301")):
        assert (
            f"line {line} of test has {tokens} tokens with </s>, more than the 300 that the model takes" in done.output
        )
    assert sorted(map(int, re.findall(r"^D-(\d+)\t", done.output, re.MULTILINE))) == [0, 1, 2, 3, 4]
    done = generate(binary, tmp_path / "checkpoint_last.pt", *flags[1:], "--score-reference", status=1)
    assert refusal(done, "fairseq-generate") == (
        "a sentence has 10001 tokens with </s>, more than the 300 positions that the model has learned "
        "(--max-source-positions, --max-target-positions): leave it out"
    )


def test_binarised_sides_of_different_length(corpus: Corpus, trained: Run, tmp_path: Path) -> None:
    """Data that another tool binarised: told by the training and the generation, with both counts."""
    for path in corpus.binary.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for split, other in (("train", "valid"), ("test", "train")):
        for kind in ("bin", "idx"):
            (tmp_path / f"{split}.en-de.de.{kind}").write_bytes(
                (corpus.binary / f"{other}.en-de.de.{kind}").read_bytes()
            )
    sentence = "the source has 120 sentences but the target has 15; mend the text, where line n of one must be the "
    assert refusal(train(tmp_path, tmp_path / "save", status=1), "fairseq-train").startswith(sentence)
    sentence = "the source has 15 sentences but the target has 120; "
    assert refusal(generate(tmp_path, trained.last, status=1), "fairseq-generate").startswith(sentence)
