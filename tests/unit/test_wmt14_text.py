"""Unpacking: SGM and plain text, odd line ends, and archives that lack something."""

import gzip
import io
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from example_scripts import load

from vaswani_plugin.errors import UserError

assemble, sgm = load("wmt14", "assemble"), load("wmt14", "sgm")
NEWS = "training/news-commentary-v9.de-en."
DEV, TEST = "dev/newstest2013", "test-full/newstest2014-deen"


def test_segments_are_lines_without_entities() -> None:
    text = (
        '<!DOCTYPE x><srcset setid="a&b">\r\n<doc docid="1"><p>\n<seg id="1">R&amp;D &lt;b&gt; &quot;x&quot; &#8222;y'
        '&#x201c;</seg>\n<SEG id="2">\r\n  two\n lines\t</SEG><seg id="3"></seg>\n<hl><seg id="4"> 5\u00a0% & '
        "\u2028 more </seg></hl>\n</p></doc></srcset>"
    )
    assert sgm.segments(text) == ['R&D <b> "x" „y\u201c', "two lines", "", "5\u00a0% & \u2028 more"]


def test_a_segment_without_an_end_is_told() -> None:
    with pytest.raises(ValueError, match="has 2 segments that begin but 1 that end"):
        sgm.segments('<seg id="1">a</seg><seg id="2">b')


def segments(*lines: str) -> bytes:
    return "".join(f"<seg id='{number}'>{line}</seg>\n" for number, line in enumerate(lines)).encode()


def archives(folder: Path, changes: "dict[str, dict[str, bytes | None]] | None" = None) -> Path:
    """The archives of one corpus, the development and the test set; a member that is None is left out."""
    content: dict[str, dict[str, bytes | None]] = {
        "wmt14/training-parallel-nc-v9.tgz": {
            f"{NEWS}fr": b"une\n",
            f"{NEWS}de": "eins\rzwei\n\ndrei\u2028vier\r\nf\u00fcnf".encode(),
            f"{NEWS}en": b"one\n\nthree\nfour\n",
        },
        "wmt14/dev.tgz": {f"{DEV}-src.en.sgm": segments("a", "b &amp; c"), f"{DEV}-ref.de.sgm": segments("d", "e")},
        "wmt14/test-full.tgz": {f"{TEST}-src.en.sgm": segments("f"), f"{TEST}-ref.de.sgm": segments("g")},
    }
    for key, members in content.items():
        members.update((changes or {}).get(key, {}))
        path = folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path, "w:gz") as archive:
            for name, data in members.items():
                if data is not None:
                    information = tarfile.TarInfo(f"./{name}" if "test" in key else name)
                    information.size = len(data)
                    archive.addfile(information, io.BytesIO(data))
    return folder


def run(folder: Path, output: Path) -> "dict[str, bytes]":
    assemble.assemble(folder, output, "en", "de", ["news-commentary-v9"])
    return {path.name: path.read_bytes() for path in output.iterdir()}


def test_text_comes_out_line_by_line(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run(archives(tmp_path / "in"), tmp_path / "out") == {
        "train.en": b"one\n\nthree\nfour\n",
        "train.de": "eins\rzwei\n\ndrei\u2028vier\r\nf\u00fcnf\n".encode(),
        "valid.en": b"a\nb & c\n",
        "valid.de": b"d\ne\n",
        "test.en": b"f\n",
        "test.de": b"g\n",
    }
    assert (
        "train: 4 pairs of news-commentary-v9 (the official training-parallel-nc-v9.tgz: 201,288)"
        in capsys.readouterr().out
    )


def test_a_development_set_in_plain_text(tmp_path: Path) -> None:
    plain: dict[str, bytes | None] = {f"{DEV}-src.en.sgm": None, f"{DEV}-ref.de.sgm": None}
    plain.update({f"{DEV}.en": b"a &amp; b\r\nc\n", f"{DEV}.de": b"d\r\ne"})
    text = run(archives(tmp_path / "in", {"wmt14/dev.tgz": plain}), tmp_path / "out")
    # An entity in plain text is what somebody has written.
    assert (text["valid.en"], text["valid.de"]) == (b"a &amp; b\nc\n", b"d\ne\n")


def test_gzip_inside_of_a_plain_archive_and_its_old_name(tmp_path: Path) -> None:
    for release in ("release2.fixed", "release2"):
        with tarfile.open(tmp_path / "giga.tar", "w") as archive:
            data = gzip.compress(b"one\ntwo")
            information = tarfile.TarInfo(f"giga-fren.{release}.en.gz")
            information.size = len(data)
            archive.addfile(information, io.BytesIO(data))
        with assemble.reading(tmp_path / "giga.tar") as archive:
            output = io.BytesIO()
            member = archive.next()
            assert member.name in assemble.CORPORA["giga-fren"].members("source", "en", "fr")
            assert assemble.copy_member(archive, member, output, True) == 2
            assert output.getvalue() == b"one\ntwo\n"


def cut(folder: Path) -> None:
    path = folder / "wmt14/training-parallel-nc-v9.tgz"
    path.write_bytes(path.read_bytes()[:-30])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"wmt14/dev.tgz": {f"{DEV}-ref.de.sgm": None}},
            r"dev\.tgz has no member dev/newstest2013-ref\.de\.sgm or dev/",
        ),
        (
            {"wmt14/dev.tgz": {f"{DEV}-ref.de.sgm": segments("d")}},
            r"dev\.tgz: dev/newstest2013-src\.en\.sgm has 2 lines but dev/newstest2013-ref\.de\.sgm has 1; they must",
        ),
        ({"wmt14/training-parallel-nc-v9.tgz": {f"{NEWS}de": b"eins\n"}}, r"\.en has 4 lines but .*\.de has 1"),
        ({"wmt14/test-full.tgz": {f"{TEST}-src.en.sgm": b"<seg id='1'>"}}, r"cannot be read as SGM: it has 1 segments"),
        (
            {"wmt14/test-full.tgz": {f"{TEST}-src.en.sgm": b"<seg>\xff</seg>"}},
            r"-src\.en\.sgm in .* cannot be read as SGM",
        ),
        (cut, r"training-parallel-nc-v9\.tgz is damaged or cut off"),
        (lambda folder: (folder / "wmt14/dev.tgz").unlink(), r"dev\.tgz is missing: "),
        (
            lambda folder: (folder / "wmt14/dev.tgz").write_bytes(b"<html>not found</html>"),
            r"dev\.tgz is damaged or cut",
        ),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_left(tmp_path: Path, change: object, message: str) -> None:
    archives(tmp_path / "in", change if isinstance(change, dict) else None)
    if not isinstance(change, dict):
        change(tmp_path / "in")
    with pytest.raises(UserError, match=message):
        run(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_a_full_disk_is_seen_before_anything_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archives(tmp_path / "in")
    monkeypatch.setattr(assemble.shutil, "disk_usage", lambda _: SimpleNamespace(free=100))
    with pytest.raises(UserError, match=r"the text and what is made of it need about 0\.0 GB beside .*: make room"):
        run(tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()
