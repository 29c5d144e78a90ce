"""Plans a training's batches: which devices there are, and what they must take for an update of the paper's size.

Usage: python plan.py BINARY --languages S T [--nodes N] [--started N] [--update-tokens N] [--most-tokens N] ...

The paper's update sees about 25,000 source and 25,000 target tokens (section 5.1). fairseq's --max-tokens counts a
batch as sentences times the longest side, so how many tokens are in it depends on the text: the batches are laid out
here as fairseq lays them out. Prints the devices of this machine, the GPUs of it, and fairseq-train's arguments, one a
line; what was found goes to standard error.
"""

import argparse
import json
import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from fairseq.data import data_utils
from fairseq.data.indexed_dataset import MMapIndexedDataset

LONGEST = 256  # --max-source-positions and --max-target-positions of the task
SENTENCES_MULTIPLE = 8  # --required-batch-size-multiple
# 4,096 tokens with padding fitted the 16 GB of the GPUs that the released code was written for.
TOKENS_PER_16_GB = 4096
SAMPLE = 1_000_000


@dataclass
class Devices:
    """``local`` workers on this machine, ``workers`` in all; ``gpus`` of this machine, 0 if it trains on its CPU."""

    local: int
    workers: int
    gpus: int
    name: str
    memory: int
    half: str

    @classmethod
    def found(cls, nodes: int, started: int) -> "Devices":
        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
        local = max(gpus, 1)
        workers = started or nodes * local
        if not gpus:
            return cls(local, workers, 0, "CPU", 0, "float32")
        properties = torch.cuda.get_device_properties(0)
        # Tensor cores know bfloat16 from 8.0 on, float16 from 7.0 on.
        half = "bfloat16" if properties.major >= 8 else "float16" if properties.major == 7 else "float32"
        return cls(local, workers, gpus, properties.name, properties.total_memory, half)

    @property
    def most_tokens(self) -> int:
        return int(TOKENS_PER_16_GB * max(1.0, self.memory / 17.2e9))


@dataclass
class Update:
    """Means over all updates of an epoch."""

    max_tokens: int
    update_freq: int
    source_tokens: float
    target_tokens: float
    pairs: float
    padded_tokens: float


class Text:
    """Lengths, </s> included, of the pairs that training keeps."""

    def __init__(self, source: np.ndarray, target: np.ndarray) -> None:
        kept = (source <= LONGEST) & (target <= LONGEST)
        self.pairs = int(kept.sum())
        chosen = np.flatnonzero(kept)
        draw = np.random.default_rng(0)
        chosen = draw.permutation(chosen)[:SAMPLE]
        # fairseq's order: by target, then by source length, ties as shuffled.
        chosen = chosen[np.argsort(target[chosen], kind="stable")]
        chosen = chosen[np.argsort(source[chosen], kind="stable")]
        self.source, self.target = source[chosen].astype(np.int64), target[chosen].astype(np.int64)
        self.longer = np.maximum(self.source, self.target)

    def update(self, max_tokens: int, update_freq: int, workers: int) -> Update:
        indices = np.arange(len(self.longer), dtype=np.int64)
        batches = data_utils.batch_by_size(
            indices,
            lambda index: int(self.longer[index]),
            num_tokens_vec=self.longer,
            max_tokens=max_tokens,
            required_batch_size_multiple=SENTENCES_MULTIPLE,
        )
        # The last update of an epoch of few batches has what is left.
        share = min(workers * update_freq, len(batches)) / len(batches)
        padded = sum(len(batch) * int(self.longer[batch].max()) for batch in batches)
        return Update(
            max_tokens,
            update_freq,
            share * float(self.source.sum()),
            share * float(self.target.sum()),
            share * len(indices),
            share * padded,
        )


def plan(text: Text, workers: int, most_tokens: int, wanted: int) -> Update:
    """The fewest accumulated batches whose tokens make an update of ``wanted`` ones, the mean of both languages."""

    def tokens(max_tokens: int, update_freq: int) -> float:
        update = text.update(max_tokens, update_freq, workers)
        return (update.source_tokens + update.target_tokens) / 2

    most_tokens = max(most_tokens, int(text.longer.max()))
    update_freq = math.ceil(wanted / tokens(most_tokens, 1))
    low, high = int(text.longer.max()), most_tokens
    while low < high:
        middle = (low + high) // 2
        if tokens(middle, update_freq) < wanted:
            low = middle + 1
        else:
            high = middle
    return text.update(low, update_freq, workers)


def read_lengths(binary: Path, source: str, target: str) -> tuple[np.ndarray, np.ndarray]:
    def of(language: str) -> np.ndarray:
        dataset = MMapIndexedDataset(str(binary / f"train.{source}-{target}.{language}"))
        return np.array(dataset.sizes)  # a copy: the memory goes with the dataset

    return of(source), of(target)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", type=Path)
    parser.add_argument("--languages", nargs=2, required=True)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--started", type=int, default=0)
    parser.add_argument("--update-tokens", type=int, default=25_000)
    parser.add_argument("--most-tokens", type=int, default=0)
    parser.add_argument("--precision", choices=("auto", "bfloat16", "float16", "float32"), default="auto")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()

    devices = Devices.found(options.nodes, options.started)
    text = Text(*read_lengths(options.binary, *options.languages))
    if not text.pairs:
        sys.exit(f"wmt14: {options.binary} has no training pairs of at most {LONGEST} tokens a side")
    update = plan(text, devices.workers, options.most_tokens or devices.most_tokens, options.update_tokens)
    precision = devices.half if options.precision == "auto" else options.precision
    # float32 weights and sums with products in bfloat16 need no scaling of the loss; float16 does, which fairseq has.
    flags = {"bfloat16": ["--mixed-precision"], "float16": ["--fp16"], "float32": []}[precision]
    print(
        f"  {devices.workers} x {devices.name}, {precision}: --max-tokens {update.max_tokens} --update-freq "
        f"{update.update_freq}\n  an update sees {update.source_tokens:,.0f} source and {update.target_tokens:,.0f} "
        f"target tokens in {update.pairs:,.0f} pairs, on average ({update.padded_tokens:,.0f} with padding)",
        file=sys.stderr,
    )
    if text.pairs == update.pairs:
        print(f"  which is all {text.pairs:,} pairs of the text: it is too small for larger updates", file=sys.stderr)
    record = {"devices": asdict(devices), "precision": precision, "update": asdict(update)}
    if options.record:
        options.record.write_text(json.dumps(record, indent=2) + "\n", "utf-8")
    arguments = ["--max-tokens", update.max_tokens, "--update-freq", update.update_freq, *flags]
    if not options.started:
        arguments += ["--distributed-world-size", devices.workers]
    print(devices.local, devices.gpus, *arguments, sep="\n")


if __name__ == "__main__":
    main()
