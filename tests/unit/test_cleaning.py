"""Cleaning a raw parallel text."""

import gzip

import pytest

from vaswani_plugin.data import cleaning
from vaswani_plugin.data.cleaning import clean_pair


def words(count):
    return " ".join(["w"] * count)


def write(path, lines):
    path.write_bytes(b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines))
    return path


def clean(folder, english, german, **limits):
    source, target = write(folder / "train.en", english), write(folder / "train.de", german)
    return clean_pair(source, target, folder / "clean" / "train", **limits)


def kept(folder):
    lines = [(folder / "clean" / f"train.{side}").read_bytes().split(b"\n")[:-1] for side in ("en", "de")]
    assert len(lines[0]) == len(lines[1])
    return list(zip(*lines, strict=True))


def test_each_rule_at_its_limit(tmp_path):
    pairs = [
        ("one two", "eins zwei"),
        ("", "leer"),
        ("leer", " \t\u00a0"),
        (words(175), words(175)),
        (words(176), words(175)),
        (words(175), words(176)),
        (words(4), words(6)),  # exactly 1.5
        (words(4), words(7)),
        (words(7), words(4)),
        (b"\xff", "x"),
        ("x", b"caf\xe9 "),
    ]
    report = clean(tmp_path, *zip(*pairs, strict=True))
    assert report.pairs == 11
    assert report.removed == {"invalid_utf8": 2, "blank": 2, "too_long": 2, "ratio": 2}
    expected = [pairs[i] for i in (0, 3, 6)]
    assert kept(tmp_path) == [(left.encode(), right.encode()) for left, right in expected]
    assert report.kept == 3


def test_limits_can_be_set(tmp_path):
    pairs = [(words(3), words(3)), (words(4), words(4)), (words(1), words(3)), (words(2), words(3))]
    report = clean(tmp_path, *zip(*pairs, strict=True), max_length=3, max_ratio=2.0)
    assert report.removed == {"invalid_utf8": 0, "blank": 0, "too_long": 1, "ratio": 1}
    assert report.kept == 2


def test_odd_characters_are_found_by_line_and_kept(tmp_path):
    english = ["\ufeffone", "a\rb", "a\u2028b", "a\u2029b\u0085", "a\0b", "plain", "crlf\r", "a\r\r", b"\xff"]
    report = clean(tmp_path, english, ["x y"] * 5 + ["x", "x\r", "x", "x"], max_ratio=3)
    found = {kind: finding.lines for kind, finding in report.findings[str(tmp_path / "train.en")].items()}
    assert found == {
        "byte_order_mark": [1],
        "carriage_return": [2, 8],
        "line_separator": [3],
        "paragraph_separator": [4],
        "next_line": [4],
        "nul": [5],
        "crlf": [7, 8],
        "invalid_utf8": [9],
    }
    assert report.findings[str(tmp_path / "train.de")]["crlf"].lines == [7]
    left = [pair[0] for pair in kept(tmp_path)]
    assert left == [line.encode() for line in [*english[:6], "crlf", "a\r"]]


def test_other_control_characters_are_found(tmp_path):
    english = ["a\tb", "bell\x07", "form\x0cfeed", "del\x7f", "c1 \x80", "\x85 alone", "\u00a0 \u00bf"]
    report = clean(tmp_path, english, ["x x"] * 7, max_ratio=9)
    found = {kind: finding.lines for kind, finding in report.findings[str(tmp_path / "train.en")].items()}
    assert found == {"control": [2, 3, 4, 5], "next_line": [6]}


def test_fix_leaves_only_characters_that_no_tool_stumbles_over(tmp_path):
    pairs = [
        ("\ufeffone", "one"),
        ("two\ufeff words", "two words"),
        ("a\rb", "a b"),
        ("a\u2028b\u2029c\u0085d", "a b c d"),
        ("v\x0bt f\x0cf s\x1cs s\x1fs", "v t f f s s s s"),
        ("nul\0 bell\x07 del\x7f c1\x80", "nul bell del c1"),
        ("crlf\r", "crlf"),
        ("twice\r\r", "twice "),
        (" tab\there  two \u00a0\u3000\u200b\u00ad", " tab\there  two \u00a0\u3000\u200b\u00ad"),
    ]
    report = clean(tmp_path, [left for left, _ in pairs], ["x"] * len(pairs), max_ratio=9, fix=True)
    assert report.removed == {"invalid_utf8": 0, "blank": 0, "too_long": 0, "ratio": 0}
    assert [left for left, _ in kept(tmp_path)] == [right.encode() for _, right in pairs]
    text = report.as_text()
    assert "train.en: 2 lines with byte order mark U+FEFF, dropped: 1, 2\n" in text
    assert "train.en: 2 lines with lone carriage return (0x0D), made a space: 3, 8\n" in text


