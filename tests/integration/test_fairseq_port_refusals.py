"""What the mended fairseq refuses, and how: one sentence, a status that is not 0, and nothing run."""

import argparse
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Corpus, run
from port_fixtures import train


class RunsWhenLoaded:
    """Pickles as a call that makes a file."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.witness),)


@pytest.fixture(scope="module")
def checkpoint(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refusals")
    train(corpus.binary, folder, "--max-update", 1, "--no-epoch-checkpoints", "--disable-validation")
    return folder / "checkpoint_last.pt"


@pytest.fixture
def state(checkpoint: Path) -> "dict[str, Any]":
    return torch.load(checkpoint, weights_only=False)


def refused(path: Path) -> str:
    """The sentence with which the checkpoint at ``path`` is refused."""
    from fairseq import checkpoint_utils
    from fairseq.user_error import UserError

    with pytest.raises(UserError) as caught:
        checkpoint_utils.load_checkpoint_to_cpu(str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- checkpoints -----------------------------------------------------------------------------------------------------


def test_a_checkpoint_that_would_run_code_is_refused_by_the_command(
    corpus: Corpus, state: "dict[str, Any]", tmp_path: Path
) -> None:
    torch.save({**state, "extra": RunsWhenLoaded(tmp_path / "witness")}, tmp_path / "evil.pt")
    done = run("fairseq-generate", corpus.binary, "--path", tmp_path / "evil.pt", "--cpu", status=1)
    assert "Traceback" not in done.output
    assert f"{tmp_path / 'evil.pt'} was refused and nothing in it was run: it holds posix.mkdir" in done.last_line
    assert not (tmp_path / "witness").exists()


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "before torch 1.6"])
def test_code_is_refused_in_both_formats(state: "dict[str, Any]", tmp_path: Path, zipped: bool) -> None:
    torch.save(
        {**state, "extra": RunsWhenLoaded(tmp_path / "witness")},
        tmp_path / "evil.pt",
        _use_new_zipfile_serialization=zipped,
    )
    assert "holds posix.mkdir" in refused(tmp_path / "evil.pt")
    assert not (tmp_path / "witness").exists()


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "before torch 1.6"])
def test_what_fairseq_writes_is_loaded_whole(state: "dict[str, Any]", tmp_path: Path, zipped: bool) -> None:
    """Also the settings of legacy models, a dictionary in the task's state, and NumPy numbers among the statistics."""
    from fairseq import checkpoint_utils
    from fairseq.data import Dictionary

    np = pytest.importorskip("numpy")
    dictionary = Dictionary()
    dictionary.add_symbol("word")
    state["args"] = None
    state["cfg"]["model"] = argparse.Namespace(arch="transformer", _name="transformer", encoder_layers=1)
    state["task_state"] = {"target_dictionary": dictionary}
    state["extra_state"]["val_loss"] = np.float64(1.5)
    torch.save(state, tmp_path / "own.pt", _use_new_zipfile_serialization=zipped)
    if not zipped:
        # as NumPy 1 named its module
        content = (tmp_path / "own.pt").read_bytes()
        (tmp_path / "own.pt").write_bytes(content.replace(b"cnumpy._core.multiarray", b"cnumpy.core.multiarray"))
    with torch.serialization.safe_globals([argparse.Namespace]):
        loaded = checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "own.pt"))
        assert argparse.Namespace in torch.serialization.get_safe_globals(), "the caller's own list is left alone"
    assert loaded["cfg"].model.encoder_layers == 1
    assert loaded["task_state"]["target_dictionary"].index("word") == 4
    assert loaded["extra_state"]["val_loss"] == 1.5
    for key, value in state["model"].items():
        assert torch.equal(loaded["model"][key], value)


def test_a_flipped_bit_is_found_and_its_place_named(checkpoint: Path, tmp_path: Path) -> None:
    content = bytearray(checkpoint.read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "flipped.pt").write_bytes(content)
    torch.load(tmp_path / "flipped.pt", weights_only=False)  # torch does not notice
    assert "is damaged: its member archive/" in refused(tmp_path / "flipped.pt")


@pytest.mark.parametrize(
    ("kept", "told"), [(0, "is empty"), (0.4, "is not a complete checkpoint"), (0.99, "is not a complete checkpoint")]
)
def test_a_truncated_checkpoint_is_refused(checkpoint: Path, tmp_path: Path, kept: float, told: str) -> None:
    content = checkpoint.read_bytes()
    (tmp_path / "short.pt").write_bytes(content[: int(kept * len(content))])
    assert told in refused(tmp_path / "short.pt")


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.pt").write_text("not a checkpoint\n")
    assert "is not a complete checkpoint" in refused(tmp_path / "text.pt")
    torch.save({"weights": torch.zeros(2)}, tmp_path / "weights.pt")
    assert "holds no model" in refused(tmp_path / "weights.pt")
    assert "is a folder" in refused(tmp_path)
    assert "there is no checkpoint" in refused(tmp_path / "missing.pt")


