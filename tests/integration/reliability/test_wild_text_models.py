"""Odd and any text through training and translation: every line in its place, or one sentence and a status not 0."""

import logging
import re
from pathlib import Path
from typing import Optional

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process import generate, interactive, refusal, train
from small_run import sentences, translation
from wild_kit import LIMIT, Kit, reply, vaswani
from wild_text import BYTES, FILES, FIRST, LAST, LINE, is_utf8, lines_of, write_pair

from vaswani_plugin.errors import UserError

# Each odd line alone among ordinary ones takes minutes; all of them together stand for that.
TOGETHER = "all odd lines together"
TEXTS = {
    **FILES,
    TOGETHER: b"".join(text + b"\n" * (not text.endswith(b"\n")) for text in FILES.values() if is_utf8(text)),
}
AT_ONCE = ("empty file", "blank lines alone", TOGETHER)
BOM = b"\xef\xbb\xbf"
# Seconds for each.
few = settings(max_examples=settings.default.max_examples // 20)


def every_file(*more: str) -> pytest.MarkDecorator:
    """A test of each of TEXTS, most of them with --long only: AT_ONCE and ``more`` are not."""
    short = (*AT_ONCE, *more)
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=[] if name in short else pytest.mark.long) for name in TEXTS]
    )


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    return Kit(tmp_path_factory.mktemp("kit"))


@pytest.fixture
def text(name: str, tmp_path: Path) -> Path:
    return write_pair(TEXTS[name], tmp_path)


# --- training and generation of pieces -----------------------------------------------------------------------------


def binarised(kit: Kit, text: Path, folder: Path) -> "Optional[list[str]]":
    """Cleanly cut and binarised as train and test; the lines of pieces, or None where that was refused."""
    source = text.with_suffix(".en")
    done = vaswani("encode", "--model", kit.model, source, text.with_suffix(".de"), "--output", folder / "pieces")
    if done.status:
        return None
    pieces = [line.decode() for line in lines_of((folder / "pieces" / source.name).read_bytes())]
    kit.preprocess(folder / "pieces" / text.name, folder / "binary", "train", "test", status=0 if pieces else 1)
    return pieces or None


@every_file()
def test_train(name: str, text: Path, kit: Kit, tmp_path: Path) -> None:
    """One update counts the tokens of all sentences of up to 256; without data the training refuses to begin."""
    pieces = binarised(kit, text, tmp_path)
    if pieces is None:
        assert name in ("empty file", "not UTF-8")
        (tmp_path / "binary").mkdir(exist_ok=True)
        refusal(train(tmp_path / "binary", tmp_path / "save", status=1), "fairseq-train")
        return
    lengths = [len(line.split()) + 1 for line in pieces]
    fitting = [length for length in lengths if length <= 256]
    flags = ("--disable-validation", "--max-tokens", 20_000, "--required-batch-size-multiple", 1)
    done = train(tmp_path / "binary", tmp_path / "save", *flags)
    assert f"{len(lengths) - len(fitting)} of {len(lengths)} training pairs left out" in done.output
    loss, tokens = re.findall(r"epoch 001 \| loss ([\d.]+) .*\| wpb ([\d.]+) \|", done.output)[0]
    assert 0 < float(loss) < 20
    assert float(tokens) == pytest.approx(sum(fitting), abs=0.05)


# --- translation ---------------------------------------------------------------------------------------------------


@every_file()
def test_generate(name: str, text: Path, kit: Kit, tmp_path: Path) -> None:
    """A result for each line of pieces, white space at the ends of the lines included."""
    pieces = binarised(kit, text, tmp_path)
    if pieces is None:
        assert name in ("empty file", "not UTF-8")
        (tmp_path / "binary").mkdir(exist_ok=True)
        refusal(generate(tmp_path / "binary", kit.checkpoint, "-s", "en", "-t", "de", status=1), "fairseq-generate")
        return
    done = generate(tmp_path / "binary", kit.checkpoint, *kit.segmented, "--max-tokens", 4000)
    found = {int(number): answer for number, answer in re.findall(r"^D-(\d+)\t\S+\t(.*)$", done.output, re.MULTILINE)}
    lines = [line.decode() for line in lines_of(TEXTS[name])]
    assert [found.pop(number) for number in range(len(lines))] == list(map(kit.answer, lines))
    assert found == {}
    sources = dict(re.findall(r"^S-(\d+)\t(.*)$", done.output, re.MULTILINE))
    assert all(sources[str(number)] == line for number, line in enumerate(lines) if len(line) < LIMIT)


