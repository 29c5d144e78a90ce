"""Small archives with the official names and layout, of sentences made here, with what real ones have in odd places."""

import gzip
import hashlib
import io
import random
import tarfile
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

NOUNS = {
    "house": ("Haus", "maison"),
    "book": ("Buch", "livre"),
    "child": ("Kind", "enfant"),
    "picture": ("Bild", "image"),
    "horse": ("Pferd", "cheval"),
    "window": ("Fenster", "fenêtre"),
    "rich-text editor": ("Rich-Text-Programm", "éditeur"),
}
ADJECTIVES = {
    "small": ("kleine", "petit"),
    "old": ("alte", "vieux"),
    "red": ("rote", "rouge"),
    "good": ("gute", "bon"),
    "long": ("lange", "long"),
}
VERBS = {
    "sees": ("sieht", "voit"),
    "finds": ("findet", "trouve"),
    "likes": ("mag", "aime"),
    "draws": ("malt", "dessine"),
}
LANGUAGES = {"de": 0, "fr": 1}


def sentences(count: int, seed: str, language: str) -> Iterator["tuple[str, str]"]:
    draw, index = random.Random(seed), LANGUAGES[language]
    for number in range(count):
        english, other = [], []
        for kind in (ADJECTIVES, NOUNS, VERBS, ADJECTIVES, NOUNS):
            word = draw.choice(list(kind))
            english.append(word)
            other.append(kind[word][index])
        extra = {0: ' & "more" <now>', 1: " \u2013 1 < 2"}.get(number % 10, "")
        the = ("das", "le")[index]
        yield (
            f"the {english[0]} {english[1]} {english[2]} the {english[3]} {english[4]}{extra}.",
            f"{the} {other[0]} {other[1]} {other[2]} {the} {other[3]} {other[4]}{extra}.",
        )


def text(lines: "list[str]") -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def sgm(lines: "list[str]", kind: str, language: str) -> bytes:
    """As the servers have it: a declaration that is not XML, entities, and one segment over several lines."""
    segments = [f'<seg id="{number}">{escape(line)}</seg>' for number, line in enumerate(lines, 1)]
    segments[1] = segments[1].replace('"2">', '"2">\r\n  ', 1).replace(" ", "\n", 1).replace("\n", " ", 1)
    body = "\n".join(segments)
    return (
        f'<{kind} setid="newstest" srclang="any" trglang="{language}">\n<doc docid="a&b" origlang="en">\n<p>\n'
        f"{body}\n</p>\n</doc>\n</{kind}>\n"
    ).encode()


def write_tar(path: Path, members: Mapping[str, bytes], mode: str = "w:gz") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            information = tarfile.TarInfo(name)
            information.size = len(content)
            archive.addfile(information, io.BytesIO(content))


def news(count: int, seed: str, language: str) -> "tuple[list[str], list[str]]":
    english, other = map(list, zip(*sentences(count, seed, language)))
    other[4] = "„" + other[4] + "“"
    return english, other


DEVELOPMENT, TEST = 12, 14
# Pairs of each corpus, what is odd included.
PAIRS = {"europarl": 260, "commoncrawl": 125, "nc": 60, "un": 40, "giga": 50}
# Of these, in each language: 3 with a blank side and 1 too long in europarl; 1 not UTF-8 and 1 of another ratio in
# commoncrawl.
REMOVED = {"invalid_utf8": 1, "blank": 3, "too_long": 1, "ratio": 1}


def europarl(language: str) -> "tuple[bytes, bytes]":
    english, other = map(list, zip(*sentences(PAIRS["europarl"], f"europarl {language}", language)))
    english[10] = ""
    other[20] = "   "
    english[30] = other[30] = ""
    english[40] = other[40] = "word " * 176
    other[50] += "\r"  # CR LF
    return text(english), text(other)


def commoncrawl(language: str) -> "tuple[bytes, bytes]":
    english, other = map(list, zip(*sentences(PAIRS["commoncrawl"], f"crawl {language}", language)))
    english[3] = english[3].replace(" ", "\u2028", 1).replace(" ", "\u00a0", 1)
    other[5] += "\u0085"
    other[7] = "ein zwei drei " * 9
    left, right = text(english), text(other)
    lines = left.split(b"\n")
    lines[9] = b"caf\xe9 " + lines[9]
    # The last line does not end.
    return b"\n".join(lines).removesuffix(b"\n"), right


def news_commentary(language: str) -> "tuple[bytes, bytes]":
    english, other = map(list, zip(*sentences(PAIRS["nc"], f"nc {language}", language)))
    other[2] = other[2].replace(" ", "\r", 1)
    return text(english), text(other)


def build(folder: Path, years: bool = False) -> Path:
    """A mirror for both pairs with its SHA256SUMS; with folders for the years or without."""
    place = {
        "training-parallel-europarl-v7.tgz": "wmt13",
        "training-parallel-commoncrawl.tgz": "wmt13",
        "training-parallel-un.tgz": "wmt13",
        "training-giga-fren.tar": "wmt10",
        "training-parallel-nc-v9.tgz": "wmt14",
        "dev.tgz": "wmt14",
        "test-full.tgz": "wmt14",
    }
    content: dict[str, dict[str, bytes]] = {name: {} for name in place}
    for language in LANGUAGES:
        pair = f"{language}-en"
        for name, prefix, sides in (
            ("training-parallel-europarl-v7.tgz", "training/europarl-v7", europarl(language)),
            ("training-parallel-commoncrawl.tgz", "commoncrawl", commoncrawl(language)),
            ("training-parallel-nc-v9.tgz", "training/news-commentary-v9", news_commentary(language)),
        ):
            content[name].update({f"{prefix}.{pair}.en": sides[0], f"{prefix}.{pair}.{language}": sides[1]})
        english, other = news(TEST, f"test {language}", language)
        both = f"test-full/newstest2014-{language}en"
        content["test-full.tgz"][f"{both}-src.en.sgm"] = sgm(english, "srcset", "en")
        content["test-full.tgz"][f"{both}-ref.{language}.sgm"] = sgm(other, "refset", language)
        english, other = news(DEVELOPMENT, "dev", language)
        content["dev.tgz"]["dev/newstest2013-src.en.sgm"] = sgm(english, "srcset", "en")
        content["dev.tgz"][f"dev/newstest2013-ref.{language}.sgm"] = sgm(other, "refset", language)
    for name, member in (
        ("training-parallel-un.tgz", "un/undoc.2000.fr-en.{}"),
        ("training-giga-fren.tar", "giga-fren.release2.fixed.{}.gz"),
    ):
        key = "un" if "un" in name else "giga"
        english, other = map(list, zip(*sentences(PAIRS[key], key, "fr")))
        for language, lines in (("en", english), ("fr", other)):
            packed = gzip.compress(text(lines)) if member.endswith(".gz") else text(lines)
            content[name][member.format(language)] = packed
    for name, members in content.items():
        target = folder / place[name] / name if years else folder / name
        write_tar(target, members, "w" if name.endswith(".tar") else "w:gz")
    write_sums(folder)
    return folder


def write_sums(folder: Path) -> None:
    archives = sorted(path for path in folder.rglob("*.t*") if path.is_file())
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}" for path in archives]
    (folder / "SHA256SUMS").write_text("".join(f"{line}\n" for line in lines))