def test_weights_that_0_12_2_kept_twice_are_dropped(corpus: Corpus, state: "dict[str, Any]", tmp_path: Path) -> None:
    """A checkpoint of the published release has copies of every encoder layer's weights under other names."""
    from fairseq import checkpoint_utils

    layer = "encoder.layers.0."
    names = {"out_proj": "self_attn.out_proj", "fc1": "fc1", "fc2": "fc2"}
    for kind in ("weight", "bias"):
        parts = [state["model"][f"{layer}self_attn.{part}_proj.{kind}"] for part in "qkv"]
        state["model"][f"{layer}in_proj_{kind}"] = torch.cat(parts)
        for copy, original in names.items():
            state["model"][f"{layer}{copy}_{kind}"] = state["model"][f"{layer}{original}.{kind}"].clone()
    state["cfg"]["task"]["data"] = str(corpus.binary)
    torch.save(state, tmp_path / "published.pt")
    (model,), _, _ = checkpoint_utils.load_model_ensemble_and_task([str(tmp_path / "published.pt")])
    assert torch.equal(model.encoder.layers[0].fc1.weight, state["model"][f"{layer}fc1.weight"])


# --- parts of a plugin that is not loaded ----------------------------------------------------------------------------


def test_a_forgotten_user_dir_is_named_with_the_one_of_the_training(
    corpus: Corpus, state: "dict[str, Any]", tmp_path: Path
) -> None:
    from fairseq.models.transformer import TransformerModel
    from fairseq.user_error import UserError

    state["cfg"]["model"]._name = "foreign_model"
    state["cfg"]["common"]["user_dir"] = "../foreign"
    torch.save(state, tmp_path / "foreign.pt")
    expected = (
        "this checkpoint needs --user-dir, because its architecture 'foreign_model' is not part of fairseq "
        f"(it was trained with --user-dir ../foreign): {tmp_path / 'foreign.pt'}"
    )
    done = run("fairseq-generate", corpus.binary, "--path", tmp_path / "foreign.pt", "--cpu", status=1)
    assert done.last_line == f"fairseq-generate: error: {expected}"
    assert "Traceback" not in done.output
    with pytest.raises(UserError) as caught:
        TransformerModel.from_pretrained(str(tmp_path), "foreign.pt", str(corpus.binary))
    assert str(caught.value) == expected


def test_an_unknown_architecture_points_to_user_dir(corpus: Corpus) -> None:
    done = run("fairseq-train", corpus.binary, "--arch", "foreign", status=2)
    assert done.last_line.endswith(
        "invalid choice: 'foreign'; if a plugin defines it, give the plugin's folder with --user-dir"
    )


def test_a_wrong_user_dir_is_a_sentence(tmp_path: Path) -> None:
    from fairseq import utils
    from fairseq.user_error import UserError

    (tmp_path / "file.py").write_text("")
    (tmp_path / "parent" / "plugin").mkdir(parents=True)
    (tmp_path / "parent" / "plugin" / "__init__.py").write_text("")
    for name, told in (
        ("missing", f"--user-dir {tmp_path / 'missing'}: there is no folder"),
        ("file.py", "is a file; name the folder of the plugin"),
        ("parent", f"has no __init__.py; did you mean {tmp_path / 'parent' / 'plugin'}?"),
    ):
        with pytest.raises(UserError) as caught:
            utils.import_user_module(argparse.Namespace(user_dir=str(tmp_path / name)))
        assert told in str(caught.value)


# --- workers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"distributed_port": 12345}])
def test_as_many_cpu_workers_are_started_as_were_asked_for(
    settings: "dict[str, Any]", monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairseq.dataclass.configs import DistributedTrainingConfig
    from fairseq.distributed import utils as distributed

    for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"):
        monkeypatch.delenv(name, raising=False)
    from omegaconf import OmegaConf

    cfg = OmegaConf.create(
        {**vars(DistributedTrainingConfig()), "distributed_world_size": 3, "cpu": True, "tpu": False, **settings}
    )
    distributed.infer_init_method(cfg)
    assert cfg.distributed_init_method.startswith("tcp://localhost:")
    assert cfg.distributed_num_procs == distributed.local_workers(cfg) == 3


def test_a_rank_without_its_own_process_is_refused() -> None:
    from fairseq.distributed import utils as distributed
    from fairseq.user_error import UserError

    cfg = argparse.Namespace(cpu=True, distributed_rank=2, distributed_world_size=4)
    with pytest.raises(UserError, match="--distributed-rank 2 on CPU needs --distributed-no-spawn"):
        distributed.local_workers(cfg)


# --- files that are replaced -----------------------------------------------------------------------------------------


def test_a_copy_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairseq.file_io import PathManager

    def fail(*arguments: Any) -> None:
        raise OSError("no space left")

    (tmp_path / "new").write_bytes(b"new")
    (tmp_path / "last").write_bytes(b"old")
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="no space left"):
            PathManager.copy(str(tmp_path / "new"), str(tmp_path / "last"))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"new": b"new", "last": b"old"}
    for _ in range(2):
        assert PathManager.copy(str(tmp_path / "new"), str(tmp_path / "last"))
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"new": b"new", "last": b"new"}


def test_a_checkpoint_that_cannot_be_written_is_a_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairseq import checkpoint_utils
    from fairseq.user_error import UserError

    attempts: list[int] = []

    def half(obj: Any, file: Any) -> None:
        attempts.append(file.tell())
        file.write(b"half")
        raise OSError("no space left")

    (tmp_path / "last.pt").write_bytes(b"old")
    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(UserError, match=r"the checkpoint .*last\.pt could not be written: no space left"):
        checkpoint_utils.torch_persistent_save({}, str(tmp_path / "last.pt"))
    # every attempt began with an empty file
    assert attempts == [0, 0, 0]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"last.pt": b"old"}
