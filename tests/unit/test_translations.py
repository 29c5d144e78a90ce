"""Reading translations: plain text, or generate output in any order."""

import gzip
import random

import pytest

from vaswani_plugin.evaluation.translations import read_translations

TEXTS = ["Das Haus.", "Ein Vogel\u2028 singt.", "", "Wir lesen\tviel."]


def block(sentence, texts, pieces="\u2581x \u2581y"):
    lines = [f"S-{sentence}\t\u2581a \u2581b", f"T-{sentence}\t\u2581wrong"]
    for rank, text in enumerate(texts):
        score = -0.25 - rank
        lines += [f"H-{sentence}\t{score}\t{pieces}", f"D-{sentence}\t{score}\t{text}", f"P-{sentence}\t-0.1 -0.2"]
    return lines


LOG = ["2026-01-01 10:00:00 | INFO | fairseq_cli.generate | loading model(s)", ""]
END = ["Generate test with beam=4: BLEU4 = 0.00, 1.0/0.0/0.0/0.0 (BP=1.000)"]
BLOCKS = [block(i, [text, "the second best"]) for i, text in enumerate(TEXTS)]


def write(path, lines):
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def flat(blocks):
    return [line for lines in blocks for line in lines]


def test_plain_text(tmp_path):
    assert read_translations(write(tmp_path / "out", TEXTS), 4) == TEXTS


def test_plain_text_with_crlf_and_gzip(tmp_path):
    (tmp_path / "out").write_bytes(gzip.compress("".join(f"{text}\r\n" for text in TEXTS).encode()))
    assert read_translations(tmp_path / "out", 4) == TEXTS


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2]])
def test_generate_output_with_log_and_n_best(tmp_path, order):
    lines = LOG + flat(BLOCKS[i] for i in order) + END
    assert read_translations(write(tmp_path / "out", lines), 4) == TEXTS


def test_shuffled_single_best(tmp_path):
    lines = LOG + flat(block(i, [text]) for i, text in enumerate(TEXTS)) + END
    random.Random(3).shuffle(lines)
    assert read_translations(write(tmp_path / "out", lines), 4) == TEXTS


def test_sorted_lines_take_the_best_score(tmp_path):
    lines = ["D-0\t-0.05\tbest", "D-0\t-0.1\tsecond", "D-1\t-0.1\tsecond", "D-1\t-1e-05\tbest", "D-1\t-inf\tlast"]
    assert read_translations(write(tmp_path / "out", lines), 2) == ["best", "best"]


def test_hypothesis_lines_where_nothing_was_detokenised(tmp_path):
    lines = ["S-1\tb", "H-1\t-0.5\tzwei", "S-0\ta", "H-0\t-0.5\teins"]
    assert read_translations(write(tmp_path / "out", lines), 2) == ["eins", "zwei"]


def test_blank_translation_without_its_tab(tmp_path):
    assert read_translations(write(tmp_path / "out", ["D-0\t-0.5", "D-1\t-0.5\tx"]), 2) == ["", "x"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (TEXTS[:3], r"out has 3 lines but the reference has 4"),
        ([*TEXTS, "x"], r"out has 5 lines but the reference has 4"),
        ([], r"out has 0 lines but the reference has 4"),
        (
            flat(BLOCKS[:2]),
            r"has 2 translations but the reference has 4 lines: sentences 2, 3 \(ids count from 0\) are",
        ),
        (flat([*BLOCKS, block(4, ["x"])]), r"has 5 translations but .* 4 lines \(sentence 4 \(ids count from 0\) is b"),
        (["S-0\t\u2581a", "Killed"], r"has 0 translations but the reference has 4"),
        (flat(BLOCKS + BLOCKS), r"sentences 0, 1, 2, 3 \(ids count from 0\) appear more than once"),
        (flat([*BLOCKS, BLOCKS[3]]), r"sentence 3 \(ids count from 0\) appears more than once"),
        ([line for line in flat(BLOCKS + BLOCKS) if line[0] == "D"], r"appear more than once"),
        (["a", "b@@ c", "d", "e"], r"line 2: the text still carries subword pieces \('@@'\)"),
        (["a", "b", "d", "e@@"], r"line 4: the text still carries subword pieces \('@@'\)"),
        (["a", "b", "\u2581d \u2581x", "e"], r"line 3: the text still carries subword pieces"),
        (flat([*BLOCKS[:3], block(3, ["\u2581still"])]), r"sentence 3: the text still carries subword pieces"),
        ([line for line in flat(BLOCKS) if line[0] != "D"], r"sentence 0: .*generate with --bpe sentencepiece"),
    ],
)
def test_refusals(tmp_path, lines, message):
    with pytest.raises(ValueError, match=message):
        read_translations(write(tmp_path / "out", lines), 4)


def test_many_missing_sentences_are_not_all_listed(tmp_path):
    with pytest.raises(ValueError, match="sentences 1, 2, 3, 4, 5 and 994 more"):
        read_translations(write(tmp_path / "out", ["D-0\t-0.5\tx"]), 1000)


def test_text_that_is_not_utf8_names_the_line(tmp_path):
    (tmp_path / "out").write_bytes(b"gut\nK\xe4se\n")
    with pytest.raises(ValueError, match=r"out, line 2: not valid UTF-8"):
        read_translations(tmp_path / "out", 2)


def test_plain_text_that_only_resembles_generate_output(tmp_path):
    lines = ["D-1 motorway\tclosed", "H-2 blockers", "S-5", "T-3\tx"]
    assert read_translations(write(tmp_path / "out", lines), 4) == lines
