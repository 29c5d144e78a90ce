"""Brings the archives of some corpora into a folder, whole and with the right check sums, one after another.

Usage: python fetch.py FOLDER CORPUS...        (environment: WMT14_MIRROR)

An archive is under its own name only when it is whole; until then it is NAME.part, and the next run goes on from
there. Archives that are in a folder already (WMT14_MIRROR=FOLDER) are checked and linked to, not copied.
"""

import hashlib
import http.client
import os
import shutil
import sys
import time
import urllib.error
from pathlib import Path

from archives import ARCHIVES, Archive, archives_of
from mirror import BUSY, SUMS, Mirror, Problem, open_url

ATTEMPTS = 6
FIRST_PAUSE = 1.0
_BLOCK = 1 << 20
_TELL_EVERY = 20.0


def megabytes(count: float) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count:,.0f} bytes"


def say(text: str) -> None:
    print(f"  {text}", flush=True)


def fetch(folder: Path, keys: list[str], mirror: Mirror) -> None:
    """Raises a ``Problem`` for the first archive that cannot be had."""
    if mirror.address:
        say(f"archives from {mirror.address}")
    if mirror.sums is not None:
        say(f"check sums from its {SUMS}, in place of the built-in list")
    wanted = [key for key in keys if not _is_there(folder / key, mirror.expected(key))]
    if mirror.folder is not None:
        missing = [ARCHIVES[key].name for key in wanted if mirror.file(key) is None]
        if missing:
            raise Problem(f"WMT14_MIRROR={mirror.address} has no {', no '.join(missing)}")
        for key in wanted:
            _link(folder / key, mirror, key)
        return
    sources = {key: mirror.url(key) for key in wanted}
    _check_disk(folder, sources, mirror)
    for key, (url, _) in sources.items():
        download(url, folder / key, mirror.expected(key))


def _is_there(path: Path, expected: Archive) -> bool:
    if not path.exists():
        path.unlink(missing_ok=True)  # a link to what is gone
        return False
    if difference(path, expected) is None:
        say(f"{path.name}: here already")
        return True
    say(f"{path.name}: what is here is another file, which is replaced")
    path.unlink()
    return False


def _link(path: Path, mirror: Mirror, key: str) -> None:
    there = mirror.file(key)
    assert there is not None
    wrong = difference(there, mirror.expected(key))
    if wrong:
        raise Problem(f"{there} {wrong}: replace it, or correct {SUMS} if that is what is wrong")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(there.resolve())
    say(f"{there.name}: {megabytes(there.stat().st_size)}, {_checked(mirror.expected(key))}")


def _check_disk(folder: Path, sources: dict[str, tuple[str, int | None]], mirror: Mirror) -> None:
    needed = 0
    for key, (_, told) in sources.items():
        part = _part(folder / key)
        size = told or mirror.expected(key).size or 0
        needed += max(0, size - (part.stat().st_size if part.exists() else 0))
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise Problem(
            f"the archives need {megabytes(needed)} more in {folder}, where {megabytes(free)} are free: "
            "make room, or choose another WORK"
        )


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def download(url: str, path: Path, expected: Archive) -> None:
    """Downloads into PATH.part, going on after interruptions, and renames it when size and sum are right."""
    part = _part(path)
    part.parent.mkdir(parents=True, exist_ok=True)
    failures, pause = 0, FIRST_PAUSE
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            _receive(url, part, path.name)
            break
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code not in BUSY:
                raise Problem(f"{url} cannot be had: {error.code} {error.reason}") from error
            if not isinstance(error, urllib.error.URLError) and getattr(error, "filename", None) is not None:
                raise Problem(f"{part} cannot be written: {error.strerror}") from error
            after = part.stat().st_size if part.exists() else 0
            # A connection that brings something counts as working, however often it breaks.
            failures = 1 if after > before else failures + 1
            if failures >= ATTEMPTS:
                raise Problem(
                    f"{url} broke off after {megabytes(after)} ({error}): run it again to go on from there"
                ) from error
            say(f"{path.name}: broke off after {megabytes(after)} ({error}); trying again")
            time.sleep(pause)
            pause = min(2 * pause, 60.0) if failures > 1 else FIRST_PAUSE
    wrong = difference(part, expected)
    if wrong:
        part.unlink()
        raise Problem(f"{path.name} from {url} {wrong}: it was removed; run it again to download it anew")
    os.replace(part, path)
    say(f"{path.name}: {megabytes(path.stat().st_size)}, {_checked(expected)}")


def _receive(url: str, part: Path, name: str) -> None:
    """Appends what is missing to the file; an ``OSError`` or ``HTTPException`` when it is still not whole."""
    done = part.stat().st_size if part.exists() else 0
    try:
        answer = open_url(url, **({"Range": f"bytes={done}-"} if done else {}))
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        # Nothing comes after what is here: it is whole, or of another file, which its sum will show.
        if error.headers.get("Content-Range", "").endswith(f"/{done}"):
            return
        part.unlink()
        raise http.client.IncompleteRead(b"") from error
    with answer:
        goes_on = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {done}-")
        if done and goes_on:
            say(f"{name}: going on after {megabytes(done)}")
        else:
            done = 0
        length = answer.headers.get("Content-Length")
        total = done + int(length) if length else None
        told = begun = time.monotonic()
        begun_at = done
        with open(part, "ab" if done else "wb") as file:
            while block := answer.read(_BLOCK):
                file.write(block)
                done += len(block)
                now = time.monotonic()
                if now - told > _TELL_EVERY:
                    told = now
                    of = f" of {megabytes(total)}" if total else ""
                    say(f"{name}: {megabytes(done)}{of}, {megabytes((done - begun_at) / (now - begun))} a second")
        if total is not None and done < total:
            raise http.client.IncompleteRead(b"", total - done)


def difference(path: Path, expected: Archive) -> str | None:
    """What is wrong with a file, as the end of a sentence about it; None when nothing is."""
    size = path.stat().st_size
    if expected.size is not None and size != expected.size:
        return f"has {size:,} bytes, but {expected.size:,} are expected"
    for kind, sum_ in (("sha256", expected.sha256), ("md5", expected.md5)):
        if sum_ is None:
            continue
        found = _sum(path, kind)
        return None if found == sum_ else f"has the {kind} sum {found}, but {sum_} is expected"
    return None


def _sum(path: Path, kind: str) -> str:
    digest = hashlib.new(kind)
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _checked(expected: Archive) -> str:
    kind = "sha256" if expected.sha256 else "md5" if expected.md5 else None
    return f"{kind} as expected" if kind else "no check sum is known for it"


def main() -> None:
    folder, *corpora = sys.argv[1:]
    try:
        fetch(Path(folder), archives_of(corpora), Mirror.at(os.environ.get("WMT14_MIRROR", "")))
    except Problem as problem:
        sys.exit(f"wmt14: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
