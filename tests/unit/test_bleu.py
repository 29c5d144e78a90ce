"""BLEU against hand computation and against sacreBLEU's own command."""

import json
import math
import subprocess
import sys

import pytest

from vaswani_plugin.evaluation.bleu import sacrebleu_score
from vaswani_plugin.evaluation.report import as_table, score_files

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
    score = sacrebleu_score(["Die Katze saß auf der Matte."], ["Die Katze sitzt auf der Matte."])
    assert score["score"] == pytest.approx(100 * (6 / 7 * 4 / 6 * 2 / 5 * 1 / 4) ** 0.25, abs=1e-9)
    assert (score["hyp_len"], score["ref_len"]) == (7, 7)


def test_brevity_penalty_by_hand():
    # 5 tokens against 7; all of the n-grams match: exp(1 - 7/5).
    score = sacrebleu_score(["Die Katze sitzt auf der"], ["Die Katze sitzt auf der Matte."])
    assert score["score"] == pytest.approx(100 * math.exp(1 - 7 / 5), abs=1e-9)


def test_lowercase_ignores_case():
    assert sacrebleu_score(["guten morgen allerseits !"], ["Guten Morgen allerseits!"])["score"] < 50
    lower = sacrebleu_score(["guten morgen allerseits !"], ["Guten Morgen allerseits!"], lowercase=True)
    assert lower["score"] == pytest.approx(100)
    assert "case:lc" in lower["signature"]


def test_language_chooses_the_tokeniser():
    german = sacrebleu_score(HYPOTHESES, REFERENCES, target_language="de")
    assert german == sacrebleu_score(HYPOTHESES, REFERENCES)
    assert "tok:13a" in german["signature"]
    assert "tok:zh" in sacrebleu_score(["我喜欢书"], ["我喜欢这本书"], target_language="zh")["signature"]


@pytest.mark.parametrize("flags", [[], ["--lowercase"]])
def test_equal_to_the_sacrebleu_command(tmp_path, flags):
    hypothesis, reference = write(tmp_path / "out", HYPOTHESES), write(tmp_path / "ref", REFERENCES)
    command = [sys.executable, "-m", "sacrebleu", str(reference), "-i", str(hypothesis), "-w", "6", *flags]
    official = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    scores, warnings = score_files(hypothesis, reference, target_language="de", lowercase=bool(flags))
    ours = scores["sacrebleu"]
    assert round(ours["score"], 6) == official["score"]
    assert ours["signature"] == official["signature"]
    assert f"hyp_len = {ours['hyp_len']} ref_len = {ours['ref_len']}" in official["verbose_score"]
    assert warnings == []


def test_reference_comes_from_the_file_and_not_from_the_generate_output(tmp_path):
    lines = []
    for i in (2, 0, 3, 1):
        lines += [f"S-{i}\tx", f"T-{i}\tx", f"H-{i}\t-1.0\tx", f"D-{i}\t-1.0\t{REFERENCES[i]}", f"P-{i}\t-1.0"]
    scores, _ = score_files(write(tmp_path / "out", lines), write(tmp_path / "ref", REFERENCES))
    assert scores["sacrebleu"]["score"] == pytest.approx(100)


def test_empty_and_encoded_references_are_refused(tmp_path):
    with pytest.raises(ValueError, match="ref: the reference is empty"):
        score_files(write(tmp_path / "out", []), write(tmp_path / "ref", []))
    with pytest.raises(ValueError, match=r"ref, line 2: the text still carries subword pieces"):
        score_files(write(tmp_path / "out", ["a", "b"]), write(tmp_path / "ref", ["a", "\u2581b"]))


def test_tokenised_translations_are_noticed(tmp_path):
    tokenised = [line.replace(".", " .") for line in HYPOTHESES]
    _, warnings = score_files(write(tmp_path / "out", tokenised), write(tmp_path / "ref", REFERENCES))
    assert warnings[0].startswith("3 of 4 translations end in ' .' but 0 of the references do")
    _, warnings = score_files(write(tmp_path / "out", tokenised), write(tmp_path / "ref", tokenised))
    assert warnings == []


def test_table_holds_score_lengths_and_signature():
    score = sacrebleu_score(HYPOTHESES, REFERENCES)
    name, value, hyp_len, ref_len, signature = as_table({"sacrebleu": score}).split("\n")[1].split()
    assert (name, value) == ("sacrebleu", f"{score['score']:.2f}")
    assert (int(hyp_len), int(ref_len), signature) == (score["hyp_len"], score["ref_len"], score["signature"])
