"""Each score against hand computation."""

import math

import pytest

from vaswani_plugin.evaluation.bleu import bleu, bleu_of_words, chrf, corpus_score
from vaswani_plugin.evaluation.moses import MosesWords, plain_punctuation, split_compounds
from vaswani_plugin.evaluation.report import as_table, score_files, score_texts

REFERENCES = [
    "Die Katze sitzt auf der Matte.",
    "Er las das Buch, weil es ihn interessierte.",
    "Guten Morgen!",
    "Das Haus steht im Garten.",
]
HYPOTHESES = [
    "Die Katze saß auf der Matte.",
    "Er las das Buch, da es ihn interessierte.",
    "guten Morgen!",
    "Das Haus ist im Garten.",
]


def write(path, lines):
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def test_score_computed_by_hand():
    # 13a gives 7 and 7 tokens; matches: 1-grams 6/7, 2-grams 4/6, 3-grams 2/5, 4-grams 1/4 ("auf der Matte .").
    score = corpus_score(bleu(), ["Die Katze saß auf der Matte."], ["Die Katze sitzt auf der Matte."])
    assert score["score"] == pytest.approx(100 * (6 / 7 * 4 / 6 * 2 / 5 * 1 / 4) ** 0.25, abs=1e-9)
    assert (score["hyp_len"], score["ref_len"]) == (7, 7)


def test_brevity_penalty_by_hand():
    # 5 tokens against 7; all of the n-grams match: exp(1 - 7/5).
    score = corpus_score(bleu(), ["Die Katze sitzt auf der"], ["Die Katze sitzt auf der Matte."])
    assert score["score"] == pytest.approx(100 * math.exp(1 - 7 / 5), abs=1e-9)


def test_words_are_counted_as_they_stand():
    # 4 words of which 3 match, with pairs 2/3, triples 1/2 and none of 4: smoothed to half a match of 1.
    score = corpus_score(bleu_of_words(), ["a b c, d"], ["a b c, e"])
    assert score["score"] == pytest.approx(100 * (3 / 4 * 2 / 3 * 1 / 2 * 0.5 / 1) ** 0.25, abs=1e-9)
    assert (score["hyp_len"], score["ref_len"]) == (4, 4)


def test_chrf_computed_by_hand():
    # Without the space, "abc" against "abd": 2/3 of the characters, 1/2 of the pairs, 0 of the triples match; the
    # orders 4 to 6 do not exist. Precision equals recall, and so F.
    score = corpus_score(chrf(), ["a bc"], ["a bd"])
    assert score["score"] == pytest.approx(100 * (2 / 3 + 1 / 2 + 0) / 3, abs=1e-9)
    assert "hyp_len" not in score


def test_lowercase_ignores_case():
    hypotheses, references = ["guten morgen allerseits du !"], ["Guten Morgen allerseits du!"]
    mixed = score_texts(hypotheses, references, target_language="de")
    lower = score_texts(hypotheses, references, target_language="de", lowercase=True)
    assert all(score["score"] < 80 for score in mixed.values())
    assert all(score["score"] == pytest.approx(100) for score in lower.values())
    assert all("case:lc" in score["signature"] for score in lower.values())


def test_language_chooses_the_tokeniser_and_the_scores():
    german = score_texts(HYPOTHESES, REFERENCES, target_language="de")
    english = score_texts(HYPOTHESES, REFERENCES)
    assert list(english) == ["sacrebleu", "tokenized", "chrf"]
    assert [name for name in german if name not in english] == ["compound_split", "compound_split_plain_punctuation"]
    assert german["sacrebleu"] == english["sacrebleu"]
    assert "tok:13a" in german["sacrebleu"]["signature"]
    assert score_texts(HYPOTHESES, REFERENCES, target_language="de_DE") == german
    chinese = score_texts(["我喜欢书"], ["我喜欢这本书"], target_language="zh")
    assert "tok:zh" in chinese["sacrebleu"]["signature"]
    assert list(chinese) == ["sacrebleu", "chrf"]


def test_moses_separates_words_but_not_parts_of_words():
    # z.B. is a German abbreviation, "am 3. Mai" an ordinal; entities count as words do.
    lines = ["Das ist \"z.B.\" ein Rock-'n'-Roll-Abend, am 3. Mai.", "Viel & mehr: „so“."]
    assert MosesWords("de").separated(lines) == [
        "Das ist &quot; z.B. &quot; ein Rock- &apos; n &apos; -Roll-Abend , am 3. Mai .",
        "Viel &amp; mehr : „ so “ .",
    ]


@pytest.mark.parametrize(
    ("line", "split"),
    [
        ("ein rich-text", "ein rich ##AT##-##AT## text"),
        ("CDU-nahe Rhein-Main-Halle", "CDU ##AT##-##AT## nahe Rhein ##AT##-##AT## Main ##AT##-##AT## Halle"),
        ("ein - zwei -drei vier- --", "ein - zwei -drei vier- --"),
        # As in the script, a letter that has ended one compound does not begin the next.
        ("a-b-c-d", "a ##AT##-##AT## b-c ##AT##-##AT## d"),
    ],
)
def test_compounds_are_split_at_their_hyphens(line, split):
    assert split_compounds(line) == split


