"""Any text through the tools and the mended fairseq's data: a line for a line, in order, and no traceback."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from fairseq.data import Dictionary, data_utils
from fairseq.file_chunker_utils import Chunker, find_offsets
from hypothesis import example, given, settings
from hypothesis import strategies as st
from in_process import call
from small_run import sentences
from wild_kit import vaswani
from wild_text import LINE, lines_of

from vaswani_plugin.data.segmentation import Segmentation

TEXTS = st.lists(LINE, min_size=1, max_size=8)
# Each takes a tenth of a second or more.
few = settings(max_examples=settings.default.max_examples // 6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("text")


def write(path: Path, lines: "list[str] | list[bytes]") -> Path:
    path.write_bytes(b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines))
    return path


@given(st.lists(LINE, max_size=8), st.booleans(), st.integers(1, 9))
def test_workers_share_a_file_between_them(folder: Path, lines: "list[str]", last_ends: bool, workers: int) -> None:
    """fairseq-preprocess gives each worker a part: together they are all lines, each once."""
    content = "\n".join(lines).encode() + (b"\n" if last_ends and lines else b"")
    (folder / "text").write_bytes(content)
    offsets = find_offsets(str(folder / "text"), workers)
    found = []
    for start, end in pairwise(offsets):
        with Chunker(str(folder / "text"), start, end) as part:
            found += [line.removesuffix("\n") for line in part]
    assert [line.encode() for line in found] == lines_of(content)


@given(TEXTS)
def test_a_dictionary_comes_back(folder: Path, lines: "list[str]") -> None:
    """Words of any text with their counts, in the same order, under the same numbers."""
    dictionary = Dictionary()
    for line in lines:
        dictionary.encode_line(line)
    dictionary.finalize()
    dictionary.save(str(folder / "dict.txt"))
    loaded = Dictionary.load(str(folder / "dict.txt"))
    assert (loaded.symbols, loaded.indices) == (dictionary.symbols, dictionary.indices)
    assert loaded.count[4:] == dictionary.count[4:]


@few
@given(TEXTS, TEXTS)
@example(["\u2585"] * 3, ["\u2585 a"])
def test_a_vocabulary_of_any_text_spells_any_text(folder: Path, lines: "list[str]", others: "list[str]") -> None:
    files = (write(folder / "ordinary", sentences(100, seed=1)), write(folder / "learned", lines))
    size = 340
    done = vaswani("vocabulary", "--size", size, "--output", folder / "joint", *files)
    if done.status:
        (told,) = re.findall(r"--size 340 is too small: this text needs at least (\d+)", done.refusal("vocabulary"))
        size = int(told)
        done = vaswani("vocabulary", "--size", size, "--output", folder / "joint", *files)
    assert (done.status, done.errors) == (0, "")
    segmentation = Segmentation(folder / "joint.model")
    dictionary = Dictionary.load(str(folder / "joint.dict.txt"))
    assert len(dictionary) == size
    for line in [*lines, *others]:
        ids = dictionary.encode_line(segmentation.encode(line), add_if_not_exist=False)
        assert dictionary.unk() not in ids
        assert segmentation.decode(dictionary.string(ids)) == line


@few
@given(TEXTS)
def test_binarised_words_are_the_words(
    tmp_path_factory: pytest.TempPathFactory, folder: Path, lines: "list[str]"
) -> None:
    for language in ("en", "de"):
        write(folder / f"words.{language}", lines)
    binary = tmp_path_factory.mktemp("binary")
    call(
        *("fairseq-preprocess", "-s", "en", "-t", "de", "--joined-dictionary", "--trainpref", folder / "words"),
        *("--destdir", binary),
    )
    dictionary = Dictionary.load(str(binary / "dict.en.txt"))
    data = data_utils.load_indexed_dataset(str(binary / "train.en-de.de"), dictionary)
    found = [[dictionary[index] for index in data[number]] for number in range(len(data))]
    assert found == [[*line.split(), "</s>"] for line in lines]


@given(TEXTS, st.data())
def test_any_text_is_scored_or_refused(folder: Path, references: "list[str]", data: st.DataObject) -> None:
    lines = data.draw(st.lists(LINE, min_size=len(references), max_size=len(references)))
    hypotheses = data.draw(st.sampled_from([references, lines]))
    files = (write(folder / "hypotheses", hypotheses), write(folder / "references", references))
    done = vaswani("score", "--hypothesis", files[0], "--reference", files[1], "--target-lang", "de")
    if any(re.search("\u2581|@@( |$)", line) for line in [*references, *hypotheses]):
        assert "the text still carries subword pieces" in done.refusal("score")
        return
    assert done.status == 0, done.errors
    (score,) = re.findall(rb"^sacrebleu +([\d.]+)", done.output, re.MULTILINE)
    assert 0 <= float(score) <= 100.01
    assert hypotheses != references or float(score) in (0, 100)
