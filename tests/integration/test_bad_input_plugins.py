"""--user-dir that is wrong, broken, or one copy too many: a sentence with the way out, at every try."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PLUGIN, Corpus, run
from in_process import call, refusal

BROKEN = "import fairseq\n\nimport no_such_module_anywhere\n"


@pytest.fixture
def modules() -> "Iterator[None]":
    """What a test imports is forgotten after it."""
    names, paths = set(sys.modules), sys.path[:]
    yield
    for name in set(sys.modules) - names:
        del sys.modules[name]
    sys.path[:] = paths


def plugin(folder: Path, file: str, text: str) -> Path:
    """A plugin with ``text`` in one of its files."""
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").touch()
    (folder / file).write_text(text)
    return folder


def test_a_misspelt_folder_in_every_command(corpus: Corpus, tmp_path: Path) -> None:
    wrong = tmp_path / "vaswani_plugni"
    sentence = f"--user-dir {wrong}: there is no folder {wrong}"
    for command, arguments in (
        ("fairseq-train", [corpus.binary, "--arch", "vaswani_tiny"]),
        ("fairseq-generate", [corpus.binary, "--path", "x.pt"]),
        ("fairseq-interactive", [corpus.binary, "--path", "x.pt"]),
        ("fairseq-validate", [corpus.binary, "--path", "x.pt"]),
        (
            "fairseq-preprocess",
            ["-s", "en", "-t", "de", "--trainpref", corpus.raw / "train", "--destdir", tmp_path / "b"],
        ),
    ):
        done = call(command, *arguments, "--user-dir", wrong, status=1)
        assert refusal(done, command) == sentence
    assert list(tmp_path.iterdir()) == []


def test_a_misspelt_folder_in_hydra_train(tmp_path: Path) -> None:
    done = run("fairseq-hydra-train", f"common.user_dir={tmp_path / 'no'}", status=1, cwd=tmp_path)
    assert refusal(done, "fairseq-hydra-train") == f"--user-dir {tmp_path / 'no'}: there is no folder {tmp_path / 'no'}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize("file", ["__init__.py", "models/broken.py", "tasks/broken.py"])
def test_an_import_that_fails_fails_at_every_try(corpus: Corpus, tmp_path: Path, file: str) -> None:
    folder = plugin(tmp_path / f"plugin_{len(file)}", file, BROKEN)
    expected = (
        f"--user-dir {folder} could not be imported: ModuleNotFoundError: No module named 'no_such_module_anywhere' "
        f"({folder / file}, line 3)"
    )
    for _ in range(2):
        done = call("fairseq-generate", corpus.binary, "--path", "x.pt", "--user-dir", folder, status=1)
        assert refusal(done, "fairseq-generate") == expected
    # and once the file is mended, it is imported
    (folder / file).write_text("VALUE = 1\n")
    done = call("fairseq-generate", corpus.binary, "--path", "x.pt", "--user-dir", folder, status=1)
    assert refusal(done, "fairseq-generate") == "Model file not found: x.pt"


@pytest.mark.usefixtures("modules")
def test_a_syntax_error_names_its_line(corpus: Corpus, tmp_path: Path) -> None:
    folder = plugin(tmp_path / "plugin_typo", "__init__.py", "x = 1\ndef f(:\n")
    done = call("fairseq-generate", corpus.binary, "--path", "x.pt", "--user-dir", folder, status=1)
    sentence = refusal(done, "fairseq-generate")
    assert sentence.startswith(f"--user-dir {folder} could not be imported: SyntaxError: invalid syntax")
    assert sentence.endswith(f"({folder / '__init__.py'}, line 2)")


def test_a_second_copy_of_the_plugin_is_refused_with_both_places(corpus: Corpus, tmp_path: Path) -> None:
    import vaswani_plugin

    installed = Path(vaswani_plugin.__file__).parent
    copy = shutil.copytree(PLUGIN, tmp_path / "vaswani_plugin", ignore=shutil.ignore_patterns("__pycache__"))
    for _ in range(2):
        done = call("fairseq-generate", corpus.binary, "--path", "x.pt", "--user-dir", copy, status=1)
        assert refusal(done, "fairseq-generate") == (
            f"--user-dir {copy} cannot be used beside another vaswani_plugin that is imported already, {installed}; "
            "give that one, or start without it"
        )
    # the same folder by another name of its path is no second copy
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "vaswani_plugin").symlink_to(installed)
    linked = call(
        "fairseq-generate",
        corpus.binary,
        "--path",
        "x.pt",
        "--user-dir",
        tmp_path / "link" / "vaswani_plugin",
        status=1,
    )
    assert refusal(linked, "fairseq-generate") == "Model file not found: x.pt"


def test_a_copy_alone_is_the_one_that_is_used(corpus: Corpus, tmp_path: Path) -> None:
    """In its own process, although the installed plugin could be imported; under another name it is refused."""
    copy = shutil.copytree(PLUGIN, tmp_path / "vaswani_plugin", ignore=shutil.ignore_patterns("__pycache__"))
    with (copy / "__init__.py").open("a") as file:
        file.write('\nprint("this is the copy")\n')
    words = ("fairseq-generate", corpus.binary, "--path", "x.pt", "--task", "vaswani_translation", "--user-dir")
    assert "this is the copy" in run(*words, copy, status=1).output
    renamed = copy.rename(tmp_path / "my_plugin")
    sentence = refusal(run(*words, renamed, status=1), "fairseq-generate")
    assert sentence.startswith(
        f"--user-dir {renamed} could not be imported: ImportError: the plugin's folder must be called vaswani_plugin, "
        "not my_plugin: rename it ("
    )