def test_compounds_are_split_on_both_sides():
    scores = score_texts(["Ein Rhein-Main-Gebiet ist da."], ["Ein Rhein-Main-Gebiet war da."], target_language="de")
    assert (scores["tokenized"]["hyp_len"], scores["tokenized"]["ref_len"]) == (5, 5)
    # Ein Rhein - Main - Gebiet ist da .
    assert (scores["compound_split"]["hyp_len"], scores["compound_split"]["ref_len"]) == (9, 9)
    expected = 100 * (8 / 9 * 6 / 8 * 4 / 7 * 3 / 6) ** 0.25
    assert scores["compound_split"]["score"] == pytest.approx(expected, abs=1e-9)


def test_plain_punctuation_makes_the_quotation_marks_of_both_sides_equal():
    assert plain_punctuation(["Er sagt\u2019s „laut“ … (\uff15\uff05)", "a"]) == ["Er sagt's „laut\" ... (5%)", "a"]
    scores = score_texts(['Er sagt: „Ja".'], ["Er sagt: „Ja“."], target_language="de")
    assert scores["compound_split"]["score"] < 70
    assert scores["compound_split_plain_punctuation"]["score"] == pytest.approx(100)
    assert "|punctuation:plain|" in scores["compound_split_plain_punctuation"]["signature"]


def test_tokenised_text_is_counted_as_it_is(tmp_path):
    hypothesis = write(tmp_path / "out", ["ein Rhein-Main Gebiet , z.B. hier ."])
    scores, warnings = score_files(hypothesis, hypothesis, target_language="de", tokenized=True)
    assert scores["tokenized"]["hyp_len"] == 7
    assert scores["compound_split"]["hyp_len"] == 9
    assert "|tok:none|" in scores["tokenized"]["signature"]
    assert "compound_split_plain_punctuation" not in scores
    assert warnings == ["sacrebleu and chrf are for raw text: of tokenised text they compare only with the same kind"]
    assert "tokenized" in score_texts(["我 喜欢"], ["我 喜欢"], target_language="zh", tokenized=True)


def test_reference_comes_from_the_file_and_not_from_the_generate_output(tmp_path):
    lines = []
    for i in (2, 0, 3, 1):
        lines += [f"S-{i}\tx", f"T-{i}\tx", f"H-{i}\t-1.0\tx", f"D-{i}\t-1.0\t{REFERENCES[i]}", f"P-{i}\t-1.0"]
    scores, _ = score_files(write(tmp_path / "out", lines), write(tmp_path / "ref", REFERENCES))
    assert all(score["score"] == pytest.approx(100) for score in scores.values())


@pytest.mark.parametrize("tokenized", [False, True])
def test_empty_and_encoded_texts_are_refused(tmp_path, tokenized):
    empty, plain = write(tmp_path / "empty", []), write(tmp_path / "plain", ["a", "b"])
    with pytest.raises(ValueError, match="empty: the reference is empty"):
        score_files(empty, empty, tokenized=tokenized)
    pieces = write(tmp_path / "pieces", ["a", "\u2581b"])
    with pytest.raises(ValueError, match=r"pieces, line 2: the text still carries subword pieces"):
        score_files(plain, pieces, tokenized=tokenized)
    with pytest.raises(ValueError, match=r"pieces, line 2: the text still carries subword pieces"):
        score_files(plain, plain, compare=pieces, tokenized=tokenized)
    joined = write(tmp_path / "joined", ["a@@ b", "b"])
    with pytest.raises(ValueError, match=r"joined, line 1: the text still carries subword pieces \('@@'\)"):
        score_files(joined, plain, tokenized=tokenized)


def test_tokenised_translations_are_noticed(tmp_path):
    tokenised = [line.replace(".", " .") for line in HYPOTHESES]
    _, warnings = score_files(write(tmp_path / "out", tokenised), write(tmp_path / "ref", REFERENCES))
    assert warnings[0].startswith("3 of 4 translations end in ' .' but 0 of the references do")
    _, warnings = score_files(write(tmp_path / "out", tokenised), write(tmp_path / "ref", tokenised))
    assert warnings == []


def test_table_holds_score_lengths_and_signature():
    scores = score_texts(HYPOTHESES, REFERENCES, target_language="de")
    header, *rows = [line.split() for line in as_table(scores).split("\n")]
    assert header == ["metric", "score", "hyp_len", "ref_len", "signature"]
    assert [row[0] for row in rows] == list(scores)
    for name, value, hyp_len, ref_len, signature in rows:
        score = scores[name]
        assert (value, signature) == (f"{score['score']:.2f}", score["signature"])
        assert (hyp_len, ref_len) == (str(score.get("hyp_len", "-")), str(score.get("ref_len", "-")))
