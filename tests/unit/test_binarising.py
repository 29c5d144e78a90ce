"""fairseq's binarising as mended: its bytes, its memory, its workers."""

import gc
import os
import time
import tracemalloc

import numpy as np
import pytest
from fairseq.binarizer import Binarizer, FileBinarizer, VocabularyDatasetBinarizer
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset, MMapIndexedDatasetBuilder

LINES = [" ".join(f"w{(7 * line + word) % 11}" for word in range(line % 6)) for line in range(50)]


@pytest.fixture
def dictionary():
    result = Dictionary()
    for number in range(10):
        result.add_symbol(f"w{number}")
    return result


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


@pytest.mark.parametrize("workers", [1, 3])
def test_ids_of_every_line_in_order(tmp_path, text, dictionary, workers):
    binarizer = VocabularyDatasetBinarizer(dictionary)
    prefix = str(tmp_path / "binary")
    summary = FileBinarizer.multiprocess_dataset(str(text), "mmap", binarizer, prefix, len(dictionary), workers)
    # Four special symbols come first; w10 is not in the dictionary, so it is <unk>, 3; </s> is 2.
    numbers = [[int(word[1:]) for word in line.split()] for line in LINES]
    expected = [[*(4 + number if number < 10 else 3 for number in line), 2] for line in numbers]
    dataset = MMapIndexedDataset(prefix)
    assert [dataset[index].tolist() for index in range(len(dataset))] == expected
    assert (summary.num_seq, summary.num_tok) == (50, sum(map(len, expected)))
    assert summary.num_replaced == sum(line.count(10) for line in numbers)


class Meeting(Binarizer):
    """Binarises nothing before two processes have begun to."""

    def __init__(self, folder):
        self.folder = folder

    def binarize_line(self, line, summary):
        (self.folder / str(os.getpid())).touch()
        patience = time.monotonic() + 20
        while len(list(self.folder.iterdir())) < 2:
            assert time.monotonic() < patience, "the other process has not begun"
            time.sleep(0.01)
        summary.num_seq += 1
        return Dictionary().encode_line(line)


def test_all_workers_are_at_work_at_once(tmp_path, text):
    (tmp_path / "begun").mkdir()
    meeting = Meeting(tmp_path / "begun")
    summary = FileBinarizer.multiprocess_dataset(str(text), "mmap", meeting, str(tmp_path / "binary"), 99, 2)
    assert summary.num_seq == 50


class Failing(Binarizer):
    """Fails in the worker alone, not in the process that started it."""

    def __init__(self):
        self.starter = os.getpid()

    def binarize_line(self, line, summary):
        if os.getpid() != self.starter:
            raise ValueError("no such line")
        return Dictionary().encode_line(line)


# fairseq leaves the file of its own part open; the process that was told the error ends.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_error_of_a_worker_is_told(tmp_path, text):
    with pytest.raises(ValueError, match="no such line"):
        FileBinarizer.multiprocess_dataset(str(text), "mmap", Failing(), str(tmp_path / "binary"), 99, 2)
    gc.collect()


def test_the_index_takes_few_bytes_of_memory_per_sentence(tmp_path, monkeypatch):
    # It reads a file once through a fixed buffer of 100 MB.
    monkeypatch.setattr("fairseq.data.indexed_dataset._warmup_mmap_file", lambda path: None)
    sentences = 100_000
    lengths = np.random.default_rng(1).integers(1, 600, sentences)

    def write(name, some):
        builder = MMapIndexedDatasetBuilder(str(tmp_path / f"{name}.bin"), np.uint16)
        for length in some:
            builder._sizes.append(int(length))
        return builder

    tracemalloc.start()
    write("other", lengths[60_000:]).finalize(str(tmp_path / "other.idx"))
    builder = write("whole", lengths[:60_000])
    builder.merge_file_(str(tmp_path / "other"))
    builder.finalize(str(tmp_path / "whole.idx"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # In lists of Python's numbers it was 120 bytes.
    assert peak < 40 * sentences
    index = MMapIndexedDataset.Index(str(tmp_path / "whole.idx"))
    assert index.sizes.tolist() == lengths.tolist()
    assert index._pointers.tolist() == [0, *(2 * np.cumsum(lengths)[:-1]).tolist()]
