"""No code runs from a stranger's checkpoint, wherever one is read: each would make a folder, and none does."""

import io
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import hostile_files
import numpy as np
import pytest
import torch
from conftest import PLUGIN
from fairseq import checkpoint_utils
from fairseq.models.transformer import TransformerModel
from hostile_files import CODES, PLACES, WRITERS, make_folder, torch_legacy, torch_zip
from in_process import call, generate, interactive, train
from stored_run import CHECKPOINT, MODEL, STORED, binarise

from vaswani_plugin import cli
from vaswani_plugin.checkpoints.reading import read_checkpoint
from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer

TASK = ("--user-dir", PLUGIN, "--task", "vaswani_translation", "--cpu")


@pytest.fixture(scope="module")
def state() -> "dict[str, Any]":
    return torch.load(CHECKPOINT, weights_only=True)


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = binarise(tmp_path_factory.mktemp("malicious"))
    shutil.copy(folder / "dict.en.txt", folder / "dict.txt")  # of language models
    return folder


def vaswani(*words: Any) -> str:
    """What a sub-command says, whatever its status."""
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output), suppress(SystemExit):
        cli.main([str(word) for word in words])
    return output.getvalue()


def raised(function: Callable[..., Any], *arguments: Any, **settings: Any) -> str:
    with pytest.raises(ValueError, match="nothing in it was run") as caught:
        function(*arguments, **settings)
    return str(caught.value)


def package_with(evil: Path) -> Path:
    folder = evil.parent / "model"
    shutil.copytree(MODEL, folder)
    shutil.copy(evil, folder / "model.pt")
    return folder


def run_with(evil: Path) -> Path:
    """A folder of a run whose newest checkpoint is the stranger's, with translations that a report would show."""
    folder = evil.parent / "run"
    folder.mkdir()
    shutil.copy(evil, folder / "checkpoint_last.pt")
    words = "one two three four five six"
    (folder / "generate.txt").write_text(f"S-0\t{words}\nT-0\t{words}\nH-0\t-1\t{words}\nD-0\t-1\t{words}\nP-0\t-1\n")
    return folder


SENTENCE = "the house"
# What a command is given, and what it says then: from the data, the stranger's file and a folder of the test's own.
ENTRIES: "dict[str, Callable[[Path, Path, Path], str]]" = {
    "fairseq-generate": lambda binary, evil, own: generate(binary, evil, status=1).output,
    "fairseq-generate, of an ensemble": lambda binary, evil, own: (
        generate(binary, f"{CHECKPOINT}:{evil}", status=1).output
    ),
    "fairseq-interactive": lambda binary, evil, own: (
        interactive(binary, evil, STORED / "train.en", "-s", "en", "-t", "de", status=1).output
    ),
    "fairseq-validate": lambda binary, evil, own: (
        call("fairseq-validate", binary, *TASK, "--path", evil, "--max-tokens", 400, status=1).output
    ),
    "fairseq-eval-lm": lambda binary, evil, own: (
        call("fairseq-eval-lm", binary, "--path", evil, "--cpu", status=1).output
    ),
    "--restore-file": lambda binary, evil, own: train(binary, own, "--restore-file", evil, status=1).output,
    "--finetune-from-model": lambda binary, evil, own: (
        train(binary, own, "--finetune-from-model", evil, status=1).output
    ),
    "--save-dir": lambda binary, evil, own: train(binary, run_with(evil), status=1).output,
    "average": lambda binary, evil, own: vaswani("average", CHECKPOINT, evil, "--output", own / "mean.pt"),
    "average, of a folder": lambda binary, evil, own: vaswani(
        "average", run_with(evil), "--last", 1, "--output", own / "mean.pt"
    ),
    "audit": lambda binary, evil, own: vaswani("audit", evil),
    "audit, of a folder": lambda binary, evil, own: vaswani("audit", run_with(evil)),
    "package": lambda binary, evil, own: vaswani("package", run_with(evil), own / "model", "--data", binary),
    "export ctranslate2": lambda binary, evil, own: vaswani("export", "ctranslate2", package_with(evil), own / "new"),
    "export safetensors": lambda binary, evil, own: vaswani("export", "safetensors", package_with(evil), own / "new"),
    "attention": lambda binary, evil, own: vaswani("attention", package_with(evil), SENTENCE, "--output", own / "new"),
    "report": lambda binary, evil, own: (
        vaswani("report", run_with(evil), "--output", own / "page.html") + (own / "page.html").read_text("utf-8")
    ),
    "from_pretrained": lambda binary, evil, own: raised(VaswaniTransformer.from_pretrained, package_with(evil)),
    "from_pretrained, of fairseq": lambda binary, evil, own: raised(
        TransformerModel.from_pretrained, str(evil.parent), evil.name, str(binary)
    ),
    "translate": lambda binary, evil, own: vaswani("translate", package_with(evil)),
}


# These read what this version's trainings write.
OF_TODAYS_FORMAT = ("average", "audit", "package", "report")


