"""The SentencePiece vocabulary and its fairseq dictionary."""

import gzip
import io
import random
import re

import pytest
import sentencepiece
from fairseq.data import Dictionary

from vaswani_plugin.data.vocabulary import fairseq_dictionary, make_vocabulary

ENGLISH = ["the small house stands in the garden", "a red bird sings in the old tree", "we read the long book"]
GERMAN = ["das kleine Haus steht im Garten", "ein roter Vogel singt im alten Baum", "wir lesen das lange Buch"]


def write(path, lines):
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


@pytest.fixture
def texts(tmp_path):
    return [write(tmp_path / "train.en", ENGLISH * 20), write(tmp_path / "train.de", GERMAN * 20)]


def test_ids_of_dictionary_and_model_are_equal(tmp_path, texts):
    make_vocabulary(texts, 340, tmp_path / "joint")
    dictionary = Dictionary.load(str(tmp_path / "joint.dict.txt"))
    model = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "joint.model"))
    assert len(dictionary) == model.get_piece_size() == 340
    assert dictionary.symbols == [model.id_to_piece(i) for i in range(340)]
    assert [dictionary[i] for i in range(4)] == ["<s>", "<pad>", "</s>", "<unk>"]
    assert (dictionary.bos(), dictionary.pad(), dictionary.eos(), dictionary.unk()) == (0, 1, 2, 3)


def test_order_survives_a_dictionary_that_is_finalised_again(tmp_path, texts):
    make_vocabulary(texts, 340, tmp_path / "joint")
    dictionary = Dictionary.load(str(tmp_path / "joint.dict.txt"))
    before = list(dictionary.symbols)
    dictionary.finalize(padding_factor=1)
    assert dictionary.symbols == before


def test_same_text_gives_same_bytes_under_any_name(tmp_path, texts):
    make_vocabulary(texts, 330, tmp_path / "one")
    make_vocabulary(texts, 330, tmp_path / "elsewhere" / "two")
    assert (tmp_path / "one.model").read_bytes() == (tmp_path / "elsewhere" / "two.model").read_bytes()
    assert (tmp_path / "one.dict.txt").read_bytes() == (tmp_path / "elsewhere" / "two.dict.txt").read_bytes()


def test_text_that_looks_like_special_pieces_gives_no_such_piece(tmp_path):
    lines = ["<s> </s> <pad> <0x41>", "<unk> x<s>y <0x41><0x41>", "some other words here"] * 200
    make_vocabulary([write(tmp_path / "odd.txt", lines)], 330, tmp_path / "odd")
    dictionary = Dictionary.load(str(tmp_path / "odd.dict.txt"))
    assert len(dictionary) == len(set(dictionary.symbols)) == 330
    assert sum(bool(re.fullmatch("<0x[0-9A-F]{2}>", piece)) for piece in dictionary.symbols) == 256


def test_no_piece_holds_white_space_or_a_literal_nul(tmp_path):
    lines = ["no\u00a0break tab\there wide\u3000space line\u2028sep cr\rhere nul\0here"] * 50
    make_vocabulary([write(tmp_path / "odd.txt", lines)], 300, tmp_path / "odd")
    pieces = Dictionary.load(str(tmp_path / "odd.dict.txt")).symbols
    assert [piece for piece in pieces if re.search(r"\s|\0", piece)] == []


def test_a_line_with_the_trainers_own_character_is_learned_from(tmp_path, texts):
    lines = [f"\u2585 {line}" for line in ENGLISH + GERMAN]
    made = [write(tmp_path / "plain.txt", ENGLISH + GERMAN), write(tmp_path / "blocks.txt", lines)]
    pieces = []
    for path in made:
        make_vocabulary([path], 330, path.with_suffix(""))
        pieces.append(set(Dictionary.load(str(path.with_suffix(".dict.txt"))).symbols))
    assert pieces[0] == pieces[1]


