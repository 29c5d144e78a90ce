"""Any 200 lines into fairseq-interactive and fairseq-generate: 200 results, in order, whatever is in the lines."""

import random
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import PLUGIN, Corpus, Result, Run, run
from in_process import call, generate, interactive, train
from strange_lines import is_blank, strange_lines

from vaswani_plugin.data.segmentation import Segmentation
from vaswani_plugin.data.vocabulary import make_vocabulary

Answer = tuple[str, float]
LIMIT = 10_000


def answers(done: Result, count: int) -> "list[Answer]":
    """Text and score (base 2) of each line's H- result; H- and D- stand once for each line, in order."""
    assert "Traceback" not in done.output
    lines = done.output.split("\n")
    for kind in "HD":
        numbers = [int(line[2 : line.index("\t")]) for line in lines if re.match(rf"{kind}-\d+\t", line)]
        assert numbers == list(range(count))
    found = [line.split("\t") for line in lines if line.startswith("H-")]
    return [(text, float(score)) for _, score, text in found]


def assert_same(found: "Sequence[Answer]", expected: "Sequence[Answer]") -> None:
    assert [text for text, _ in found] == [text for text, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1e-4)


@pytest.fixture(scope="module")
def lines() -> "list[bytes]":
    return strange_lines()


@pytest.fixture(scope="module")
def together(corpus: Corpus, trained: Run, lines: "list[bytes]", tmp_path_factory: pytest.TempPathFactory) -> Result:
    path = tmp_path_factory.mktemp("lines") / "text"
    path.write_bytes(b"\n".join(lines))  # the last line has no end
    return interactive(corpus.binary, trained.last, path, "--buffer-size", 50, "--batch-size", 16)


def test_200_lines_give_200_results(lines: "list[bytes]", together: Result) -> None:
    found = answers(together, 200)
    assert sum(map(is_blank, lines)) >= 10
    for line, (text, _) in zip(lines, found):
        if is_blank(line):
            assert text == ""


def test_what_cannot_be_read_or_translated_is_named_and_kept(lines: "list[bytes]", together: Result) -> None:
    undecodable = [n for n, line in enumerate(lines, 1) if line.decode("utf-8", "ignore").encode() != line]
    named = re.findall(
        r"^line (\d+) of the input is not UTF-8; U\+FFFD stands for what cannot be read$", together.output, re.MULTILINE
    )
    assert [int(number) for number in named] == undecodable
    assert len(undecodable) >= 10
    long = {n: len(line.split()) + 1 for n, line in enumerate(lines, 1) if len(line.split()) >= LIMIT}
    told = re.findall(
        r"^line (\d+) of the input has ([\d,]+) tokens with </s>, more than the 10,000 that",
        together.output,
        re.MULTILINE,
    )
    assert {int(n): int(tokens.replace(",", "")) for n, tokens in told} == long
    assert len(long) == 1
    for number in long:
        assert answers(together, 200)[number - 1][0] == ""


def test_line_by_line_from_a_pipe_gives_the_same(
    corpus: Corpus, trained: Run, lines: "list[bytes]", together: Result, tmp_path: Path
) -> None:
    """One sentence at a time, in another order, from standard input, in its own process and under an odd locale."""
    order = random.Random(1).sample(range(200), 200)
    (tmp_path / "text").write_bytes(b"".join(lines[index] + b"\n" for index in order))
    words = ["fairseq-interactive", corpus.binary, "--user-dir", PLUGIN, "--task", "vaswani_translation", "--cpu"]
    command = " ".join(shlex.quote(str(word)) for word in [*words, "--path", trained.last])
    done = run(
        "bash", "-c", f"exec {command} <{tmp_path / 'text'}", LC_ALL="C", PYTHONIOENCODING="ascii", installed=True
    )
    expected = answers(together, 200)
    assert_same(answers(done, 200), [expected[index] for index in order])


@pytest.mark.parametrize(
    "flags", [("--batch-size", 1, "--buffer-size", 50), ("--batch-size", 16), ("--max-tokens", 20)]
)
def test_other_batches_give_the_same(
    corpus: Corpus, trained: Run, lines: "list[bytes]", together: Result, tmp_path: Path, flags: "tuple[object, ...]"
) -> None:
    """A batch larger than the buffer, and sentences longer than --max-tokens, are no reason to give up either."""
    chosen = [index for index in range(200) if len(lines[index]) < 2000][:60]
    (tmp_path / "text").write_bytes(b"".join(lines[index] + b"\n" for index in chosen))
    done = interactive(corpus.binary, trained.last, tmp_path / "text", *flags)
    expected = answers(together, 200)
    assert_same(answers(done, len(chosen)), [expected[index] for index in chosen])