@pytest.mark.parametrize("write", [torch_zip, torch_legacy])
@pytest.mark.parametrize("entry", ENTRIES)
def test_where_a_checkpoint_is_read(
    binary: Path,
    state: "dict[str, Any]",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    entry: str,
    write: Callable[[Path, Any], None],
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"{SENTENCE}\n".encode())))
    evil, own = tmp_path / "evil" / "evil.pt", tmp_path / "own"
    evil.parent.mkdir()
    own.mkdir()
    write(evil, {**state, "extra": make_folder(tmp_path / "witness")})
    said = ENTRIES[entry](binary, evil, own)
    assert "Traceback" not in said
    if write is torch_legacy and entry.startswith(OF_TODAYS_FORMAT):
        assert "is not a whole checkpoint (cut off, or not written by torch.save)" in said
    else:
        assert "posix.mkdir" in said
        assert "nothing in it was run" in said
    assert [path.name for path in own.iterdir()] == (["page.html"] if entry == "report" else [])
    assert not (tmp_path / "witness").exists()


@pytest.mark.parametrize("read", [checkpoint_utils.load_checkpoint_to_cpu, read_checkpoint])
@pytest.mark.parametrize("write", WRITERS)
def test_every_wrapping(
    state: "dict[str, Any]", tmp_path: Path, write: Callable[[Path, Any], None], read: Callable[[Any], Any]
) -> None:
    """Whatever the file calls, and wherever in it: refused in one sentence with the file's name."""
    path, witness = tmp_path / "evil.pt", tmp_path / "witness"
    for place, put in PLACES.items():
        for code, make in CODES.items():
            hidden = put(state, make(witness))
            if write is hostile_files.plain_pickle:
                hidden = {"extra": hidden}
            write(path, hidden)
            with pytest.raises(ValueError, match=r"evil\.pt") as caught:
                read(str(path))
            assert "\n" not in str(caught.value), (place, code)
            assert not witness.exists(), (place, code)
    torch_zip(path, make_folder(witness))
    torch.load(path, weights_only=False)  # what a loader that is not safe would have run
    assert witness.exists()


@pytest.mark.parametrize("read", [checkpoint_utils.load_checkpoint_to_cpu, read_checkpoint])
@pytest.mark.parametrize("write", [torch_zip, torch_legacy])
@pytest.mark.parametrize("hidden", [hostile_files.ArrayOfAddresses(), hostile_files.NumberOfAddresses()])
def test_bytes_never_pass_for_addresses(
    state: "dict[str, Any]", tmp_path: Path, write: Callable[[Path, Any], None], read: Callable[[Any], Any], hidden: Any
) -> None:
    write(tmp_path / "evil.pt", {**state, "extra": hidden})
    with pytest.raises(ValueError, match=r"evil\.pt"):
        read(str(tmp_path / "evil.pt"))


@pytest.mark.parametrize("read", [checkpoint_utils.load_checkpoint_to_cpu, read_checkpoint])
def test_arrays_and_numbers_are_numpys_own_again(state: "dict[str, Any]", tmp_path: Path, read: Any) -> None:
    """Of every plain kind, byte order, layout and shape; and written anew as NumPy writes them."""
    arrays: list[Any] = [np.arange(6).reshape(2, 3).astype(kind) for kind in ("?", "i1", "u1", "i2", "i4", "f2", "f4")]
    arrays += [np.arange(6.0).astype(">f8"), np.asfortranarray(np.eye(2, 3)), np.array(3), np.zeros((0, 2))]
    numbers = [np.float64(0.1), np.float32(1.5), np.int64(-3), np.bool_(True)]
    path = tmp_path / "arrays.pt"
    torch.save({**state, "extra_state": {**state["extra_state"], "arrays": arrays, "numbers": numbers}}, path)
    found = read(str(path))["extra_state"]
    for one, other in zip(found["arrays"], arrays):
        np.testing.assert_array_equal(one, other)
        assert (one.dtype, one.shape) == (other.dtype.newbyteorder("="), other.shape)  # as NumPy's own unpickling
        assert one.flags.f_contiguous == other.flags.f_contiguous
    assert [(type(one), one) for one in found["numbers"]] == [(type(one), one) for one in numbers]
    torch.save(found["arrays"], path)
    assert {type(one) for one in torch.load(path, weights_only=False)} == {np.ndarray}


def test_other_files_are_text_or_nothing(state: "dict[str, Any]", tmp_path: Path, binary: Path) -> None:
    """A stranger's file as a dictionary, a vocabulary, a translation, an architecture's name."""
    evil, witness = tmp_path / "evil.pt", tmp_path / "witness"
    for write in WRITERS:
        write(evil, {**state, "extra": make_folder(witness)})
        assert "not a SentencePiece model" in vaswani("encode", "--model", evil, STORED / "train.en")
        assert "vaswani score: " in vaswani("score", "--hypothesis", evil, "--reference", STORED / "train.de")
        assert "describe" in vaswani("describe", evil)
        shutil.copy(evil, tmp_path / "dict.en.txt")
        with pytest.raises(ValueError, match=r"dict\.en\.txt"):
            VaswaniTransformer.from_pretrained(
                STORED, CHECKPOINT.name, tmp_path, source_lang="en", target_lang="en", user_dir=str(PLUGIN)
            )
        assert not witness.exists()
