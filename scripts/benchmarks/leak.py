#!/usr/bin/env python3
"""Resident memory of long runs of fairseq-train, fairseq-generate and fairseq-interactive with a small model.

Each runs as it is on a made-up corpus, with validations and checkpoints in between; what is read, from the outside, is
the memory that the process has when it has logged an update or printed a translation. After a warm-up it should stay
where it is: the growth is the slope of the straight line that fits it best.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

_ROWS = 30
_WARM_UP = 1 / 3
_MODEL = (
    *("--arch", "vaswani_tiny", "--criterion", "vaswani_label_smoothing", "--optimizer", "adam"),
    *("--adam-betas", "(0.9,0.98)", "--adam-eps", "1e-9", "--lr-scheduler", "vaswani_inverse_sqrt"),
    *("--num-layers", "1", "--d-model", "32", "--d-ff", "64", "--num-heads", "2"),
)
_PLUGIN = ("--user-dir", str(Path(__file__).parents[2] / "vaswani_plugin"), "--task", "vaswani_translation", "--cpu")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=3_000, metavar="N", help="of the training (default: 3000)")
    parser.add_argument("--sentences", type=int, default=3_000, metavar="N", help="to translate (default: 3000)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vaswani-leak-") as name:
        folder = Path(name)
        binary = make_corpus(folder, options.sentences)
        save = folder / "checkpoints"
        checkpoint = ("--path", str(save / "checkpoint_last.pt"))
        training = (*_PLUGIN, *_MODEL, "--max-tokens", "300", "--max-update", str(options.updates))
        saving = ("--save-dir", str(save), "--save-interval-updates", "100", "--keep-interval-updates", "2")
        logging = ("--no-epoch-checkpoints", "--log-format", "simple", "--log-interval", "1")
        report("fairseq-train", "updates", options.updates, _updates, (str(binary), *training, *saving, *logging))
        # of ten tokens, whatever so small a model has learned
        length = ("--min-len", "10", "--max-len-a", "0", "--max-len-b", "10")
        translation = (str(binary), *_PLUGIN, *checkpoint, *length, "--no-progress-bar")
        batches = (*translation, "--max-tokens", "1000")
        report("fairseq-generate", "sentences", options.sentences, _sentences, batches)
        lines = (*translation, "--input", str(folder / "test.en"))
        report("fairseq-interactive", "sentences", options.sentences, _sentences, lines)
    return 0


def make_corpus(folder: Path, sentences: int) -> Path:
    """Sentences of 1 to 20 words, translated into their reversal; binarised."""
    made_up = random.Random(1)
    for name, count in (("train", 2_000), ("valid", 100), ("test", sentences)):
        with open(folder / f"{name}.en", "w") as source, open(folder / f"{name}.de", "w") as target:
            for _ in range(count):
                words = [f"w{made_up.randrange(500)}" for _ in range(made_up.randint(1, 20))]
                source.write(" ".join(words) + "\n")
                target.write(" ".join(reversed(words)) + "\n")
    prefixes = [word for name in ("train", "valid", "test") for word in (f"--{name}pref", str(folder / name))]
    command = ["fairseq-preprocess", "-s", "en", "-t", "de", "--joined-dictionary", "--destdir", str(folder / "binary")]
    done = subprocess.run([*command, *prefixes], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stdout)
    return folder / "binary"


def _updates(line: str) -> bool:
    return "| train_inner |" in line


def _sentences(line: str) -> bool:
    return line.startswith("D-")


def report(command: str, unit: str, count: int, is_one: Callable[[str], bool], arguments: Sequence[str]) -> None:
    """Run the command, and print a table of its memory and the growth after the warm-up."""
    samples = watch([command, *arguments], is_one)
    if len(samples) != count:
        raise SystemExit(f"leak: {command} made {len(samples)} {unit} instead of {count}")
    print(f"{command}: {unit} made, megabytes resident")
    for number in range(0, count, max(1, count // _ROWS)):
        print(f"{number + 1:7,} {samples[number]:9.1f}")
    warm = int(count * _WARM_UP)
    growth = 1_000 * slope(samples[warm:])
    print(f"{command}: {growth:+.2f} megabytes for 1,000 {unit}, from the {warm + 1:,}th of {count:,} on", flush=True)


def watch(command: Sequence[str], is_one: Callable[[str], bool]) -> list[float]:
    """The process's resident megabytes when it had just printed each of the lines that count."""
    samples: list[float] = []
    line = ""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}  # each line comes when it is printed
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if is_one(line):
                # after its last line the process may have none any more
                samples.append(resident_megabytes(process.pid) or samples[-1])
    if process.returncode != 0:
        raise SystemExit(f"leak: {command[0]} ended with status {process.returncode}: {line.strip()}")
    return samples


def resident_megabytes(pid: int) -> float:
    with open(f"/proc/{pid}/status") as status:
        return next((int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS")), 0.0)


def slope(values: Sequence[float]) -> float:
    """Of the straight line with the least squared distance from ``values``, which stand one apart."""
    middle = (len(values) - 1) / 2
    mean = sum(values) / len(values)
    above = sum((x - middle) * (y - mean) for x, y in enumerate(values))
    return above / sum((x - middle) ** 2 for x in range(len(values)))


if __name__ == "__main__":
    sys.exit(main())