def translations(kit: Kit, content: bytes) -> "list[str]":
    """What is to come out for raw lines, of which white space at the ends and a mark at the very start are no part."""
    lines = [line.decode("utf-8", "replace") for line in lines_of(content.removeprefix(BOM))]
    found = [kit.answer(line.strip()) for line in lines]
    for line, answer in zip(lines, found):
        if line.encode() in (FIRST, LAST):
            assert answer == reply(line)
        assert (answer == "") == (not line.strip() or len(line) > 20_000)
    return found


def unreadable(content: bytes) -> "list[int]":
    return [number for number, line in enumerate(lines_of(content), 1) if not is_utf8(line)]


def too_long(content: bytes) -> "list[int]":
    return [number for number, line in enumerate(lines_of(content), 1) if len(line) > 20_000]


def told_lines(output: str, said: str) -> "list[int]":
    return [int(number) for number in re.findall(rf"line (\d+) (?:of the input )?{said}", output)]


@every_file("one line without an end", "byte order mark", "not UTF-8")
def test_interactive(name: str, text: Path, kit: Kit) -> None:
    flags = ("-s", "en", "-t", "de", *kit.segmented, "--buffer-size", 3)
    done = interactive(kit.packaged, kit.checkpoint, text.with_suffix(".en"), *flags)
    found = re.findall(r"^D-(\d+)\t\S+\t(.*)$", done.output, re.MULTILINE)
    assert found == [(str(number), answer) for number, answer in enumerate(translations(kit, TEXTS[name]))]
    assert told_lines(done.output, "is not UTF-8; U\\+FFFD stands for what cannot be read") == unreadable(TEXTS[name])
    assert told_lines(done.output, "has [\\d,]+ tokens") == too_long(TEXTS[name])


@every_file("one line without an end", "byte order mark", "not UTF-8")
def test_translate(name: str, kit: Kit) -> None:
    """The same lines as fairseq-interactive's; a status of 1 where one of them had to stay empty."""
    done = vaswani("translate", kit.packaged, "--cpu", stdin=TEXTS[name])
    assert done.output.decode() == "".join(f"{answer}\n" for answer in translations(kit, TEXTS[name]))
    assert told_lines(done.errors, "is not UTF-8; U\\+FFFD stands for what cannot be read") == unreadable(TEXTS[name])
    lost = too_long(TEXTS[name])
    assert told_lines(done.errors, "has [\\d,]+ tokens") == lost
    assert done.status == (1 if lost else 0)
    assert done.errors.count("\n") == len(unreadable(TEXTS[name])) + len(lost) + bool(lost)


@every_file("one line without an end", "byte order mark", "not UTF-8")
def test_translate_in_python(name: str, kit: Kit) -> None:
    lines = lines_of(TEXTS[name].removeprefix(BOM))
    if lost := [*unreadable(TEXTS[name]), *too_long(TEXTS[name])]:
        # Bytes that are no text come into Python's strings as halves of surrogate pairs.
        sentences = [line.decode("utf-8", "surrogateescape") for line in lines]
        with pytest.raises(UserError, match=rf"^sentence {lost[0]} of {len(lines)} h") as error:
            kit.translator.translate(sentences)
        assert "\n" not in str(error.value)
        return
    assert kit.translator.translate([line.decode() for line in lines]) == translations(kit, TEXTS[name])


# --- any text ---


@few
@given(st.lists(LINE, min_size=1, max_size=8))
def test_pieces_are_trained_on_and_translated(
    kit: Kit, tmp_path_factory: pytest.TempPathFactory, lines: "list[str]"
) -> None:
    """encode, fairseq-preprocess, fairseq-train and fairseq-generate of one text."""
    folder = tmp_path_factory.mktemp("chain")
    texts = [folder / f"text.{language}" for language in ("en", "de")]
    for path in texts:
        path.write_bytes("".join(f"{line}\n" for line in [*lines, LAST.decode()]).encode())
    assert vaswani("encode", "--model", kit.model, *texts, "--output", folder / "pieces").status == 0
    pieces = [line.decode().split() for line in lines_of((folder / "pieces" / "text.en").read_bytes())]
    kit.preprocess(folder / "pieces" / "text", folder / "binary", "train", "valid", "test")
    logging.getLogger("fairseq").setLevel(logging.NOTSET)
    flags = ("--max-tokens", 20_000, "--required-batch-size-multiple", 1, "--no-save")
    done = train(folder / "binary", folder / "save", *flags)
    (tokens,) = re.findall(r"epoch 001 \| loss .*\| wpb ([\d.]+) \|", done.output)
    assert float(tokens) == pytest.approx(sum(len(line) + 1 for line in pieces if len(line) < 256), abs=0.05)
    done = generate(folder / "binary", kit.checkpoint, *kit.segmented)
    found = {int(number): text for number, text in re.findall(r"^D-(\d+)\t\S+\t(.*)$", done.output, re.MULTILINE)}
    sources = {int(number): text for number, text in re.findall(r"^S-(\d+)\t(.*)$", done.output, re.MULTILINE)}
    assert [sources.pop(number) for number in range(len(lines))] == lines
    assert [found.pop(number) for number in range(len(lines))] == [kit.answer(line) for line in lines]
    assert found == {len(lines): reply(LAST.decode())}


