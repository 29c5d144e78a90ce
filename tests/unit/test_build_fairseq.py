"""scripts/build_fairseq.py on a little source package made here: what it builds, refuses and leaves behind."""

import gzip
import io
import re
import tarfile
from pathlib import Path

import build_fairseq
import pytest
from build_fairseq import BuildError
from fairseq_edits import MENDS, ROBUSTNESS, SPEED
from fairseq_edits.edit import AddFile, Cut, Edit, EditError, Replace, apply_edits

SOURCE = "one = 1\ntwo = 2\ntwo = 2\nthree = 3\n"
DOUBLE = Edit("double", "two was not double", Replace("package/numbers.py", "two = 2\n", "two = 4\n", count=2))


def make_sdist(folder: Path, **members: bytes) -> Path:
    path = folder / build_fairseq.SDIST_NAME
    # without a time of day in the gzip header, the same members give the same bytes
    with gzip.GzipFile(path, "wb", mtime=0) as file, tarfile.open(fileobj=file, mode="w") as archive:
        for name, content in {"fairseq-0.12.2/package/numbers.py": SOURCE.encode(), **members}.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "numbers.py").write_text(SOURCE)
    return tmp_path


# --- edits -----------------------------------------------------------------------------------------------------------


def test_edits_change_exactly_what_they_name(tree: Path) -> None:
    added = tree / "ours.py"
    added.write_text("zero = 0\n")
    cut = Edit("cut", "one is wrong", Cut("package/numbers.py", "one = 1", "two = 4\ntwo = 4", "half = 0.5\n"))
    apply_edits([DOUBLE, cut, Edit("zero", "there was none", AddFile("package/zero.py", added))], tree)
    assert (tree / "package" / "numbers.py").read_text() == "half = 0.5\ntwo = 4\ntwo = 4\nthree = 3\n"
    assert (tree / "package" / "zero.py").read_text() == "zero = 0\n"


@pytest.mark.parametrize("count", [1, 3])
def test_an_edit_that_matches_another_number_of_times_is_refused(tree: Path, count: int) -> None:
    edit = Edit("numbered", "why", Replace("package/numbers.py", "two = 2\n", "two = 4\n", count=count))
    with pytest.raises(EditError, match=rf"'numbered' expected its text {count} .* package/numbers.py .* found it 2 "):
        apply_edits([edit], tree)
    assert (tree / "package" / "numbers.py").read_text() == SOURCE


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (Cut("package/numbers.py", "two = 2", "three"), "a marker of its cut once in package/numbers.py .* 2 time"),
        (Cut("package/numbers.py", "three", "one"), "the end of its cut before the beginning in package/numbers.py"),
        (Replace("package/letters.py", "a", "b"), "needs package/letters.py"),
        (AddFile("package/numbers.py", Path(__file__)), "already has that file"),
    ],
)
def test_a_change_that_does_not_fit_names_edit_and_file(
    tree: Path, change: "Cut | Replace | AddFile", told: str
) -> None:
    with pytest.raises(EditError, match=f"'misfit'.*{told}"):
        apply_edits([Edit("misfit", "why", change)], tree)


def test_every_edit_has_its_own_name_and_a_reason() -> None:
    edits = [*MENDS, *ROBUSTNESS, *SPEED]
    assert len({edit.name for edit in edits}) == len(edits)
    assert all(len(edit.why.split()) >= 4 and edit.changes for edit in edits)


# --- the source package ----------------------------------------------------------------------------------------------


def test_another_source_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"fairseq-0\.12\.2\.tar\.gz has SHA-256 [0-9a-f]{64} instead of 34f1b184"):
        build_fairseq.check_sdist(make_sdist(tmp_path))


