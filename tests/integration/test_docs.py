"""Every command of the pages in docs/, run as written but for sizes.

There are no GPUs, no second machine and no network in a test: trainings get ``--cpu``, several workers are two, the
machines that torchrun connects are one, SLURM's tools are scripts that set its variables, and wandb is a recorder.
"""

import re
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pages
import pytest
import torch
from conftest import write_pairs

ROOT = Path(__file__).parents[2]


# A page of results alone has no commands to run.
DOCS = sorted(path for path in (ROOT / "docs").rglob("*.md") if pages.commands(path.read_text("utf-8")))


TRAINING = (
    'fairseq-train binary --user-dir "$(vaswani user-dir)" --task vaswani_translation --arch vaswani_tiny --criterion '
    "vaswani_label_smoothing --lr-scheduler vaswani_inverse_sqrt --optimizer adam --adam-betas '(0.9,0.98)' "
    "--adam-eps 1e-9 --max-tokens 400 --cpu --num-workers 0 --max-update 3"
)


GENERATE = (
    'fairseq-generate binary --user-dir "$(vaswani user-dir)" --task vaswani_translation --path averaged.pt --beam 2 '
    "--gen-subset test --bpe sentencepiece --sentencepiece-model joint.model"
)


SMALL = "--num-layers 1 --d-model 16 --d-ff 16 --num-heads 2 --cpu --num-workers 0"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return int(free.getsockname()[1])


PORT = free_port()


def no_check(folder: Path, outputs: "dict[str, str]") -> None:
    pass


@dataclass
class Page:
    """What a page takes for granted, what makes its commands small enough for a test, and what they must have done."""

    prepare: Callable[[Path, "dict[str, str]"], None]
    smaller: "dict[str, str]"
    packages: "tuple[str, ...]" = ()
    stand_ins: "dict[str, str]" = field(default_factory=dict)
    check: Callable[[Path, "dict[str, str]"], None] = no_check


def run_lines(lines: "list[str]", folder: Path, environment: "dict[str, str]") -> None:
    pages.run_all([pages.Command(line, False, []) for line in lines], folder, environment)


def trained_on_own_text(folder: Path, environment: "dict[str, str]") -> None:
    """What the five commands of the README leave."""
    known = Path(environment["OWN_TEXT"])
    if not known.exists():
        known.mkdir()
        files = (("train", 60), ("valid", 6), ("domain.train", 40), ("domain.valid", 6))
        for seed, (name, count) in enumerate(files):
            write_pairs(known, name, count, seed)
        lines = [
            "vaswani vocabulary --size 280 --output joint train.en train.de",
            "vaswani encode --model joint.model --output encoded train.en train.de valid.en valid.de",
            "fairseq-preprocess -s en -t de --srcdict joint.dict.txt --joined-dictionary --trainpref encoded/train "
            "--validpref encoded/valid --destdir binary",
            TRAINING,
            "vaswani average --output averaged.pt checkpoints/checkpoint_last.pt",
        ]
        run_lines(lines, known, environment)
    shutil.copytree(known, folder, dirs_exist_ok=True)


def raw_text(folder: Path, environment: "dict[str, str]") -> None:
    for seed, (name, count) in enumerate((("raw", 100), ("valid", 6), ("test", 6))):
        write_pairs(folder, name, count, seed)


def translated(folder: Path, environment: "dict[str, str]") -> None:
    """What docs/own_data.md leaves."""
    trained_on_own_text(folder, environment)
    write_pairs(folder, "test", 6, 9)
    lines = [
        "vaswani encode --model joint.model --output encoded test.en test.de",
        "rm -r binary",
        "fairseq-preprocess -s en -t de --srcdict joint.dict.txt --joined-dictionary --trainpref encoded/train "
        "--validpref encoded/valid --testpref encoded/test --destdir binary",
        f"{GENERATE} > generate.txt",
    ]
    run_lines(lines, folder, environment)


def in_the_checkout(folder: Path, environment: "dict[str, str]") -> None:
    trained_on_own_text(folder, environment)
    (folder / "examples").symlink_to(ROOT / "examples")


def with_words_of_their_own(folder: Path, environment: "dict[str, str]") -> None:
    """Text with other words on the other side, as text has."""
    trained_on_own_text(folder, environment)
    (folder / "words.train.en").write_text("a small house\n" * 5)
    (folder / "words.train.de").write_text("ein kleines Haus\n" * 5)


def curves_are_the_logs(folder: Path, outputs: "dict[str, str]") -> None:
    """TensorBoard's file has the loss that the log of the same run has; without wandb the log says so."""
    loaders = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    (file,) = (folder / "watched" / "tensorboard" / "train").iterdir()
    events = [event for event in loaders.EventFileLoader(str(file)).Load() if event.HasField("summary")]
    losses = [
        (event.step, value.tensor.float_val[0])
        for event in events
        for value in event.summary.value
        if value.tag == "loss"
    ]
    logged = [
        (int(updates), float(loss))
        for loss, updates in re.findall(
            r"\| train \|.* loss ([\d.]+) .*num_updates (\d+)", outputs["--save-dir watched"]
        )
    ]
    assert [step for step, _ in losses] == [updates for updates, _ in logged]
    assert [loss for _, loss in losses] == pytest.approx([loss for _, loss in logged], abs=1e-3)
    assert "wandb not found, pip install wandb" in outputs["--save-dir tracked"]


