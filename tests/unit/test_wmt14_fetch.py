"""Downloading: from a folder, and from a server that breaks off, redirects, refuses, or sends something else."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from archive_server import serving, sums
from example_scripts import load

fetch, mirror, archives = load("wmt14", "fetch"), load("wmt14", "mirror"), load("wmt14", "archives")
KEYS = ["wmt13/training-parallel-europarl-v7.tgz", "wmt14/dev.tgz"]
CONTENT = {"training-parallel-europarl-v7.tgz": bytes(range(256)) * 2000, "dev.tgz": b"development " * 5000}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    monkeypatch.setattr(fetch, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(fetch.time, "sleep", lambda _: None)
    with serving({**CONTENT, "SHA256SUMS": sums(CONTENT)}) as behaviour:
        yield behaviour


def get(folder: Path, address: str, keys: "list[str]" = KEYS) -> None:
    fetch.fetch(folder, keys, mirror.Mirror.at(str(address)))


def arrived(folder: Path) -> "dict[str, bytes]":
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_archives_go_to_the_folders_of_their_years_and_are_not_fetched_twice(
    server: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    get(tmp_path, server.address)
    assert arrived(tmp_path) == CONTENT
    assert all((tmp_path / key).is_file() for key in KEYS)
    assert "check sums from its SHA256SUMS, in place of the built-in list" in capsys.readouterr().out
    before = len(server.requests)
    get(tmp_path, server.address)
    assert server.requests[before:] == [("SHA256SUMS", None)]
    assert "dev.tgz: here already" in capsys.readouterr().out


def test_goes_on_where_the_connection_broke(server: SimpleNamespace, tmp_path: Path) -> None:
    server.breaks, server.sent = 2, 100_000
    get(tmp_path, server.address)
    assert arrived(tmp_path) == CONTENT
    ranges = [wanted for path, wanted in server.requests if path.endswith("europarl-v7.tgz")]
    assert ranges == [None, "bytes=100000-", "bytes=200000-"]


def test_goes_on_from_what_an_earlier_run_left(server: SimpleNamespace, tmp_path: Path) -> None:
    part = tmp_path / f"{KEYS[0]}.part"
    part.parent.mkdir()
    for left in (CONTENT["training-parallel-europarl-v7.tgz"][:300_000], CONTENT["training-parallel-europarl-v7.tgz"]):
        part.write_bytes(left)
        get(tmp_path, server.address, KEYS[:1])
        assert (tmp_path / KEYS[0]).read_bytes() == CONTENT["training-parallel-europarl-v7.tgz"]
        assert not part.exists()
        (tmp_path / KEYS[0]).unlink()
    assert [wanted for path, wanted in server.requests if "europarl" in path] == ["bytes=300000-", "bytes=512000-"]


def test_a_server_without_ranges_is_asked_for_the_whole_again(server: SimpleNamespace, tmp_path: Path) -> None:
    server.breaks, server.sent, server.ranges = 1, 100_000, False
    get(tmp_path, server.address)
    assert arrived(tmp_path) == CONTENT


def test_an_interrupted_download_is_never_under_its_own_name(server: SimpleNamespace, tmp_path: Path) -> None:
    server.breaks, server.sent = 99, 0
    with pytest.raises(mirror.Problem, match=r"broke off after 0 bytes .*: run it again to go on from there"):
        get(tmp_path, server.address)
    assert not any(path.suffix == ".tgz" for path in tmp_path.rglob("*"))


def test_a_busy_server_is_asked_again(server: SimpleNamespace, tmp_path: Path) -> None:
    server.busy = 3
    get(tmp_path, server.address)
    assert arrived(tmp_path) == CONTENT


def test_redirects_and_year_folders(server: SimpleNamespace, tmp_path: Path) -> None:
    server.files = {key: CONTENT[key.split("/")[1]] for key in KEYS}
    server.files["SHA256SUMS"] = sums({key: server.files[key] for key in KEYS})
    get(tmp_path, f"{server.address}/moved/")
    assert arrived(tmp_path) == CONTENT


def test_a_wrong_sum_names_the_file_and_both_sums(server: SimpleNamespace, tmp_path: Path) -> None:
    right = hashlib.sha256(CONTENT["dev.tgz"]).hexdigest()
    wrong = hashlib.sha256(b"else").hexdigest()
    server.files["dev.tgz"] = b"else"
    with pytest.raises(mirror.Problem, match=rf"^dev.tgz from http.* has the sha256 sum {wrong}, but {right} is exp"):
        get(tmp_path, server.address)
    # What was right is kept, what was wrong is not.
    assert set(arrived(tmp_path)) == {"training-parallel-europarl-v7.tgz"}
    server.files["dev.tgz"] = CONTENT["dev.tgz"]
    get(tmp_path, server.address)
    assert arrived(tmp_path) == CONTENT


def test_the_built_in_list_counts_without_sums_of_the_mirror(server: SimpleNamespace, tmp_path: Path) -> None:
    del server.files["SHA256SUMS"]
    with pytest.raises(mirror.Problem, match=r"has 512,000 bytes, but 657,632,379 are expected"):
        get(tmp_path, server.address)
    with pytest.raises(
        mirror.Problem, match=r"has the md5 sum \w{32}, but 88ba3fc60b2278d59277122e1c7dd6e7 is expected"
    ):
        get(tmp_path, server.address, KEYS[1:])


def test_a_full_disk_is_seen_before_anything_is_fetched(
    server: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = sum(map(len, CONTENT.values()))
    monkeypatch.setattr(fetch.shutil, "disk_usage", lambda _: SimpleNamespace(free=room - 1))
    with pytest.raises(
        mirror.Problem, match=r"the archives need 0\.6 MB more in .*, where 0\.6 MB are free: make room"
    ):
        get(tmp_path, server.address)
    assert [path for path, _ in server.requests] == ["SHA256SUMS"]
    # What is here already needs no room.
    part = tmp_path / f"{KEYS[0]}.part"
    part.parent.mkdir(exist_ok=True)
    part.write_bytes(CONTENT["training-parallel-europarl-v7.tgz"][:1])
    get(tmp_path, server.address)
    assert arrived(tmp_path) == CONTENT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "mirror"
    place.mkdir()
    for name, content in CONTENT.items():
        (place / name).write_bytes(content)
    (place / "SHA256SUMS").write_bytes(sums(CONTENT))
    return place


@pytest.mark.parametrize("address", ["{}", "file://{}"])
def test_a_folder_is_a_mirror_and_is_not_copied(folder: Path, tmp_path: Path, address: str) -> None:
    get(tmp_path / "work", address.format(folder))
    assert arrived(tmp_path / "work") == CONTENT
    assert (tmp_path / "work" / KEYS[1]).resolve() == folder / "dev.tgz"


def test_a_truncated_file_in_a_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "dev.tgz").write_bytes(CONTENT["dev.tgz"][:-1])
    with pytest.raises(mirror.Problem, match=rf"^{folder}/dev.tgz has the sha256 sum .* is expected: replace it"):
        get(tmp_path / "work", folder)
    assert not (tmp_path / "work" / KEYS[1]).exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "dev.tgz").unlink(), r"has no dev.tgz$"),
        (
            lambda folder: (folder / "SHA256SUMS").write_text("abc  dev.tgz\n"),
            r"SHA256SUMS, line 1 is not a SHA-256 sum",
        ),
        (lambda folder: folder.rename(folder.with_name("gone")), r"is neither a folder nor an address"),
    ],
)
def test_mistakes_in_a_folder(folder: Path, tmp_path: Path, change: object, message: str) -> None:
    change(folder)
    with pytest.raises(mirror.Problem, match=message):
        get(tmp_path / "work", folder)


def test_a_missing_archive_and_a_silent_server(server: SimpleNamespace, tmp_path: Path) -> None:
    del server.files["dev.tgz"]
    with pytest.raises(mirror.Problem, match=r"there is no dev.tgz at http.*/wmt14/dev.tgz or http.*/dev.tgz"):
        get(tmp_path, server.address)
    assert arrived(tmp_path) == {}
    with pytest.raises(mirror.Problem, match=r"WMT14_MIRROR=http://127.0.0.1:9 does not answer"):
        get(tmp_path, "http://127.0.0.1:9")


def test_the_official_list_is_complete() -> None:
    assert archives.archives_of(["europarl-v7", "commoncrawl", "news-commentary-v9"]) == [
        "wmt13/training-parallel-europarl-v7.tgz",
        "wmt13/training-parallel-commoncrawl.tgz",
        "wmt14/training-parallel-nc-v9.tgz",
        "wmt14/dev.tgz",
        "wmt14/test-full.tgz",
    ]
    for key, archive in archives.ARCHIVES.items():
        assert archive.url.endswith(f"/{key}")
        assert len(archive.md5) == 32
        assert archive.sha256 is None or len(archive.sha256) == 64
    test = archives.CORPORA["newstest2014"]
    assert test.members("target", "en", "fr") == ["test-full/newstest2014-fren-ref.fr.sgm"]
    assert archives.CORPORA["europarl-v7"].members("source", "en", "de") == ["training/europarl-v7.de-en.en"]
    # The sum of the published counts.
    assert (
        sum(archives.CORPORA[n].pairs["de-en"] for n in ("europarl-v7", "commoncrawl", "news-commentary-v9"))
        == 4_520_620
    )