def test_size_too_large_names_the_largest_which_then_works(tmp_path, texts):
    with pytest.raises(ValueError, match=r"--size 50000 is too large: this text supports at most (\d+)") as error:
        make_vocabulary(texts, 50_000, tmp_path / "joint")
    assert not list(tmp_path.glob("joint*"))
    largest = int(re.search(r"at most (\d+)", str(error.value))[1])
    make_vocabulary(texts, largest, tmp_path / "joint")
    with pytest.raises(ValueError, match=f"at most {largest} pieces"):
        make_vocabulary(texts, largest + 1, tmp_path / "joint")


def test_size_too_small_names_the_smallest_which_then_works(tmp_path, texts):
    with pytest.raises(ValueError, match=r"--size 10 is too small: this text needs at least (\d+)") as error:
        make_vocabulary(texts, 10, tmp_path / "joint")
    smallest = int(re.search(r"at least (\d+)", str(error.value))[1])
    # 4 specials, 256 bytes, one for each of the letters of the text and U+2581 for the space
    assert smallest == 260 + len(set("".join(ENGLISH + GERMAN)))
    make_vocabulary(texts, smallest, tmp_path / "joint")


def test_blank_text_is_refused(tmp_path):
    with pytest.raises(ValueError, match="only blank lines"):
        make_vocabulary([write(tmp_path / "blank.txt", ["", "  ", "\t"])], 300, tmp_path / "blank")


def test_text_that_is_not_utf8_names_the_line(tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"fine\nK\xe4se\n")
    with pytest.raises(ValueError, match=r"latin\.txt, line 2: not valid UTF-8 \(byte 0xE4 at position 2\)"):
        make_vocabulary([tmp_path / "latin.txt"], 300, tmp_path / "latin")


def test_large_text_is_sampled_evenly_from_all_files(tmp_path, texts, monkeypatch):
    monkeypatch.setattr("vaswani_plugin.data.vocabulary.SAMPLE_BYTES", 3000)
    many = [write(tmp_path / "many.en", ENGLISH * 400), write(tmp_path / "many.de", GERMAN * 400)]
    counts = make_vocabulary(many, 330, tmp_path / "sampled")
    assert 2000 < counts["bytes"] < 4000
    pieces = set("".join(Dictionary.load(str(tmp_path / "sampled.dict.txt")).symbols))
    # "y" and "k" stand in the English text only, "G" and "B" in the German only.
    assert {"k", "G", "B"} <= pieces


def test_a_sample_is_the_same_every_time(tmp_path, monkeypatch):
    monkeypatch.setattr("vaswani_plugin.data.vocabulary.SAMPLE_BYTES", 9000)
    draw = random.Random(1)
    lines = [" ".join(draw.choices("".join(ENGLISH).split(), k=4)) for _ in range(1000)]
    plain = write(tmp_path / "plain", lines)
    (tmp_path / "packed").write_bytes(gzip.compress(plain.read_bytes()))
    counts = [make_vocabulary([tmp_path / name], 330, tmp_path / f"{name}.spm") for name in ("plain", "packed")]
    assert counts[0] == counts[1]
    assert counts[0]["lines"] < 600
    assert (tmp_path / "plain.spm.model").read_bytes() == (tmp_path / "packed.spm.model").read_bytes()


@pytest.mark.parametrize(
    "settings",
    [{}, {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}, {"control_symbols": ["<mask>"], "pad_id": 1}],
)
def test_models_with_other_special_ids_are_refused(settings):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(ENGLISH * 20),
        model_writer=model,
        vocab_size=60,
        model_type="bpe",
        minloglevel=2,
        **({"bos_id": 0, "eos_id": 2, "unk_id": 3} | settings if "control_symbols" in settings else settings),
    )
    with pytest.raises(ValueError, match="fairseq needs <s> <pad> </s> <unk> at 0 to 3"):
        fairseq_dictionary(model.getvalue())


def test_a_piece_with_a_space_like_character_is_refused():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a\u3000b", *ENGLISH] * 20),
        model_writer=model,
        vocab_size=60,
        model_type="bpe",
        normalization_rule_name="identity",
        bos_id=0,
        pad_id=1,
        eos_id=2,
        unk_id=3,
        character_coverage=1.0,
        minloglevel=2,
    )
    with pytest.raises(ValueError, match=r"is '.*\\u3000.*', which fairseq cannot read back"):
        fairseq_dictionary(model.getvalue())
