"""A damaged checkpoint ends in one sentence with its name, or has the intact one's contents: nothing in between."""

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from damage import count_told, cut_off, equal, flipped, outcome
from fairseq import checkpoint_utils
from in_process import generate, refusal, train
from stored_run import CHECKPOINT, MODEL, binarise

from vaswani_plugin import cli
from vaswani_plugin.checkpoints.reading import read_checkpoint
from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer

READERS = [checkpoint_utils.load_checkpoint_to_cpu, read_checkpoint]
SENTENCE = "the small house stands in a red garden"


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return binarise(tmp_path_factory.mktemp("damaged"))


@pytest.fixture(scope="module")
def flips(request: pytest.FixtureRequest) -> int:
    return 500 if request.config.getoption("--long") else 50


@pytest.mark.parametrize("read", READERS)
def test_flipped_bits(tmp_path: Path, read: Callable[[str], Any], flips: int) -> None:
    path = tmp_path / "damaged.pt"
    intact, found = read(str(CHECKPOINT)), []
    for _, content in flipped(CHECKPOINT.read_bytes(), flips):
        path.write_bytes(content)
        found.append(outcome(lambda: read(str(path)), intact, equal, str(path)))
    # Nearly all of the file is weights and their optimiser's state; what is left are gaps that align them.
    assert count_told("bits of a checkpoint", found) > 0.7 * flips


@pytest.mark.long
@pytest.mark.parametrize("read", READERS)
def test_a_bit_of_every_third_byte_of_the_directory(tmp_path: Path, read: Callable[[str], Any]) -> None:
    """The zip's table of contents, which has no check sum of its own."""
    path, content = tmp_path / "damaged.pt", CHECKPOINT.read_bytes()
    with zipfile.ZipFile(CHECKPOINT) as archive:
        start = archive.start_dir
    intact, found = read(str(CHECKPOINT)), []
    for place in range(start, len(content), 3):
        other = bytearray(content)
        other[place] ^= 1 << place % 8
        path.write_bytes(other)
        found.append(outcome(lambda: read(str(path)), intact, equal, str(path)))
    assert count_told("bits of a checkpoint's directory", found) > 0.5 * len(found)


@pytest.mark.parametrize("read", READERS)
def test_a_member_that_is_marked_as_a_folder(tmp_path: Path, read: Callable[[str], Any]) -> None:
    """One bit that no check sum covers, and torch reads nothing of such weights: they would be what was in memory."""
    path, content = tmp_path / "damaged.pt", bytearray(CHECKPOINT.read_bytes())
    with zipfile.ZipFile(CHECKPOINT) as archive:
        entry = content.index(b"PK\x01\x02", archive.start_dir + 1)
    content[entry + 38] ^= 0x10
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"damaged\.pt is (damaged: its member|not a whole checkpoint)"):
        read(str(path))


@pytest.mark.parametrize("read", READERS)
def test_truncated_at_fifty_places(tmp_path: Path, read: Callable[[str], Any]) -> None:
    path = tmp_path / "damaged.pt"
    intact, found = read(str(CHECKPOINT)), []
    for _, content in cut_off(CHECKPOINT.read_bytes(), 50):
        path.write_bytes(content)
        found.append(outcome(lambda: read(str(path)), intact, equal, str(path)))
    assert (len(found), count_told("a checkpoint's beginnings", found)) == (50, 50)


@pytest.mark.parametrize("read", READERS)
def test_empty(tmp_path: Path, read: Callable[[str], Any]) -> None:
    (tmp_path / "empty.pt").touch()
    with pytest.raises(ValueError, match=r"empty\.pt is empty"):
        read(str(tmp_path / "empty.pt"))


def translated(folder: Path) -> "tuple[Any, ...]":
    """Everything that a packaged model's answers come from, and one of them."""
    model = VaswaniTransformer.from_pretrained(folder)
    (best, *_) = model.generate(model.encode(SENTENCE))
    dictionaries = (model.src_dict.symbols, model.tgt_dict.symbols)
    return model.models[0].state_dict(), *dictionaries, best["tokens"], best["score"], model.translate(SENTENCE)


