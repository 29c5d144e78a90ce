"""Small runs of stock fairseq that the tests of the mended package share."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from conftest import Result, run, script_at_once

SIZES = (
    *("--arch", "transformer", "--share-all-embeddings", "--encoder-layers", 1, "--decoder-layers", 1),
    *("--encoder-embed-dim", 16, "--decoder-embed-dim", 16, "--encoder-ffn-embed-dim", 32),
    *("--decoder-ffn-embed-dim", 32, "--encoder-attention-heads", 2, "--decoder-attention-heads", 2),
)
COMMON = (
    *("--optimizer", "adam", "--lr", 0.005, "--max-tokens", 200, "--cpu", "--num-workers", 0, "--no-progress-bar"),
    *("--log-interval", 1),
)

PLUGIN = """
from dataclasses import dataclass

from fairseq.criterions import register_criterion
from fairseq.criterions.cross_entropy import CrossEntropyCriterion, CrossEntropyCriterionConfig
from fairseq.models import register_model
from fairseq.models.transformer import TransformerConfig, TransformerModelBase


@dataclass
class ToyConfig(TransformerConfig):
    pass


@register_model("toy_model", dataclass=ToyConfig)
class ToyModel(TransformerModelBase):
    pass


@register_criterion("toy_criterion", dataclass=CrossEntropyCriterionConfig)
class ToyCriterion(CrossEntropyCriterion):
    pass
"""


def bin_path(command: str) -> Path:
    """Where this environment has ``command``."""
    return Path(sys.executable).parent / command


def train(binary: Path, save: Path, *extra: Any, launcher: "tuple[Any, ...]" = (), **options: Any) -> Result:
    """fairseq-train of the tiny stock transformer on the toy corpus; ``launcher`` goes in front of the script."""
    command = (
        *launcher,
        script_at_once("fairseq-train") if launcher else "fairseq-train",
        binary,
        *SIZES,
        *COMMON,
        "--save-dir",
        save,
        *extra,
    )
    return run(*command, **options)


def stop_training(binary: Path, save: Path, *extra: Any, after: str, log: Path) -> int:
    """Start a training, send it SIGTERM once its log holds ``after``, and return its exit status (60 s at most)."""
    words = [bin_path("fairseq-train"), binary, *SIZES, *COMMON, "--save-dir", save, *extra]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in words],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        try:
            while after not in log.read_text(errors="replace") and process.poll() is None:
                time.sleep(0.02)
            process.send_signal(signal.SIGTERM)
            return process.wait(timeout=60)
        finally:
            process.kill()
