"""Every command of the pages in docs/, run as written but for sizes."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pages
import pytest
from conftest import write_pairs
from forked_commands import forked_commands

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
TRAINING = (
    'fairseq-train binary --user-dir "$(vaswani user-dir)" --task vaswani_translation --arch vaswani_tiny --criterion '
    "vaswani_label_smoothing --lr-scheduler vaswani_inverse_sqrt --optimizer adam --adam-betas '(0.9,0.98)' "
    "--adam-eps 1e-9 --max-tokens 400 --cpu --num-workers 0 --max-update 3"
)


@dataclass
class Page:
    """What a page takes for granted, and what makes its commands small enough for a test."""

    prepare: Callable[[Path, "dict[str, str]"], None]
    smaller: "dict[str, str]"
    packages: "tuple[str, ...]" = ()


def trained_on_own_text(folder: Path, environment: "dict[str, str]") -> None:
    """What the five commands of the README leave."""
    files = (("train", 60), ("valid", 6), ("domain.train", 40), ("domain.valid", 6))
    for seed, (name, count) in enumerate(files):
        write_pairs(folder, name, count, seed)
    lines = [
        "vaswani vocabulary --size 280 --output joint train.en train.de",
        "vaswani encode --model joint.model --output encoded train.en train.de valid.en valid.de",
        "fairseq-preprocess -s en -t de --srcdict joint.dict.txt --joined-dictionary --trainpref encoded/train "
        "--validpref encoded/valid --destdir binary",
        TRAINING,
        "vaswani average --output averaged.pt checkpoints/checkpoint_last.pt",
    ]
    pages.run_all([pages.Command(line, False, []) for line in lines], folder, environment)


PAGES = {
    "export.md": Page(trained_on_own_text, {}, ("ctranslate2", "safetensors")),
    "python.md": Page(trained_on_own_text, {}),
    "fine_tuning_and_resuming.md": Page(
        trained_on_own_text,
        {
            "--update-freq 7": "--update-freq 1",
            "--max-tokens 4096": "--max-tokens 400 --cpu --num-workers 0",
            "--max-update 120000": "--max-update 4",
            "--max-update 130000": "--max-update 5",
            "--max-update 10000": "--max-update 2",
            "--max-update 2000": "--max-update 2",
        },
    ),
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[dict[str, str]]":
    with forked_commands(tmp_path_factory.mktemp("commands")) as environment:
        yield environment


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_every_command(path: Path, environment: "dict[str, str]", tmp_path: Path) -> None:
    text = path.read_text("utf-8")
    listed = pages.commands(text)
    page = PAGES[path.name]  # a page without an entry is one whose commands nobody has run
    for package in page.packages:
        pytest.importorskip(package)
    for written, smaller in page.smaller.items():
        assert written in text, f"{path.name} no longer has {written}"
        for command in listed:
            command.line = re.sub(rf"{re.escape(written)}(?=[ )]|$)", smaller, command.line)
    page.prepare(tmp_path, environment)
    outputs = pages.run_all(listed, tmp_path, environment)
    assert len(outputs) == len(listed) > 0
