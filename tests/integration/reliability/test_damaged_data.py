"""Damaged dictionaries, vocabularies and binarised data: told where it can be, and never a traceback."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import count_told, cut_off, equal, flipped, outcome
from fairseq.data import Dictionary, data_utils
from fairseq.data.indexed_dataset import MMapIndexedDataset
from in_process import generate, refusal, train
from stored_run import CHECKPOINT, MODEL, VOCABULARY, binarise

from vaswani_plugin.data.segmentation import Segmentation
from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return binarise(tmp_path_factory.mktemp("data"))


@pytest.fixture
def binary(original: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(original, tmp_path / "binary"))


@pytest.fixture(scope="module")
def flips(request: pytest.FixtureRequest) -> int:
    return 500 if request.config.getoption("--long") else 50


# --- dictionaries ----------------------------------------------------------------------------------------------------


def entries(folder: Path) -> "tuple[list[str], list[str]]":
    """The entries of both dictionaries as a model takes them that was trained with the intact ones."""
    model = VaswaniTransformer.from_pretrained(
        CHECKPOINT.parent, CHECKPOINT.name, folder, source_lang="en", target_lang="de"
    )
    return model.src_dict.symbols, model.tgt_dict.symbols


def test_flipped_bits_of_a_dictionary(binary: Path, flips: int) -> None:
    """A checkpoint knows its dictionaries' entries; their counts, which nothing is computed with, may be others."""
    path = binary / "dict.en.txt"
    intact, found = entries(binary), []
    for _, content in flipped(path.read_bytes(), flips // 2):
        path.write_bytes(content)
        found.append(outcome(lambda: entries(binary), intact, equal, str(binary)))
    assert count_told("bits of a dictionary", found) > len(found) // 3


def test_truncated_dictionaries(binary: Path) -> None:
    path = binary / "dict.en.txt"
    intact = entries(binary)
    for what, content in [("empty", b""), *cut_off(path.read_bytes(), 12)]:
        path.write_bytes(content)
        found = outcome(lambda: entries(binary), intact, equal, str(binary))
        whole = (
            content.rstrip(b"\n0123456789").count(b"\n") == path.with_name("dict.de.txt").read_bytes().count(b"\n") - 1
        )
        assert found != "the same" or whole, what


# --- vocabularies ----------------------------------------------------------------------------------------------------


def text_of(path: Path) -> str:
    model = Segmentation(path)
    return model.decode(model.encode("the small house stands in a red garden, 100 €"))


def test_flipped_bits_of_a_vocabulary(tmp_path: Path, flips: int) -> None:
    """SentencePiece's format has no check sum, so a few change pieces unnoticed outside of a packaged model."""
    path, content = tmp_path / "damaged.model", VOCABULARY.read_bytes()
    intact, found = text_of(VOCABULARY), []
    for _, other in [*flipped(content, flips), *cut_off(content, 12)]:
        path.write_bytes(other)
        found.append(outcome(lambda: text_of(path), intact, lambda one, same: isinstance(one, str), str(path)))
    assert count_told("a vocabulary's bits and beginnings", found) > len(found) // 2


# --- binarised data --------------------------------------------------------------------------------------------------


def sentences(binary: Path) -> "list[list[int]]":
    """What a training would be given."""
    dictionary = Dictionary.load(str(MODEL / "dict.en.txt"))
    data = data_utils.load_indexed_dataset(str(binary / "train.en-de.en"), dictionary)
    return [data[number].tolist() for number in range(len(data))]


def test_every_byte_of_an_index_counts(binary: Path, flips: int) -> None:
    path = binary / "train.en-de.en.idx"
    intact = sentences(binary)
    for what, content in flipped(path.read_bytes(), 2 * flips):
        path.write_bytes(content)
        assert outcome(lambda: sentences(binary), intact, equal, str(path.with_suffix(""))) != "the same", what


@pytest.mark.parametrize("ending", ["idx", "bin"])
def test_truncated_data(binary: Path, ending: str) -> None:
    path = binary / f"train.en-de.en.{ending}"
    intact = sentences(binary)
    for what, content in [("empty", b""), *cut_off(path.read_bytes(), 50), ("longer", path.read_bytes() + b"\0\0")]:
        path.write_bytes(content)
        assert outcome(lambda: sentences(binary), intact, equal, str(path.with_suffix(""))) != "the same", what


def test_an_id_beyond_the_dictionary(binary: Path, tmp_path: Path) -> None:
    path = binary / "train.en-de.de.bin"
    size = len(Dictionary.load(str(MODEL / "dict.en.txt")))
    ids = np.fromfile(path, np.uint16)
    ids[len(ids) // 2] = size
    ids.tofile(path)
    told = (
        f"{path} cannot be used: it has the id {size}, but the dictionary has {size} entries, so it is damaged or was "
        "binarised with another dictionary; run fairseq-preprocess again, or copy the data again"
    )
    assert refusal(train(binary, tmp_path / "save", status=1), "fairseq-train") == told
    assert refusal(generate(binary, CHECKPOINT, "--gen-subset", "train", status=1), "fairseq-generate") == told
    ids[len(ids) // 2] = size - 1
    ids.tofile(path)
    train(binary, tmp_path / "save", "--disable-validation")


def test_the_commands_name_a_damaged_index(binary: Path, tmp_path: Path) -> None:
    path = binary / "train.en-de.en.idx"
    content = bytearray(path.read_bytes())
    for place in (0, 17, 20, len(content) - 1):
        content[place] ^= 1
        path.write_bytes(content)
        content[place] ^= 1
        sentence = refusal(train(binary, tmp_path / "save", status=1), "fairseq-train")
        assert sentence.startswith(f"{path} cannot be used: ")


def test_long_data_is_compared_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same answers when the index is read in several blocks."""
    from fairseq import binarised_data

    monkeypatch.setattr(binarised_data, "_BLOCK", 7)
    lengths = np.random.default_rng(1).integers(1, 9, 100)
    with MMapIndexedDataset.Index.writer(str(tmp_path / "long.idx"), np.uint16) as index:
        index.write(lengths)
    np.zeros(lengths.sum(), np.uint16).tofile(tmp_path / "long.bin")
    arguments: Any = (str(tmp_path / "long"), b"MMIDIDX\0\0", {8: np.uint16}, 1)
    binarised_data.check_binarised(*arguments)
    content = bytearray((tmp_path / "long.idx").read_bytes())
    content[26 + 4 * 50] ^= 1
    (tmp_path / "long.idx").write_bytes(content)
    with pytest.raises(ValueError, match=r"long\.idx cannot be used: the lengths of sentences and their addresses"):
        binarised_data.check_binarised(*arguments)
