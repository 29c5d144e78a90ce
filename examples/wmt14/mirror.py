"""Where the archives come from: the official servers, a folder, or another server with the same file names."""

import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from archives import ARCHIVES, Archive

SUMS = "SHA256SUMS"
TIMEOUT = 60
# Statuses that pass: the official servers answer 503 to more than one download at once.
BUSY = (429, 500, 502, 503, 504)
PAUSES = (1.0, 3.0, 9.0)
_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *](.+)")


class Problem(Exception):
    """What is wrong and what to do, in one sentence."""


def open_url(url: str, method: str = "GET", **headers: str) -> "urllib.request._UrlopenRet":
    """Follows redirects; HTTP statuses of 400 and above are ``urllib.error.HTTPError``."""
    request = urllib.request.Request(url, headers={"User-Agent": "vaswani_plugin recipes", **headers}, method=method)
    return urllib.request.urlopen(request, timeout=TIMEOUT)


def ask(url: str, method: str = "GET") -> "urllib.request._UrlopenRet":
    """As ``open_url``, for a short answer: a server that is busy or cannot be reached is asked again a few times."""
    for pause in (*PAUSES, None):
        try:
            return open_url(url, method)
        except OSError as error:
            passing = not isinstance(error, urllib.error.HTTPError) or error.code in BUSY
            if pause is None or not passing:
                raise
            time.sleep(pause)
    raise AssertionError("the last try returns or raises")


@dataclass
class Mirror:
    """``address`` is empty for the official servers; ``sums`` is None unless the mirror has a SHA256SUMS file."""

    address: str
    folder: Path | None = None
    sums: dict[str, str] | None = None

    @classmethod
    def at(cls, address: str) -> "Mirror":
        """The mirror at a path or an address of file:, http: or https:, with its check sums; a ``Problem`` if none."""
        mirror = cls(address.rstrip("/"))
        if not address:
            return mirror
        if not re.match(r"https?://", address):
            path = unquote(urlsplit(address).path) if address.startswith("file:") else address
            mirror.folder = Path(path)
            if not mirror.folder.is_dir():
                raise Problem(f"WMT14_MIRROR={address} is neither a folder nor an address that begins with http")
        mirror._read_sums()
        return mirror

    def _read_sums(self) -> None:
        place = f"{self.address}/{SUMS}"
        if self.folder is not None:
            if not (self.folder / SUMS).is_file():
                return
            text = (self.folder / SUMS).read_bytes()
        else:
            try:
                with ask(place) as answer:
                    text = answer.read(1 << 24)
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    return
                raise Problem(f"{place} cannot be read: {error.code} {error.reason}") from error
            except OSError as error:
                raise Problem(f"WMT14_MIRROR={self.address} does not answer: {error}") from error
        self.sums = {}
        for number, line in enumerate(text.decode("utf-8", "replace").split("\n"), 1):
            if not line.strip():
                continue
            match = _LINE.fullmatch(line.rstrip("\r"))
            if not match:
                raise Problem(f"{place}, line {number} is not a SHA-256 sum and a file name, as sha256sum writes them")
            self.sums[match[2].removeprefix("./")] = match[1].lower()

    def expected(self, key: str) -> Archive:
        """What the archive must be like: as the mirror says if it says so, else as is known of the official one."""
        archive = ARCHIVES[key]
        if self.sums is None:
            return archive
        return Archive(archive.url, sha256=self.sums.get(key) or self.sums.get(archive.name))

    def places(self, key: str) -> Iterator[str]:
        """Addresses or paths to try: a mirror may have the years' folders or not."""
        if not self.address:
            yield ARCHIVES[key].url
            return
        base = str(self.folder) if self.folder is not None else self.address
        yield f"{base}/{key}"
        yield f"{base}/{ARCHIVES[key].name}"

    def file(self, key: str) -> Path | None:
        """The archive in a mirror that is a folder; None if it is not there."""
        return next((path for path in map(Path, self.places(key)) if path.is_file()), None)

    def url(self, key: str) -> tuple[str, int | None]:
        """The archive's address on a server and its size as the server tells it; a ``Problem`` if it has none."""
        for place in self.places(key):
            try:
                with ask(place, "HEAD") as answer:
                    length = answer.headers.get("Content-Length")
                    return place, int(length) if length else None
            except urllib.error.HTTPError as error:
                if error.code in (405, 501):  # a server that does not tell without sending
                    return place, None
                if error.code != 404:
                    raise Problem(f"{place} cannot be had: {error.code} {error.reason}") from error
            except OSError as error:
                raise Problem(f"{place} cannot be reached: {error}; run it again, or give WMT14_MIRROR") from error
        raise Problem(f"there is no {ARCHIVES[key].name} at {' or '.join(self.places(key))}; give WMT14_MIRROR")
