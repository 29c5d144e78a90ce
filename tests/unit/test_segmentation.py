"""Text into pieces and back, through fairseq's own splitting of encoded lines."""

import random

import pytest
from fairseq.data import Dictionary
from fairseq.tokenizer import tokenize_line

from vaswani_plugin.data.segmentation import Segmentation
from vaswani_plugin.data.vocabulary import make_vocabulary

SENTENCES = ["the small house stands in the garden", "a red bird sings in the old tree", "das alte Haus im Garten"]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    (folder / "train.txt").write_text("".join(f"{line}\n" for line in SENTENCES * 20))
    make_vocabulary([folder / "train.txt"], 330, folder / "joint")
    return folder / "joint"


@pytest.fixture(scope="module")
def segmentation(prefix):
    return Segmentation(f"{prefix}.model")


@pytest.fixture(scope="module")
def through_fairseq(prefix, segmentation):
    """encode, then fairseq's tokeniser and dictionary there and back, then decode."""
    dictionary = Dictionary.load(f"{prefix}.dict.txt")

    def travel(line):
        ids = dictionary.encode_line(segmentation.encode(line), add_if_not_exist=False, append_eos=False)
        assert dictionary.unk() not in ids.tolist(), f"{line!r} gives <unk>"
        return segmentation.decode(dictionary.string(ids))

    return travel


@pytest.mark.parametrize(
    "line",
    [
        "",
        " ",
        "   ",
        "the house",
        " leading",
        "trailing ",
        "two  spaces   three",
        "\t",
        "tab\tinside",
        "no\u00a0break",
        "wide\u3000space",
        "line\u2028separator \u2029 \u0085",
        "carriage\rreturn\r",
        "\ufeffmark",
        "nul\0byte",
        "<s> </s> <unk> <pad>",
        "<s>",
        "<0x41> <0xE2><0x96><0x81>",
        "\u2581",
        "a\u2581b \u2581\u2581",
        "\ue000\u2581\ue001",
        "\u2585 \u2047 \ufffd",
        "漢字とかな 🙂 ﬁ é e\u0301",
    ],
)
def test_text_survives_the_way_through_fairseq(through_fairseq, line):
    assert through_fairseq(line) == line


def test_every_character_survives(through_fairseq):
    every = [chr(code) for code in range(0x3100) if chr(code) != "\n"]
    every += [chr(code) for code in (*range(0xE000, 0xE040), *range(0xFE00, 0x10010), 0x1F600, 0x10FFFF)]
    lost = [f"U+{ord(c):04X}" for c in every if through_fairseq(f"a{c} {c}") != f"a{c} {c}"]
    assert lost == []


def test_random_mixtures_survive(through_fairseq):
    parts = [
        *" \t\r\u00a0\u2028\u2581<>s/unkpad0x41b\x00\u3000\ufeff\ue000é漢",
        "<s>",
        "</s>",
        "<unk>",
        "<0xE2>",
        "@@ ",
    ]
    draw = random.Random(1)
    for _ in range(3000):
        line = "".join(draw.choices(parts, k=draw.randint(0, 12)))
        assert through_fairseq(line) == line


def test_fairseq_tokeniser_keeps_every_piece(segmentation):
    line = "no\u00a0break\u3000here\u2028and\r there \u2581"
    encoded = segmentation.encode(line)
    assert tokenize_line(encoded) == encoded.split(" ")
    assert encoded.endswith("<0xE2> <0x96> <0x81>")


def test_a_line_feed_spelt_in_bytes_stays_on_one_line(segmentation):
    assert segmentation.decode("\u2581a <0x0A> b") == "a b"


def test_batches_equal_single_lines(segmentation):
    lines = [*SENTENCES, "", "\u2581", " x\u2581 ", *SENTENCES]
    assert segmentation.encode_lines(lines, threads=2) == [segmentation.encode(line) for line in lines]


def test_word_starts(segmentation):
    assert [segmentation.is_beginning_of_word(p) for p in ("\u2581the", "house", "</s>", "<0x41>")] == [1, 0, 1, 0]


@pytest.mark.parametrize("name", ["missing.model", "joint.dict.txt"])
def test_a_file_that_is_no_model_is_refused(prefix, name):
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        Segmentation(prefix.parent / name)
