"""The quickstart's text from message catalogues, on small wheels made here."""

import hashlib
import importlib.util
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "quickstart" / "catalogues.py"

HEADER = """
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=n != 1;\\n"
"""
PO = (
    HEADER
    + """
#: somewhere.py:1
msgid "Save the page"
msgstr "Seite speichern"

#, fuzzy
msgid "Doubtful"
msgstr "Zweifelhaft"

msgid "Untranslated"
msgstr ""

msgid "Wagtail"
msgstr "Wagtail"

msgid "%(count)d ticket"
msgid_plural "%(count)d tickets"
msgstr[0] "%(count)d Ticket ist da"
msgstr[1] "%(count)d Tickets sind da"

msgid ""
"First \\"line\\"\\n"
"  second\\tline"
msgstr ""
"Erste \\"Zeile\\"\\n"
"zweite Zeile"

msgctxt "verb"
msgid "Order"
msgstr "Bestellen"

msgctxt "noun"
msgid "Order"
msgstr "Bestellung"

msgid "<b>%(name)s</b> {x} 12"
msgstr "<i>%(name)s</i> {x} 13"

#~ msgid "Obsolete"
#~ msgstr "Veraltet"
"""
)
EXPECTED = [
    ("Save the page", "Seite speichern"),
    ("%(count)d ticket", "%(count)d Ticket ist da"),
    ("%(count)d tickets", "%(count)d Tickets sind da"),
    ('First "line" second line', 'Erste "Zeile" zweite Zeile'),
    ("Order", "Bestellen"),
    ("Order", "Bestellung"),
]


@pytest.fixture(scope="module")
def catalogues():
    specification = importlib.util.spec_from_file_location("catalogues", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    sys.modules["catalogues"] = module
    specification.loader.exec_module(module)
    yield module
    del sys.modules["catalogues"]


def compiled(messages):
    """A .mo file, laid out by hand after the gettext manual."""
    items = sorted(
        (k.encode(), v.encode()) for k, v in {"": "Content-Type: text/plain; charset=UTF-8\n", **messages}.items()
    )
    start = 28 + 16 * len(items)
    body, keys, values = b"", b"", b""
    for table, index in ((0, 0), (1, 1)):
        for item in items:
            entry = struct.pack("<II", len(item[index]), start + len(body))
            keys, values = (keys + entry, values) if table == 0 else (keys, values + entry)
            body += item[index] + b"\0"
    return struct.pack("<7I", 0x950412DE, 0, len(items), 28, 28 + 8 * len(items), 0, 0) + keys + values + body


def wheel(folder, name, files):
    path = folder / f"{name}-1.0-py3-none-any.whl"
    metadata = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in files.items():
            archive.writestr(file, content)
        archive.writestr(f"{metadata}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{metadata}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{metadata}/RECORD", "")
    return path


def pairs(catalogues, path):
    return [(pair.english, pair.german) for pair in catalogues.read_wheel(path)]


def test_text_catalogue(catalogues, tmp_path):
    path = wheel(tmp_path, "words", {"words/locale/de/LC_MESSAGES/django.po": PO})
    assert pairs(catalogues, path) == EXPECTED


def test_compiled_catalogue(catalogues, tmp_path):
    messages = {
        "Save the page": "Seite speichern",
        "%d ticket\0%d tickets": "%d Ticket\0%d Tickets",
        "Wagtail": "Wagtail",
    }
    path = wheel(tmp_path, "words", {"words/locale/de_DE/LC_MESSAGES/django.mo": compiled(messages)})
    expected = [("%d ticket", "%d Ticket"), ("%d tickets", "%d Tickets"), ("Save the page", "Seite speichern")]
    assert sorted(pairs(catalogues, path)) == expected


def test_text_form_wins_and_other_languages_stay_out(catalogues, tmp_path):
    other = compiled({"Wrong file": "Falsche Datei"})
    files = {f"words/locale/{name}": other for name in ("de_AT/LC_MESSAGES/x.mo", "fr/LC_MESSAGES/x.mo")}
    files["words/locale/de/LC_MESSAGES/django.po"] = PO
    files["words/locale/de/LC_MESSAGES/django.mo"] = other
    assert pairs(catalogues, wheel(tmp_path, "words", files)) == EXPECTED


@pytest.mark.parametrize(
    "english",
    ["delete %(count)d ticket", "Delete {n} Tickets!", "<b>Delete</b> 12 tickets", "DELETE %s TICKET ..."],
)
def test_near_duplicates_share_a_part(catalogues, english):
    assert catalogues._key(english) == "delete ticket"
    assert catalogues.Pair(english, "x").part() == catalogues.Pair("delete ticket", "y").part()


@pytest.mark.parametrize(
    "text", ["%(a)s: {b}", "12.5 %", "https://example.org/x", "&nbsp;<br/>", "{{ user }}", "me@x.org"]
)
def test_text_without_words(catalogues, text):
    assert not catalogues.Pair(text, "Wort").has_words()
    assert not catalogues.Pair("word", text).has_words()


def test_parts_have_their_shares_and_no_message_in_common(catalogues):
    messages = [
        catalogues.Pair(f"message {chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676)}q", "x")
        for i in range(10_000)
    ]
    parts = catalogues.split(messages + [catalogues.Pair(pair.english.upper(), "y") for pair in messages])
    unique = {name: {catalogues._key(pair.english) for pair in part} for name, part in parts.items()}
    assert sum(map(len, unique.values())) == 10_000
    # Binomial: 500 and 450 expected, standard deviation about 22.
    assert 400 < len(parts["test"]) == len(unique["test"]) < 600
    assert 350 < len(parts["valid"]) == len(unique["valid"]) < 550
    # Training keeps both translations of a message.
    assert len(parts["train"]) == 2 * len(unique["train"])


def run(*arguments, **environment):
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    settings = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=settings)