@pytest.mark.parametrize("name", sorted(path.name for path in MODEL.iterdir()))
def test_flipped_bits_of_a_packaged_model(tmp_path: Path, name: str, flips: int) -> None:
    folder = Path(shutil.copytree(MODEL, tmp_path / "model"))
    intact, found = translated(MODEL), []
    for _, content in flipped((MODEL / name).read_bytes(), flips // 5):
        (folder / name).write_bytes(content)
        found.append(outcome(lambda: translated(folder), intact, equal, str(folder)))
    told = count_told(f"bits of {name}", found)
    if name.startswith(("dict", "sentencepiece")):
        assert told == len(found)
        assert all(str(folder / name) in sentence for sentence in found)
    if name == "model.pt":
        assert told > 0.5 * len(found)


@pytest.mark.parametrize("name", sorted(path.name for path in MODEL.iterdir()))
def test_truncated_files_of_a_packaged_model(tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(MODEL, tmp_path / "model"))
    intact = translated(MODEL)
    for what, content in [("empty", b""), *cut_off((MODEL / name).read_bytes(), 9)]:
        (folder / name).write_bytes(content)
        found = outcome(lambda: translated(folder), intact, equal, str(folder))
        # The last byte of model.json is a line's end.
        assert found != "the same" or name == "model.json", what


def test_every_command_says_it(binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "damaged.pt"
    content = bytearray(CHECKPOINT.read_bytes())
    weights = read_checkpoint(CHECKPOINT)["model"]["encoder.embedding.weight"].numpy().tobytes()
    content[content.index(weights) + len(weights) // 2] ^= 1
    path.write_bytes(content)
    damaged = f"{path} is damaged: its member archive/data/"
    assert refusal(generate(binary, path, status=1), "fairseq-generate").startswith(damaged)
    for flag in ("--restore-file", "--finetune-from-model"):
        done = train(binary, tmp_path / "save", flag, path, status=1)
        assert refusal(done, "fairseq-train").startswith(damaged)
    assert cli.main(["average", str(path), "--output", str(tmp_path / "mean.pt")]) == 1
    assert f"{path} is not a whole checkpoint (the check sum of archive/data/" in capsys.readouterr().err
    assert not (tmp_path / "mean.pt").exists()


def test_damaged_settings_are_not_audited(tmp_path: Path) -> None:
    """The audit reads no weights, but what it reads is checked."""
    with zipfile.ZipFile(CHECKPOINT) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
        pickled = archive.read(name)
    content = CHECKPOINT.read_bytes()
    start = content.index(pickled)
    eight = pickled.index(b"K\x08", pickled.index(b"d_model")) + 1
    spoilt = bytearray(content)
    spoilt[start + eight] ^= 2  # d_model 10
    (tmp_path / "damaged.pt").write_bytes(spoilt)
    with pytest.raises(ValueError, match=r"the check sum of .*data\.pkl differs"):
        read_checkpoint(tmp_path / "damaged.pt", weights=False)
    assert read_checkpoint(CHECKPOINT, weights=False)["cfg"]["model"]["d_model"] == 8


def test_the_format_without_check_sums_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "old.pt"
    state = torch.load(CHECKPOINT, weights_only=True)
    torch.save(state, path, _use_new_zipfile_serialization=False)
    with caplog.at_level("WARNING"):
        loaded = checkpoint_utils.load_checkpoint_to_cpu(str(path))
    assert equal(loaded["model"], state["model"])
    assert f"{path} is in torch's format before 1.6, which has no check sums" in caplog.text


# --- whole, but of another version or another model ------------------------------------------------------------------


def written_anew(path: Path, member: str, content: bytes) -> Path:
    """The stored checkpoint with another content of one member, whose check sum is right."""
    with zipfile.ZipFile(CHECKPOINT) as old, zipfile.ZipFile(path, "w") as new:
        for entry in old.infolist():
            new.writestr(entry, content if entry.filename.endswith(member) else old.read(entry))
    return path


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("member", "content"),
    [("/version", b"99\n"), ("/byteorder", b"middle"), ("/data.pkl", b"\x80\x05."), ("/data/0", b"\0" * 12)],
)
def test_another_version_of_torchs_format(
    tmp_path: Path, read: Callable[[str], Any], member: str, content: bytes
) -> None:
    path = written_anew(tmp_path / "other.pt", member, content)
    assert outcome(lambda: read(str(path)), None, equal, str(path)) != "the same"


CHANGES: "dict[str, Callable[[dict[str, Any]], Any]]" = {
    "a setting of a later version": lambda state: state["cfg"]["model"].update(rotary=True),
    "a setting that is gone": lambda state: state["cfg"]["task"].pop("length_penalty_alpha"),
    "another width": lambda state: state["cfg"]["model"].update(d_model=16),
    "other heads": lambda state: state["cfg"]["model"].update(num_heads=4),
    "another architecture": lambda state: state["cfg"]["model"].update(_name="transformer"),
    "no architecture that is known": lambda state: state["cfg"]["model"].update(_name="vaswani_next"),
    "a weight too many": lambda state: state["model"].update(gate=torch.zeros(2)),
    "a weight too few": lambda state: state["model"].pop("decoder.stack.layers.0.feed_forward.inner.bias"),
    "a weight of another shape": lambda state: state["model"].update(
        {"decoder.stack.layers.0.feed_forward.inner.bias": torch.zeros(3)}
    ),
    "no settings": lambda state: state.update(cfg=None),
    "no updates": lambda state: state.update(optimizer_history=[]),
    "no statistics": lambda state: state.pop("extra_state"),
}
SAME = {"a setting of a later version", "a setting that is gone"}


@pytest.mark.parametrize("change", CHANGES)
def test_another_version_or_architecture(binary: Path, tmp_path: Path, change: str) -> None:
    """Told by generation and, where a training would go on from it, there too; what fits is used."""
    state = torch.load(CHECKPOINT, weights_only=True)
    CHANGES[change](state)
    path = tmp_path / "other.pt"
    torch.save(state, path)
    status = int(change not in SAME)
    done = generate(binary, path, status=status)
    if status:
        assert str(path) in refusal(done, "fairseq-generate")
    sizes = ("--num-layers", 1, "--d-model", 8, "--d-ff", 16, "--num-heads", 2, "--disable-validation")
    if "weight" in change or change == "no updates":
        done = train(binary, tmp_path / "save", *sizes, "--restore-file", path, status=1)
        assert str(path) in refusal(done, "fairseq-train")