@few
@given(st.lists(BYTES, max_size=8), st.booleans())
def test_three_ways_to_translate_agree(
    kit: Kit, tmp_path_factory: pytest.TempPathFactory, lines: "list[bytes]", last_ends: bool
) -> None:
    """Raw bytes to `vaswani translate` and fairseq-interactive, and the text to Python."""
    content = b"\n".join([FIRST, *lines, LAST]) + (b"\n" if last_ends else b"")
    raw = tmp_path_factory.getbasetemp() / "raw"
    raw.write_bytes(content)
    expected = [kit.answer(line.decode("utf-8", "replace").strip()) for line in lines_of(content)]
    assert (expected[0], expected[-1]) == (reply(FIRST.decode()), reply(LAST.decode()))
    done = vaswani("translate", kit.packaged, "--cpu", stdin=content)
    assert done.status == 0
    assert lines_of(done.output) == [text.encode() for text in expected]
    told = re.findall(r"line (\d+) is not UTF-8", done.errors)
    assert told == [str(number) for number, line in enumerate(lines_of(content), 1) if not is_utf8(line)]
    flags = ("-s", "en", "-t", "de", *kit.segmented, "--buffer-size", 4, "--batch-size", 3)
    output = interactive(kit.packaged, kit.checkpoint, raw, *flags).output
    assert re.findall(r"^D-(\d+)\t\S+\t(.*)$", output, re.MULTILINE) == [
        (str(number), text) for number, text in enumerate(expected)
    ]
    assert re.findall(r"line (\d+) of the input is not UTF-8", output) == told
    assert kit.translator.translate([line.decode("utf-8", "replace") for line in lines_of(content)]) == expected


@given(st.text(st.characters(codec=None)))
def test_any_string_of_python_is_translated_or_refused(kit: Kit, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        with pytest.raises(UserError, match=r"^sentence 2 of 2 holds half of a surrogate pair"):
            kit.translator.translate(["red", text])
    else:
        found = kit.translator.translate(["red", text])
        assert found[0] == reply("red")
        assert "\n" not in found[1]


def test_sacrebleu_of_generated_text(kit: Kit, tmp_path: Path) -> None:
    """The flag by which fairseq-generate prints sacreBLEU of the texts, and no second score beside it."""
    for language, lines in (("en", sentences(12, seed=5)), ("de", map(translation, sentences(12, seed=6)))):
        pieces = kit.segmentation.encode_lines(list(lines))
        (tmp_path / f"text.{language}").write_text("".join(f"{line}\n" for line in pieces))
    kit.preprocess(tmp_path / "text", tmp_path / "binary", "test")
    languages = ("-s", "en", "-t", "de")
    done = generate(tmp_path / "binary", kit.checkpoint, *languages, *kit.segmented, "--sacrebleu", "--max-len-b", 9)
    texts = [dict(re.findall(rf"^{kind}-(\d+)\t(?:\S+\t)?(.*)$", done.output, re.MULTILINE)) for kind in ("D", "T")]
    assert len(texts[0]) == 12
    hypotheses, references = ([side[str(number)] for number in range(12)] for side in texts)
    expected = sacrebleu.corpus_bleu(hypotheses, [references], force=True)
    assert expected.counts[0] > 0
    assert f"Generate test with beam=4: {expected.format()}" in done.output
    assert "Use --sacrebleu" not in done.output
    other = ("--sacrebleu", "--scoring", "chrf")
    done = generate(tmp_path / "binary", kit.checkpoint, *languages, *kit.segmented, *other, status=1)
    assert refusal(done, "fairseq-generate") == (
        "--sacrebleu and --scoring chrf ask for two scores; leave out one of them"
    )