def test_rules_look_at_the_fixed_text_and_bad_bytes_are_still_removed(tmp_path):
    report = clean(tmp_path, ["\0\ufeff", b"\xff\x00", "a\rb"], ["x", "y", "z z"], fix=True)
    assert report.removed == {"invalid_utf8": 1, "blank": 1, "too_long": 0, "ratio": 0}
    assert kept(tmp_path) == [(b"a b", b"z z")]
    findings = report.findings[str(tmp_path / "train.en")]
    assert {kind: finding.lines for kind, finding in findings.items()} == {
        "byte_order_mark": [1],
        "nul": [1, 2],
        "blank": [1],
        "invalid_utf8": [2],
        "carriage_return": [3],
    }


def test_only_the_first_thousand_lines_are_listed(tmp_path):
    report = clean(tmp_path, ["a\rb"] * 1500, ["x"] * 1500)
    finding = report.findings[str(tmp_path / "train.en")]["carriage_return"]
    assert (finding.count, finding.lines) == (1500, list(range(1, 1001)))
    assert "1,500 lines with lone carriage return (0x0D): 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ..." in report.as_text()


def test_unequal_files_are_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(cleaning, "raw_lines", lambda path: pytest.fail("the long step has begun"))
    with pytest.raises(ValueError, match=r"train\.en has 3 lines but .*train\.de has 2"):
        clean(tmp_path, ["a\rb", "c", "d"], ["x\u2028y", "z"])
    assert not (tmp_path / "clean").exists()


def test_last_line_without_line_feed_counts(tmp_path):
    (tmp_path / "a.en").write_bytes(b"one\ntwo")
    (tmp_path / "a.de").write_bytes(b"eins\nzwei\n")
    assert clean_pair(tmp_path / "a.en", tmp_path / "a.de", tmp_path / "b").kept == 2
    assert (tmp_path / "b.en").read_bytes() == b"one\ntwo\n"


def test_packed_inputs_give_plain_outputs(tmp_path):
    (tmp_path / "a.en.gz").write_bytes(gzip.compress(b"one\n"))
    (tmp_path / "a.de.gz").write_bytes(gzip.compress(b"eins\n"))
    report = clean_pair(tmp_path / "a.en.gz", tmp_path / "a.de.gz", tmp_path / "b")
    assert report.outputs == [str(tmp_path / "b.en"), str(tmp_path / "b.de")]
    assert (tmp_path / "b.de").read_bytes() == b"eins\n"


@pytest.mark.parametrize(("left", "right"), [("en.txt", "de.txt"), ("english", "german"), ("x/t.en", "y/t.en")])
def test_names_without_two_different_ends_are_refused(tmp_path, left, right):
    with pytest.raises(ValueError, match=r"must differ, as in train\.en and train\.de"):
        clean_pair(tmp_path / left, tmp_path / right, tmp_path / "out")


def test_an_input_is_never_replaced(tmp_path):
    source, target = write(tmp_path / "train.en", ["a", ""]), write(tmp_path / "train.de", ["x", "y"])
    with pytest.raises(ValueError, match=r"train\.en is an input"):
        clean_pair(source, target, tmp_path / "train")
    assert source.read_bytes() == b"a\n\n"


@pytest.mark.parametrize("limits", [{"max_length": 0}, {"max_ratio": 0.5}, {"max_ratio": float("nan")}])
def test_limits_that_keep_nothing_are_refused(tmp_path, limits):
    with pytest.raises(ValueError, match="must both be at least 1"):
        clean(tmp_path, ["a"], ["x"], **limits)