def test_other_searches_leave_blank_lines_blank(corpus: Corpus, trained: Run, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"w1 w2\n\n \t\nw3\r\n")
    for flags in (["--no-repeat-ngram-size", 2], ["--sampling", "--beam", 1], ["--diverse-beam-groups", 2]):
        done = interactive(corpus.binary, trained.last, tmp_path / "text", *flags)
        found = [text for text, _ in answers(done, 4)]
        assert found[1:3] == ["", ""]
        assert "" not in (found[0], found[3])


# --- raw text, cut into pieces on the way --------------------------------------------------------------------------


@dataclass
class Pieces:
    model: Path
    binary: Path
    checkpoint: Path


@pytest.fixture(scope="module")
def pieces(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Pieces:
    """A model of SentencePiece pieces that has learned to answer shortly."""
    folder = tmp_path_factory.mktemp("pieces")
    make_vocabulary([corpus.raw / "train.en"], 280, folder / "joint")
    segmentation = Segmentation(folder / "joint.model")
    for split in ("train", "valid"):
        text = (corpus.raw / f"{split}.en").read_text().split("\n")[:-1]
        encoded = {"en": segmentation.encode_lines(text), "de": segmentation.encode_lines(["w1 w2"] * len(text))}
        for side, rows in encoded.items():
            (folder / f"{split}.{side}").write_text("".join(f"{row}\n" for row in rows))
    call(
        *("fairseq-preprocess", "-s", "en", "-t", "de", "--joined-dictionary", "--destdir", folder / "binary"),
        *("--srcdict", folder / "joint.dict.txt", "--trainpref", folder / "train", "--validpref", folder / "valid"),
    )
    train(folder / "binary", folder, "--max-update", 40, "--max-tokens", 1000, "--warmup-updates", 20)
    return Pieces(folder / "joint.model", folder / "binary", folder / "checkpoint_last.pt")


def test_raw_text_gives_a_line_for_a_line(pieces: Pieces, lines: "list[bytes]", tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"".join(line + b"\n" for line in lines))
    flags = ("--bpe", "sentencepiece", "--sentencepiece-model", pieces.model)
    done = interactive(
        pieces.binary, pieces.checkpoint, tmp_path / "text", *flags, "--buffer-size", 50, "--batch-size", 16
    )
    found = answers(done, 200)
    for line, (text, _) in zip(lines, found):
        if is_blank(line):
            assert text == ""
    # Every piece of every line is known: SentencePiece falls back to bytes.
    sources = re.findall(r"^S-\d+\t(.*)$", done.output, re.MULTILINE)
    assert len(sources) == 200
    assert not any("<unk>" in source.split() for source in sources)
    segmentation = Segmentation(pieces.model)
    for line, source in zip(lines, sources):
        text = line.decode("utf-8", "replace").strip()
        if len(segmentation.encode(text).split()) < LIMIT:
            assert segmentation.decode(source) == text
        else:
            assert source == ""


# --- binarised text ------------------------------------------------------------------------------------------------


def test_generate_gives_what_interactive_gives(
    corpus: Corpus, trained: Run, lines: "list[bytes]", together: Result, tmp_path: Path
) -> None:
    """fairseq-preprocess refuses what is not UTF-8, so here are the other lines, the 50,000 words among them."""
    chosen = [index for index, line in enumerate(lines) if line.decode("utf-8", "ignore").encode() == line]
    for side in ("en", "de"):
        (tmp_path / f"test.{side}").write_bytes(b"".join(lines[index] + b"\n" for index in chosen))
    call(
        *("fairseq-preprocess", "-s", "en", "-t", "de", "--joined-dictionary", "--destdir", tmp_path / "binary"),
        *("--srcdict", corpus.binary / "dict.en.txt", "--testpref", tmp_path / "test"),
    )
    done = generate(tmp_path / "binary", trained.last, "--max-tokens", 4000)
    by_number = {
        int(n): (text, float(s)) for n, s, text in re.findall(r"^H-(\d+)\t(\S+)\t(.*)$", done.output, re.MULTILINE)
    }
    assert sorted(by_number) == list(range(len(chosen)))
    expected = answers(together, 200)
    assert_same([by_number[n] for n in range(len(chosen))], [expected[index] for index in chosen])
    (number,) = (n for n, index in enumerate(chosen, 1) if len(lines[index].split()) >= LIMIT)
    assert (
        f"line {number} of test has 50,001 tokens with </s>, more than the 10,000 that the model takes" in done.output
    )