def two_workers_are_two_however_started(folder: Path, outputs: "dict[str, str]") -> None:
    """The same weights to the last bit from torchrun, from SLURM and from workers that fairseq starts."""

    def weights(name: str) -> "dict[str, torch.Tensor]":
        return torch.load(folder / name / "checkpoint_last.pt", weights_only=True)["model"]

    first, *others = (weights(name) for name in ("by-torchrun", "two-machines", "by-slurm", "cpu-workers"))
    for other in others:
        assert all(torch.equal(other[name], weight) for name, weight in first.items())
    alone = weights("all-gpus")
    assert not all(torch.equal(alone[name], weight) for name, weight in first.items())


SRUN = """\
#!/usr/bin/env bash
[[ "$*" == "--nodes 2 --ntasks-per-node 1 --gpus-per-node 4 fairseq-train "* ]] || exit 2
shift 6
export SLURM_STEP_NODELIST='node[7-8]' SLURM_NNODES=2 SLURM_NTASKS=2 SLURM_LOCALID=0
SLURM_NODEID=1 SLURM_PROCID=1 "$@" >/dev/null 2>&1 &
SLURM_NODEID=0 SLURM_PROCID=0 "$@" && wait $!
"""


SCONTROL = """\
#!/bin/sh
[ "$*" = "show hostnames node[7-8]" ] && printf 'localhost\\nlocalhost\\n'
"""


PAGES = {
    "export.md": Page(trained_on_own_text, {}, ("ctranslate2", "safetensors")),
    "python.md": Page(trained_on_own_text, {}),
    "own_data.md": Page(
        raw_text,
        {
            "--size 8000": "--size 280",
            "--arch vaswani_base": f"--arch vaswani_tiny {SMALL}",
            "--update-freq 7": "--update-freq 1",
            "--max-update 100000": "--max-update 3",
            "--save-interval-updates 1500": "--save-interval-updates 1",
            "--last 5": "--last 3",
            "--workers 2": "--workers 1",
        },
    ),
    "evaluation.md": Page(translated, {}),
    "logging.md": Page(
        trained_on_own_text,
        {
            "--arch vaswani_base": f"--arch vaswani_tiny {SMALL}",
            "--max-tokens 4096": "--max-tokens 400",
            "--update-freq 7": "--update-freq 1",
            "--max-update 100000": "--max-update 6",
            "--log-interval 100": "--log-interval 1",
        },
        check=curves_are_the_logs,
    ),
    "many_gpus_and_nodes.md": Page(
        in_the_checkout,
        {
            "--arch vaswani_base": f"--arch vaswani_tiny {SMALL}",
            "--max-update 100000": "--max-update 3 --no-epoch-checkpoints",
            "--max-tokens 3584": "--max-tokens 400",
            "--update-freq 4": "--update-freq 1",
            "--nproc_per_node 8": "--nproc_per_node 2",
            "--nproc_per_node 4": "--nproc_per_node 2",
            "--nnodes 2 --node_rank 0 --master_addr first-machine": "--nnodes 1 --node_rank 0 --master_addr localhost",
            "--master_port 29500": f"--master_port {PORT}",
            "--distributed-port 29500": f"--distributed-port {PORT}",
        },
        stand_ins={"srun": SRUN, "scontrol": SCONTROL},
        check=two_workers_are_two_however_started,
    ),
    "mixed_precision.md": Page(
        trained_on_own_text,
        {
            "--arch vaswani_base": f"--arch vaswani_tiny {SMALL}",
            "--max-tokens 4096": "--max-tokens 400",
            "--max-update 100000": "--max-update 2 --no-epoch-checkpoints",
            "--max-update 120000": "--max-update 3",
            "--fp16 --save-dir half": "--memory-efficient-fp16 --save-dir half",
        },
    ),
    "troubleshooting.md": Page(
        with_words_of_their_own, {"--max-tokens 4096": "--max-tokens 400 --cpu --num-workers 0"}
    ),
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
def environment(commands_at_once: "dict[str, str]", tmp_path_factory: pytest.TempPathFactory) -> "dict[str, str]":
    return {**commands_at_once, "OWN_TEXT": str(tmp_path_factory.mktemp("own") / "text")}


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
    for name, script in page.stand_ins.items():
        file = tmp_path / "stand-ins" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(script)
        file.chmod(0o755)
    path_of_commands = f"{tmp_path / 'stand-ins'}:{environment['PATH']}"
    outputs = pages.run_all(listed, tmp_path, {**environment, "PATH": path_of_commands})
    assert len(outputs) == len(listed) > 0
    folders = (re.search(r"--save-dir [\w-]+", command.line) for command in listed)
    page.check(tmp_path, {found[0]: output for found, output in zip(folders, outputs) if found})
