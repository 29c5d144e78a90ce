"""The README's commands, run as they are written but for sizes."""

import re
from pathlib import Path

import pages
import pytest
from conftest import run, write_pairs

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def commands(heading: str) -> list[str]:
    return [command.line for command in pages.commands(pages.section(README, heading))]


def test_the_two_commands() -> None:
    """The quickstart is run by test_quickstart.py; this very suite is the other."""
    assert commands("The two commands") == ["bash examples/quickstart/run.sh", "bash scripts/test.sh"]
    assert (ROOT / ".ci" / "run").read_text().strip().split("\n")[-1].endswith("bash scripts/test.sh")


# What makes the commands small enough for a test: every change is one of a size, none of a flag's name.
SMALLER = {
    "--size 8000": "--size 280",
    "--arch vaswani_base": "--arch vaswani_tiny --num-layers 1 --d-model 16 --d-ff 16 --num-heads 2",
    "--max-update 100000": "--max-update 3 --cpu --num-workers 0",
    "--update-freq 7": "--update-freq 1",
}


def test_own_text_in_five_commands(tmp_path: Path) -> None:
    for seed, (name, count) in enumerate((("train", 300), ("valid", 10), ("test", 10))):
        write_pairs(tmp_path, name, count, seed)
    lines = commands("Your own text in five commands")
    assert len(lines) == 5
    text = "\n".join(lines)
    for written, smaller in SMALLER.items():
        assert text.count(written) == 1, f"README no longer has {written}"
        text = text.replace(written, smaller)
    output = run("bash", "-euo", "pipefail", "-c", text, cwd=tmp_path).output
    assert re.search(r"sacrebleu\s+\d+\.\d+", output)
    averaging = "vaswani average checkpoints --last 5 --output averaged.pt"
    assert averaging in README
    run("bash", "-c", averaging.replace("--last 5", "--last 1"), cwd=tmp_path)
    assert (tmp_path / "averaged.pt").exists()


def test_existing_environment() -> None:
    """Building and installing is what made this environment; here, that the commands are those and the last works."""
    build, install, imported = commands("In an existing fairseq environment")
    assert build == 'pip install "$(python scripts/build_fairseq.py)"'
    assert install == "pip install ."
    run("bash", "-c", imported, cwd=ROOT, installed=True)


@pytest.mark.parametrize("line", [line for line in README.split("\n") if line.startswith("| ") and ".py`" in line])
def test_tests_named_in_the_table_exist(line: str) -> None:
    for name in re.findall(r"`(test_\w+\.py)`", line):
        assert list((ROOT / "tests").glob(f"*/{name}")), name


def test_architectures_named_are_all_there_are() -> None:
    names = run(
        "python",
        "-c",
        "from vaswani_plugin.models.architectures import ARCHITECTURES; print('NAMES', *ARCHITECTURES)",
    ).last_line.split()[1:]
    section = README[README.index("Architectures: ") :].split("\n\n")[0]
    listed = re.findall(r"`(\w+)`", section)
    expanded = [name if name.startswith("vaswani") else f"vaswani_base{name}" for name in listed]
    assert sorted(expanded) == sorted(names)


def test_scripts_named_exist() -> None:
    for name in set(re.findall(r"(?:scripts|examples)/[\w./]+\.(?:py|sh)", README)):
        assert (ROOT / name).exists(), name
