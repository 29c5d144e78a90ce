"""NaN and infinity on one of two workers: both end, one of them says why, and the checkpoint before it stays."""

from pathlib import Path

import pytest
from conftest import Corpus, run
from spoilt_training import ADVICE, updates_in
from worker_processes import TRAINING, start

SAVING = ("--save-interval-updates", 1, "--max-tokens", 100, "--max-update", 6)

SPOILT_CRITERION = """\
import os

import vaswani_plugin
from fairseq.criterions import register_criterion
from fairseq.distributed.utils import get_global_rank
from vaswani_plugin.criterions.label_smoothing import LabelSmoothingConfig, VaswaniLabelSmoothingCriterion


@register_criterion("spoilt", dataclass=LabelSmoothingConfig)
class Spoilt(VaswaniLabelSmoothingCriterion):
    batches = 0

    def forward(self, model, sample, reduce=True):
        loss, size, log = super().forward(model, sample, reduce)
        self.batches += model.training
        if self.batches == 3 and model.training == ("training" in os.environ["SPOILT"]) and get_global_rank() == 1:
            loss = loss * float("nan")
            log["loss"] = loss.detach()
        return loss, size, log
"""


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> "tuple[object, ...]":
    """Flags of a criterion of which the second worker's third batch has a loss of NaN."""
    folder = tmp_path_factory.mktemp("plugin") / "spoilt_plugin"
    folder.mkdir()
    (folder / "__init__.py").write_text(SPOILT_CRITERION)
    return ("--user-dir", folder, "--criterion", "spoilt")


@pytest.mark.parametrize("backend", ["c10d", "legacy_ddp"])
@pytest.mark.parametrize("where", ["training", "validation"])
def test_on_one_of_two(corpus: Corpus, spoilt: "tuple[object, ...]", tmp_path: Path, backend: str, where: str) -> None:
    save = tmp_path / "save"
    told = ({"SPOILT": where},) * 2
    workers = start(corpus.binary, save, *SAVING, *spoilt, "--ddp-backend", backend, environments=told)
    assert workers.statuses() == [1, 1]
    found = {
        "training": "update 3: the loss is NaN",
        "validation": "after update 3 the loss of valid is NaN though all weights are finite",
    }
    sentence = f"fairseq-train: error: {found[where]}{ADVICE}; {save / 'checkpoint_last.pt'} is from before\n"
    assert workers.log(0).endswith(sentence)
    assert "error" not in workers.log(1)
    assert "Traceback" not in workers.log(0) + workers.log(1)
    assert updates_in(save / "checkpoint_last.pt") == 2
    assert not (save / "crash.pt").exists()


def test_workers_that_fairseq_starts(corpus: Corpus, spoilt: "tuple[object, ...]", tmp_path: Path) -> None:
    flags = (*TRAINING, "--save-dir", tmp_path, *SAVING, *spoilt, "--distributed-world-size", 2)
    done = run("fairseq-train", corpus.binary, *flags, status=1, SPOILT="training")
    assert done.output.count("error: ") == 1
    assert "Traceback" not in done.output
    last = tmp_path / "checkpoint_last.pt"
    # torch tells below it whom it ends
    assert f"\nfairseq-train: error: update 3: the loss is NaN{ADVICE}; {last} is from before\n" in done.output
    assert updates_in(last) == 2
