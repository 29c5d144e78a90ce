"""The plugin's parts through the real fairseq-train: registration, mixing with stock parts, resuming, precision."""

import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import reference
import torch
from conftest import PAPER_OPTIMISER, PLUGIN, Corpus, Run, run
from same_state import comparable, different_keys

STOCK_OPTIMISER = (
    *("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1, "--lr-scheduler", "inverse_sqrt"),
    *("--warmup-updates", 100, "--lr", 1e-3, "--optimizer", "adam"),
)
STOCK_SIZES = [
    *("--encoder-layers", 2, "--decoder-layers", 2, "--encoder-embed-dim", 16, "--decoder-embed-dim", 16),
    *("--encoder-ffn-embed-dim", 32, "--decoder-ffn-embed-dim", 32),
    *("--encoder-attention-heads", 2, "--decoder-attention-heads", 2),
]
OUR_SIZES = ["--num-layers", 2, "--d-model", 16, "--d-ff", 32, "--num-heads", 2]
COMMON = ("--max-tokens", 200, "--cpu", "--num-workers", 0, "--max-update", 2, "--no-save", "--log-format", "simple")


def logged(log: str, name: str) -> "list[float]":
    lines = [line for line in log.split("\n") if "train_inner" in line]
    return [float(re.search(rf"\b{name}=([\d.e+-]+)", line).group(1)) for line in lines]


def test_rates_and_losses_of_a_run(trained: Run) -> None:
    """The logged rate is the next update's; the first losses are near that of a uniform choice of 24 words."""
    rates = logged(trained.log, "lr")
    expected = [reference.learning_rate(n + 1, 16, 100) for n in range(1, 201)]
    assert rates == pytest.approx(expected, rel=1e-4)
    losses = logged(trained.log, "nll_loss")
    assert losses[0] > math.log2(24) - 0.5
    assert losses[-1] < losses[0] - 0.5


def test_left_out_pairs_are_counted(corpus: Corpus, tmp_path: Path) -> None:
    log = corpus.train(tmp_path, "--max-source-positions", 6, "--max-target-positions", 256, updates=1).output
    lines = (corpus.raw / "train.en").read_text().split("\n")[:-1]
    longer = sum(len(line.split()) + 1 > 6 for line in lines)
    assert 0 < longer < 120
    assert f"{longer} of 120 training pairs left out" in log
    # Validation uses every sentence, so that its numbers do not depend on the limit.
    assert "are left out, with more than" not in log


MIXES = {
    "everything ours": ("vaswani_translation", "vaswani_tiny", OUR_SIZES, PAPER_OPTIMISER),
    "our architecture, stock task": ("translation", "vaswani_tiny", OUR_SIZES, PAPER_OPTIMISER),
    "our architecture, stock criterion and schedule": ("translation", "vaswani_tiny", OUR_SIZES, STOCK_OPTIMISER),
    "stock architecture, the rest ours": ("vaswani_translation", "transformer", STOCK_SIZES, PAPER_OPTIMISER),
    "stock architecture and task, our criterion": ("translation", "transformer", STOCK_SIZES, PAPER_OPTIMISER),
    "our task alone": ("vaswani_translation", "transformer", STOCK_SIZES, STOCK_OPTIMISER),
}


@pytest.mark.parametrize("mix", MIXES)
def test_every_mix_with_stock_parts_trains(corpus: Corpus, tmp_path: Path, mix: str) -> None:
    task, architecture, sizes, optimiser = MIXES[mix]
    command = ("fairseq-train", corpus.binary, "--user-dir", PLUGIN, "--task", task, "--arch", architecture)
    log = run(*command, *sizes, *optimiser, *COMMON, "--log-interval", 1, cwd=tmp_path).output
    losses = logged(log, "loss")
    assert len(losses) == 2
    assert all(4 < loss < 8 for loss in losses)


@pytest.mark.parametrize("way", ["relative", "installed", "imported first", "twice", "spawned workers"])
def test_registration(corpus: Corpus, tmp_path: Path, way: str) -> None:
    arguments = [corpus.binary, "--task", "vaswani_translation", "--arch", "vaswani_tiny", *OUR_SIZES, *PAPER_OPTIMISER]
    user_dir: Any = PLUGIN
    if way == "relative":
        log = run("fairseq-train", *arguments, *COMMON, "--user-dir", "vaswani_plugin/", cwd=PLUGIN.parent).output
    elif way == "spawned workers":
        two = ("--user-dir", "vaswani_plugin", "--distributed-world-size", 2)
        log = run("fairseq-train", *arguments, *COMMON, *two, cwd=PLUGIN.parent).output
    elif way == "installed":
        user_dir = run("vaswani", "user-dir", installed=True).last_line
        log = run("fairseq-train", *arguments, *COMMON, "--user-dir", user_dir, cwd=tmp_path, installed=True).output
    else:
        imports = "import vaswani_plugin; " * (2 if way == "twice" else 1)
        program = f"{imports}import sys; from fairseq_cli.train import cli_main; cli_main()"
        # A new interpreter, where nothing of fairseq has been imported before, for one of them.
        python = sys.executable if way == "imported first" else "python"
        log = run(python, "-c", program, *arguments, *COMMON, "--user-dir", user_dir, cwd=tmp_path).output
    assert "VaswaniTransformer" in log


def test_names_are_registered_by_this_package() -> None:
    program = (
        "import vaswani_plugin\n"
        "from fairseq.models import MODEL_REGISTRY\n"
        "from fairseq.criterions import CRITERION_REGISTRY\n"
        "from fairseq.optim.lr_scheduler import LR_SCHEDULER_REGISTRY\n"
        "from fairseq.tasks import TASK_REGISTRY\n"
        "for registry, name in ((MODEL_REGISTRY, 'vaswani_transformer'),\n"
        "                       (CRITERION_REGISTRY, 'vaswani_label_smoothing'),\n"
        "                       (LR_SCHEDULER_REGISTRY, 'vaswani_inverse_sqrt'),\n"
        "                       (TASK_REGISTRY, 'vaswani_translation')):\n"
        "    assert registry[name].__module__.startswith('vaswani_plugin.'), name\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=PLUGIN.parent)


def test_resuming_equals_not_stopping_on_every_key(corpus: Corpus, tmp_path: Path) -> None:
    """20 updates, a restart, 20 more: bit for bit the 40 updates in one go, with dropout on."""
    corpus.train(tmp_path / "straight", "--dropout", 0.1, updates=40)
    for updates in (20, 40):
        corpus.train(tmp_path / "resumed", "--dropout", 0.1, updates=updates)
    straight, resumed = (tmp_path / name / "checkpoint_last.pt" for name in ("straight", "resumed"))
    assert different_keys(straight, resumed) == []
    compared = comparable(straight)
    assert sum(key.startswith(".model.") for key in compared) > 30
    assert sum(key.startswith(".last_optimizer_state.") for key in compared) > 60


def test_tying_survives_the_checkpoint(trained: Run) -> None:
    model = torch.load(trained.last, weights_only=True)["model"]
    tied = [name for name in model if name.endswith("embedding.weight")]
    assert len(tied) == 3
    assert len({model[name].data_ptr() for name in tied}) == 1


@pytest.mark.parametrize("precision", [["--mixed-precision"], ["--bf16"], ["--memory-efficient-bf16"]])
def test_lower_precision_follows_float32(corpus: Corpus, trained: Run, tmp_path: Path, precision: "list[str]") -> None:
    log = corpus.train(tmp_path, *precision, "--dropout", 0.1, updates=10).output
    assert logged(log, "nll_loss")[:10] == pytest.approx(logged(trained.log, "nll_loss")[:10], abs=0.12)
    # fairseq writes bfloat16 weights as float32; the numbers show which they were.
    weight = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)["model"]["encoder.embedding.weight"]
    assert torch.equal(weight, weight.bfloat16().float()) == (precision != ["--mixed-precision"])


def test_update_frequency_leaves_the_schedule_alone(corpus: Corpus, tmp_path: Path) -> None:
    log = corpus.train(tmp_path, "--update-freq", 2, "--max-tokens", 100, updates=4).output
    assert logged(log, "lr") == pytest.approx([reference.learning_rate(n + 1, 16, 100) for n in range(1, 5)], rel=1e-4)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--lr", 5e-4], "leave --lr out, and scale the rate with --lr-factor"),
        (["--warmup-updates", 0], "--warmup-updates 0 must be at least 1"),
        (["--stop-min-lr", 1e-2], "--stop-min-lr 0.01 is not below the first warm-up rate"),
        (["--label-smoothing", 1.5], "--label-smoothing 1.5 must be at least 0 and below 1"),
        (["--num-heads", 3], "--d-model 16 is not divisible by --num-heads 3"),
    ],
)
def test_wrong_flags_end_in_a_sentence(corpus: Corpus, tmp_path: Path, flags: "list[Any]", sentence: str) -> None:
    result = corpus.train(tmp_path, *flags, updates=1, status=1)
    assert sentence in result.last_line
    assert "Traceback" not in result.output


