"""The folder of a finished run, made in seconds and in this process: text, vocabulary, dictionaries, checkpoints.

Sentences are translated word by word, so that a very small model learns it; its checkpoints are fairseq's.
"""

import json
import random
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.data.data_utils import collate_tokens
from fairseq.dataclass.configs import FairseqConfig
from omegaconf import OmegaConf

from vaswani_plugin.data.segmentation import Segmentation
from vaswani_plugin.data.vocabulary import make_vocabulary
from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer
from vaswani_plugin.tasks.vaswani_translation import VaswaniTranslationConfig, VaswaniTranslationTask

WORDS = {
    **{"the": "das", "small": "kleine", "house": "Haus", "stands": "steht", "in": "im", "garden": "Garten"},
    **{"a": "ein", "red": "rotes", "horse": "Pferd", "sees": "sieht", "every": "jedes", "old": "alte"},
    **{"child": "Kind", "now": "jetzt", "here": "hier", "often": "oft", "and": "und", "not": "nicht"},
}
SIZES: dict[str, Any] = {"num_layers": 2, "d_model": 32, "d_ff": 64, "num_heads": 4, "dropout": 0.0}


def sentences(count: int, seed: int) -> list[str]:
    choose = random.Random(seed)
    return [" ".join(choose.choices(list(WORDS), k=choose.randint(1, 9))) for _ in range(count)]


def translation(sentence: str) -> str:
    return " ".join(WORDS[word] for word in sentence.split())


def make_run(folder: Path, steps: int = 0, translate: Callable[[str], str] = translation, **config: Any) -> Path:
    """Makes joint.model, binary/ and checkpoints/checkpoint_last.pt in ``folder``, with ``steps`` of training."""
    source = sentences(600, seed=1)
    target = [translate(sentence) for sentence in source]
    for language, lines in (("en", source), ("de", target)):
        (folder / f"train.{language}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    make_vocabulary([folder / "train.en", folder / "train.de"], 385, folder / "joint")
    data = folder / "binary"
    data.mkdir()
    for language in ("en", "de"):
        (data / f"dict.{language}.txt").write_bytes((folder / "joint.dict.txt").read_bytes())
        (data / f"train.en-de.{language}.idx").touch()  # by which fairseq knows the languages

    task = VaswaniTranslationTask.setup_task(VaswaniTranslationConfig(data=str(data)))
    torch.manual_seed(1)
    sizes = {**SIZES, "max_source_positions": 256, "max_target_positions": 256, **config}
    model = VaswaniTransformer.build_model(sizes, task)
    segmentation = Segmentation(folder / "joint.model")
    pairs = [
        tuple(task.source_dictionary.encode_line(segmentation.encode(line)).long() for line in pair)
        for pair in zip(source, target)
    ]
    _train(model, pairs, task.source_dictionary, steps)
    (folder / "checkpoints").mkdir()
    _save(folder / "checkpoints" / "checkpoint_last.pt", model, data, sizes, steps)
    return folder


def _train(model: Any, pairs: list[Any], dictionary: Dictionary, steps: int) -> None:
    pad, eos = dictionary.pad(), dictionary.eos()
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: 6.0 * min((n + 1) / 60, 1 - n / (steps + 1)))
    choose = random.Random(0)
    for _ in range(steps):
        chosen = choose.sample(pairs, 32)
        source = collate_tokens([pair[0] for pair in chosen], pad, left_pad=True)
        target = collate_tokens([pair[1] for pair in chosen], pad)
        shifted = collate_tokens([pair[1] for pair in chosen], pad, eos, move_eos_to_beginning=True)
        logits, _ = model(source, None, shifted)
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), target.flatten(), ignore_index=pad, label_smoothing=0.1
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


def _save(path: Path, model: Any, data: Path, sizes: dict[str, Any], steps: int) -> None:
    config: Any = OmegaConf.to_container(OmegaConf.structured(FairseqConfig()), resolve=False)
    config["task"] = {**asdict(VaswaniTranslationConfig(data=str(data))), "_name": "vaswani_translation"}
    config["model"] = {**asdict(model.cfg), **sizes, "_name": "vaswani_transformer"}
    state = {
        "args": None,
        "cfg": json.loads(json.dumps(config, default=str)),  # without enumerations, as fairseq writes it
        "model": model.state_dict(),
        "criterion": None,
        "optimizer_history": [
            {"criterion_name": "c", "optimizer_name": "o", "num_updates": steps, "lr_scheduler_state": {}}
        ],
        "task_state": {},
        "extra_state": {"train_iterator": {"epoch": 1}},
        "last_optimizer_state": {"state": {0: {"exp_avg": torch.zeros(1000)}}},
    }
    torch.save(state, path)