@pytest.fixture
def mirror(tmp_path):
    """A folder with one wheel, and the requirements that ask for it."""
    (tmp_path / "mirror").mkdir()
    path = wheel(tmp_path / "mirror", "words", {"words/locale/de/LC_MESSAGES/django.po": PO})
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "packages.txt").write_text(f"# a comment\nwords==1.0 --hash=sha256:{digest}  # MIT\n")
    return tmp_path


def test_download_read_and_reuse(mirror):
    arguments = [mirror / "text", "--cache", mirror / "cache", "--packages", mirror / "packages.txt"]
    result = run(*arguments, PIP_FIND_LINKS=str(mirror / "mirror"))
    assert result.returncode == 0, result.stderr
    assert "6 pairs from words-1.0-py3-none-any.whl" in result.stdout
    assert "words MIT" in result.stdout
    files = {path.name: path.read_bytes() for path in (mirror / "text").iterdir()}
    assert sorted(files) == sorted(f"{part}.{side}" for part in ("train", "valid", "test") for side in ("en", "de"))
    english = b"".join(files[f"{part}.en"] for part in ("train", "valid", "test"))
    german = b"".join(files[f"{part}.de"] for part in ("train", "valid", "test"))
    assert sorted(zip(english.split(b"\n")[:-1], german.split(b"\n")[:-1], strict=True)) == sorted(
        (left.encode(), right.encode()) for left, right in EXPECTED
    )
    # Without a mirror: the cache is enough, and gives the same bytes.
    again = run(mirror / "again", *arguments[1:])
    assert again.returncode == 0, again.stderr
    assert {path.name: path.read_bytes() for path in (mirror / "again").iterdir()} == files


def test_a_harmed_cache_is_filled_again(mirror):
    arguments = [mirror / "text", "--cache", mirror / "cache", "--packages", mirror / "packages.txt"]
    assert run(*arguments, PIP_FIND_LINKS=str(mirror / "mirror")).returncode == 0
    kept = mirror / "cache" / "words-1.0-py3-none-any.whl"
    kept.write_bytes(kept.read_bytes()[:100])
    assert run(*arguments, PIP_FIND_LINKS=str(mirror / "mirror")).returncode == 0
    assert kept.read_bytes() == (mirror / "mirror" / kept.name).read_bytes()


@pytest.mark.parametrize("links", ["", "mirror"])
def test_no_network_or_another_file_ends_in_a_sentence(mirror, links):
    path = mirror / "mirror" / "words-1.0-py3-none-any.whl"
    wheel(mirror / "mirror", "words", {"words/locale/de/LC_MESSAGES/django.po": HEADER})
    assert path.exists()
    environment = {"PIP_FIND_LINKS": str(mirror / links)} if links else {}
    result = run(mirror / "text", "--cache", mirror / "cache", "--packages", mirror / "packages.txt", **environment)
    assert result.returncode == 1
    assert result.stderr.split("\n")[-2].startswith("catalogues.py: pip could not download the packages")
    assert not (mirror / "text").exists()