def test_usual_stop_min_lr_trains(corpus: Corpus, tmp_path: Path) -> None:
    assert len(logged(corpus.train(tmp_path, "--stop-min-lr", 1e-9, updates=2).output, "loss")) == 2


def test_sharing_with_two_dictionaries(corpus: Corpus, tmp_path: Path) -> None:
    apart = tmp_path / "apart"
    (tmp_path / "one.en").write_text("a b c\n" * 5)
    (tmp_path / "one.de").write_text("x y\n" * 5)
    both = ("--trainpref", tmp_path / "one", "--validpref", tmp_path / "one")
    run("fairseq-preprocess", "-s", "en", "-t", "de", *both, "--destdir", apart)
    two = Corpus(tmp_path, apart)
    refused = two.train(tmp_path / "no", updates=1, status=1)
    assert "--joined-dictionary, or train with --share-embeddings decoder" in refused.last_line
    two.train(tmp_path / "yes", "--share-embeddings", "decoder", updates=1)


def test_hydra_train_composes_the_plugins_parts(corpus: Corpus, tmp_path: Path) -> None:
    parts = ["task=vaswani_translation", f"task.data={corpus.binary}", "model=vaswani_transformer", "optimizer=adam"]
    sizes = ["model.num_layers=2", "model.d_model=16", "model.d_ff=32", "model.num_heads=2"]
    rest = ["criterion=vaswani_label_smoothing", "lr_scheduler=vaswani_inverse_sqrt", "lr_scheduler.warmup_updates=100"]
    run_of = ["dataset.max_tokens=200", "dataset.num_workers=0", "optimization.max_update=3", "common.cpu=true"]
    logs = ["common.log_format=simple", "common.log_interval=1", "checkpoint.no_save=true"]
    adam = ["optimizer.adam_betas='(0.9,0.98)'", "optimizer.adam_eps=1e-9"]
    log = run(
        *("fairseq-hydra-train", f"common.user_dir={PLUGIN}", *parts, *sizes, *rest, *adam, *run_of, *logs),
        cwd=tmp_path,
    ).output
    assert logged(log, "lr") == pytest.approx([reference.learning_rate(n + 1, 16, 100) for n in range(1, 4)], rel=1e-4)