def test_sha256_is_the_published_digest_of_abc(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    published = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert build_fairseq.sha256(tmp_path / "abc") == published


@pytest.mark.parametrize("name", ["../escaped", "fairseq-0.12.2/../../escaped", "/tmp/escaped"])
def test_a_member_outside_of_the_package_is_refused(tmp_path: Path, name: str) -> None:
    sdist = make_sdist(tmp_path, **{name: b"x"})
    with pytest.raises(BuildError, match=re.escape(repr(name))):
        build_fairseq.unpack(sdist, tmp_path / "inside" / "source")
    assert not list(tmp_path.rglob("escaped"))


def test_a_link_in_the_package_is_refused(tmp_path: Path) -> None:
    path = tmp_path / build_fairseq.SDIST_NAME
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("fairseq-0.12.2/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(link)
    with pytest.raises(BuildError, match="not a plain file"):
        build_fairseq.unpack(path, tmp_path / "source")


# --- the whole way, with a pip that only writes a file ---------------------------------------------------------------


class FakePip:
    """Stands in for run_pip: notes each call, and "builds" a wheel that holds the edited source."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.tampered: dict[str, bytes] = {}

    def __call__(self, arguments: "list[str]", what: str) -> None:
        self.calls.append(arguments)
        if arguments[0] == "download":
            make_sdist(Path(arguments[arguments.index("--dest") + 1]), **self.tampered)
        else:
            folder = Path(arguments[arguments.index("--wheel-dir") + 1])
            folder.mkdir()
            wheel = folder / f"fairseq-{build_fairseq.VERSION}-cp311-cp311-linux_x86_64.whl"
            wheel.write_bytes((Path(arguments[-1]) / "package" / "numbers.py").read_bytes())


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePip:
    fake = FakePip()
    (tmp_path / "pinned").mkdir()
    monkeypatch.setattr(build_fairseq, "SDIST_SHA256", build_fairseq.sha256(make_sdist(tmp_path / "pinned")))
    monkeypatch.setattr(build_fairseq, "run_pip", fake)
    monkeypatch.setattr(build_fairseq, "check_toolchain", lambda: None)
    monkeypatch.setattr(build_fairseq, "MENDS", (DOUBLE,))
    monkeypatch.setattr(build_fairseq, "ROBUSTNESS", ())
    monkeypatch.setattr(build_fairseq, "SPEED", ())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.argv", ["build_fairseq.py"])
    return fake


def test_the_wheel_is_built_from_the_edited_source_once(
    pip: FakePip, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build_fairseq.main() == 0
    first = Path(capsys.readouterr().out.splitlines()[-1])
    assert first.read_text() == SOURCE.replace("two = 2", "two = 4")
    assert first.is_relative_to(tmp_path / "cache" / "vaswani" / "fairseq")
    assert [call[0] for call in pip.calls] == ["download", "wheel"]
    assert "--require-hashes" in pip.calls[0]

    assert build_fairseq.main() == 0
    assert Path(capsys.readouterr().out.splitlines()[-1]) == first
    assert len(pip.calls) == 2


def test_a_source_package_that_was_tampered_with_is_never_built(
    pip: FakePip, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pip.tampered = {"fairseq-0.12.2/setup.py": b"raise SystemExit"}
    assert build_fairseq.main() == 1
    assert re.search(r"error: fairseq-0\.12\.2\.tar\.gz has SHA-256 \w+ instead of", capsys.readouterr().err)
    assert [call[0] for call in pip.calls] == ["download"]
    assert not list((tmp_path / "cache").rglob("*.whl"))


def test_wheel_dir_gets_a_copy(
    pip: FakePip, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["build_fairseq.py", "--wheel-dir", str(tmp_path / "wheels")])
    assert build_fairseq.main() == 0
    printed = Path(capsys.readouterr().out.splitlines()[-1])
    assert printed.parent == tmp_path / "wheels"
    assert printed.read_text() == SOURCE.replace("two = 2", "two = 4")


def test_an_edit_that_does_not_fit_stops_the_build_before_pip_builds(
    pip: FakePip, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_fairseq, "MENDS", (DOUBLE, DOUBLE))
    assert build_fairseq.main() == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines()[-1].startswith("build_fairseq: error: edit 'double' expected its text 2 time(s)")
    assert [call[0] for call in pip.calls] == ["download"]
    assert not list((tmp_path / "cache").rglob("*.whl"))


def test_an_interrupted_copy_leaves_nothing_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "fairseq-1.whl"
    wheel.write_bytes(b"whole")

    def half(source: Path, target: str) -> None:
        Path(target).write_bytes(b"wh")
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.copyfile", half)
    with pytest.raises(KeyboardInterrupt):
        build_fairseq.keep(wheel, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_other_edits_have_another_place_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "build_fairseq.py"
    edits = tmp_path / "fairseq_edits"
    edits.mkdir()
    (edits / "mends.py").write_text("EDITS = []\n")
    monkeypatch.setattr(build_fairseq, "__file__", str(script))
    before = build_fairseq.cache_folder()
    assert build_fairseq.cache_folder() == before
    (edits / "mends.py").write_text("EDITS = [1]\n")
    assert build_fairseq.cache_folder() != before


def test_everything_missing_is_named_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    monkeypatch.setattr("sysconfig.get_paths", lambda: {"include": str(tmp_path)})
    with pytest.raises(
        BuildError, match=r"no-such-compiler.*apt install g\+\+.*Python\.h.*apt install python3\.\d+-dev"
    ):
        build_fairseq.check_toolchain()


def test_a_failing_pip_is_told_with_what_it_said(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BuildError, match="pip could not do this"):
        build_fairseq.run_pip(["no-such-command"], "do this")
    assert "no-such-command" in capfd.readouterr().err
