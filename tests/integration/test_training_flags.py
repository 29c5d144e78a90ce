"""What docs/logging.md and docs/mixed_precision.md say of fairseq's own flags, beyond their commands."""

import re
from pathlib import Path
from typing import Any

import in_process
import pytest
import torch
from conftest import Corpus


class Recorder:
    """What fairseq calls of the package wandb."""

    def __init__(self) -> None:
        self.started: list[dict[str, Any]] = []
        self.logged: list[tuple[dict[str, Any], int]] = []
        self.settings: dict[str, Any] = {}
        self.config = self

    def init(self, **arguments: Any) -> None:
        self.started.append(arguments)

    def update(self, settings: Any, **_: Any) -> None:
        self.settings.update(settings)

    def log(self, numbers: "dict[str, Any]", step: int) -> None:
        self.logged.append((numbers, step))


def test_wandb_receives_what_the_log_says(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairseq.logging import progress_bar

    recorder = Recorder()
    monkeypatch.setattr(progress_bar, "wandb", recorder)
    monkeypatch.delenv("WANDB_NAME", raising=False)
    flags = ("--wandb-project", "translation", "--max-update", 2, "--log-interval", 1)
    log = in_process.train(corpus.binary, tmp_path / "tracked", *flags).output
    assert {(each["project"], each["name"]) for each in recorder.started} == {("translation", "tracked")}
    assert recorder.settings["task"]["_name"] == "vaswani_translation"
    inner = {step: numbers["train_inner/loss"] for numbers, step in recorder.logged if "train_inner/loss" in numbers}
    shown = re.findall(r"epoch \d+: .* loss=([\d.]+), nll.* num_updates=(\d+),", log)
    assert {int(step): float(loss) for loss, step in shown} == pytest.approx(inner, abs=1e-3)
    assert sorted(inner) == [1, 2]


@pytest.mark.parametrize(
    ("flag", "rounded", "exact"),
    [
        ("--mixed-precision", None, True),
        ("--bf16", torch.bfloat16, False),
        ("--memory-efficient-bf16", torch.bfloat16, True),
        ("--memory-efficient-fp16", torch.float16, True),
    ],
)
def test_the_table_on_mixed_precision(corpus: Corpus, tmp_path: Path, flag: str, rounded: Any, exact: bool) -> None:
    """Four updates at once and in two starts: the weights that a checkpoint has, and whether a second start is seen."""
    few = ("--warmup-updates", 4, flag)
    in_process.train(corpus.binary, tmp_path / "straight", *few, "--max-update", 4)
    for updates in (2, 4):
        in_process.train(corpus.binary, tmp_path / "resumed", *few, "--max-update", updates)
    straight, resumed = (
        torch.load(tmp_path / name / "checkpoint_last.pt", weights_only=True) for name in ("straight", "resumed")
    )
    weights = straight["model"]
    assert all(torch.equal(weights[name], resumed["model"][name]) for name in weights) == exact
    embedding = weights["encoder.embedding.weight"]
    # float16 has more bits than bfloat16, and the range that these weights need.
    assert torch.equal(embedding, embedding.bfloat16().float()) == (rounded == torch.bfloat16)
    assert torch.equal(embedding, embedding.half().float()) == (rounded is not None)
    moments = straight["last_optimizer_state"]["state"][0]
    assert moments["exp_avg"].dtype == moments["exp_avg_sq"].dtype == torch.float32
