"""Each odd file through each tool for text: every line in its place, or one sentence and a status that is not 0."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fairseq.data import Dictionary, data_utils
from in_process import call, refusal
from small_run import sentences
from wild_kit import vaswani
from wild_text import FILES, is_utf8, lines_of, write_pair

from vaswani_plugin.data.segmentation import Segmentation
from vaswani_plugin.data.vocabulary import make_vocabulary

every_file = pytest.mark.parametrize("name", FILES)
NOT_UTF8 = r"line 2: not (valid )?UTF-8 \(byte 0xFF at position 1\)"


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ordinary") / "text"
    path.write_text("".join(f"{line}\n" for line in sentences(100, seed=1)))
    return path


@pytest.fixture(scope="module")
def segmentation(ordinary: Path) -> Segmentation:
    make_vocabulary([ordinary], 300, ordinary.with_name("joint"))
    return Segmentation(ordinary.with_name("joint.model"))


@pytest.fixture
def text(name: str, tmp_path: Path) -> Path:
    return write_pair(FILES[name], tmp_path)


def english(text: Path) -> Path:
    return text.with_suffix(".en")


# --- text tools ----------------------------------------------------------------------------------------------------


@every_file
@pytest.mark.parametrize("fix", [False, True])
def test_clean(name: str, text: Path, fix: bool, tmp_path: Path) -> None:
    """Lines that are blank, too long or not UTF-8 go, the others stay as they are, but for the CR of a CR LF."""
    sides = ("--source", english(text), "--target", text.with_suffix(".de"), "--output", tmp_path / "clean")
    done = vaswani("clean", *sides, "--json", *(["--fix"] if fix else []))
    assert (done.status, done.errors) == (0, "")
    lines = [line.removesuffix(b"\r") for line in lines_of(FILES[name])]
    assert json.loads(done.output)["pairs"] == len(lines)
    written = [(tmp_path / f"clean.{language}").read_bytes() for language in ("en", "de")]
    assert written[0] == written[1]
    if not fix:
        kept = [line for line in lines if is_utf8(line) and 0 < len(line.decode().split()) <= 175]
        assert written[0] == b"".join(line + b"\n" for line in kept)
    assert len(written[0].decode().splitlines()) == json.loads(done.output)["kept"] or not fix


@every_file
def test_vocabulary(name: str, text: Path, ordinary: Path, tmp_path: Path) -> None:
    """Learned from the file beside ordinary text: in its pieces every line comes back unchanged."""
    done = vaswani("vocabulary", "--size", 330, "--output", tmp_path / "joint", ordinary, english(text), "--json")
    if not is_utf8(FILES[name]):
        assert re.search(NOT_UTF8, done.refusal("vocabulary"))
        assert not list(tmp_path.glob("joint*"))
        return
    assert (done.status, done.errors) == (0, "")
    assert json.loads(done.output)["lines"] == 100 + len(lines_of(FILES[name]))
    segmentation = Segmentation(tmp_path / "joint.model")
    dictionary = Dictionary.load(str(tmp_path / "joint.dict.txt"))
    assert len(dictionary) == 330
    for line in lines_of(FILES[name]):
        ids = dictionary.encode_line(segmentation.encode(line.decode()), add_if_not_exist=False)
        assert dictionary.unk() not in ids
        assert segmentation.decode(dictionary.string(ids)) == line.decode()


@pytest.mark.parametrize("name", ["empty file", "blank lines alone", "one space", "not UTF-8"])
def test_vocabulary_of_nothing_else(name: str, text: Path, tmp_path: Path) -> None:
    done = vaswani("vocabulary", "--size", 300, "--output", tmp_path / "joint", english(text))
    told = NOT_UTF8 if name == "not UTF-8" else "no text to learn a vocabulary from, only blank lines"
    assert re.search(told, done.refusal("vocabulary"))
    assert not list(tmp_path.glob("joint*"))


@every_file
def test_encode(name: str, text: Path, segmentation: Segmentation, tmp_path: Path) -> None:
    """A line for a line, each of which decodes to what it was, white space and all; from a pipe the same."""
    done = vaswani("encode", "--model", segmentation.model, english(text), "--output", tmp_path / "pieces")
    piped = vaswani("encode", "--model", segmentation.model, stdin=FILES[name])
    if not is_utf8(FILES[name]):
        assert re.search(NOT_UTF8, done.refusal("encode"))
        assert re.search(f"standard input, {NOT_UTF8}", piped.refusal("encode"))
        assert not (tmp_path / "pieces").exists()
        return
    assert (done.status, done.output, done.errors) == (0, b"", "")
    pieces = (tmp_path / "pieces").read_bytes()
    assert piped.output == pieces
    decoded = [segmentation.decode(line.decode()).encode() for line in lines_of(pieces)]
    assert decoded == lines_of(FILES[name])


# --- fairseq's data ------------------------------------------------------------------------------------------------


@every_file
def test_preprocess_words(name: str, text: Path, tmp_path: Path) -> None:
    """Words with a dictionary of their own: each sentence is its words again."""
    flags = ("-s", "en", "-t", "de", "--joined-dictionary", "--trainpref", text, "--destdir", tmp_path / "binary")
    if not FILES[name] or not is_utf8(FILES[name]):
        told = refusal(call("fairseq-preprocess", *flags, status=1), "fairseq-preprocess")
        assert re.search(NOT_UTF8 if FILES[name] else "is empty; give a text with at least one line", told)
        return
    call("fairseq-preprocess", *flags)
    dictionary = Dictionary.load(str(tmp_path / "binary" / "dict.en.txt"))
    for language in ("en", "de"):
        data = data_utils.load_indexed_dataset(str(tmp_path / "binary" / f"train.en-de.{language}"), dictionary)
        words = [[dictionary[index] for index in data[number]] for number in range(len(data))]
        assert words == [[*line.decode().split(), "</s>"] for line in lines_of(FILES[name])]


# --- scores --------------------------------------------------------------------------------------------------------

REFUSED_SCORES = {
    "empty file": r"the reference is empty$",
    "not UTF-8": NOT_UTF8,
    "U+2581": r"line 2: the text still carries subword pieces \('\u2581'\); score plain text",
    "lines of fairseq's output": r"translations but the reference has 6 lines",
}


def words(content: bytes) -> int:
    return max([len(line.decode().split()) for line in lines_of(content)], default=0)


@every_file
def test_score(name: str, text: Path) -> None:
    """Of a text against itself 100, if it has four words in a line; one line less is refused with both numbers."""
    done = vaswani("score", "--hypothesis", english(text), "--reference", text.with_suffix(".de"), "--json")
    if name in REFUSED_SCORES:
        assert re.search(REFUSED_SCORES[name], done.refusal("score"))
        return
    assert done.status == 0
    scores: dict[str, Any] = json.loads(done.output)
    for metric in ("sacrebleu", "tokenized"):
        assert scores[metric]["score"] == pytest.approx(100 if words(FILES[name]) >= 4 else 0)
    lines = lines_of(FILES[name])
    english(text).write_bytes(b"".join(line + b"\n" for line in [*lines, b"house"]))
    done = vaswani("score", "--hypothesis", english(text), "--reference", text.with_suffix(".de"))
    assert f"has {len(lines) + 1} lines but the reference has {len(lines)};" in done.refusal("score")


@every_file
@pytest.mark.parametrize("flags", [(), ("--sacrebleu",), ("--sentence-bleu",)], ids=["bleu", "sacrebleu", "sentences"])
def test_fairseq_score(name: str, text: Path, flags: "tuple[str, ...]") -> None:
    command = ("fairseq-score", "--sys", english(text), "--ref", text.with_suffix(".de"), *flags)
    if not FILES[name] or not is_utf8(FILES[name]):
        told = refusal(call(*command, status=1), "fairseq-score")
        assert re.search(NOT_UTF8 if FILES[name] else "is empty", told)
        return
    done = call(*command)
    scores = [float(score) for score in re.findall(r"BLEU4? = ([\d.]+)", done.output)]
    if "--sentence-bleu" in flags:
        assert len(scores) == len(lines_of(FILES[name]))
    elif name == "special pieces" and not flags:
        assert 90 < scores[0] < 100  # fairseq's scorer lets no <unk> match, be it a word of the text
    else:
        assert scores == [100 if words(FILES[name]) >= 4 else 0]
