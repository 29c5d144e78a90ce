"""A small model trained in seconds by the plugin's own loss, and its translations of sentences it has not seen."""

import copy
import functools
import random
from typing import Any

import sacrebleu
import torch
from fairseq.data.language_pair_dataset import collate
from fixed_models import criterion
from toy_task import ToyTask, dictionary

from vaswani_plugin.generation.beam_search import BeamSearch, SearchSettings
from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer

PAD, EOS = 1, 2
WORDS = dictionary(24)
Output = tuple[float, tuple[int, ...]]
"""Score and tokens."""
_SIZES = {"num_layers": 2, "d_model": 32, "d_ff": 32, "num_heads": 4, "dropout": 0.0}


def sentence(choose: random.Random, longest: int) -> "list[int]":
    return [*(choose.randrange(4, len(WORDS)) for _ in range(choose.randint(1, longest))), EOS]


def translation(source: "list[int]") -> "list[int]":
    """Each word by another."""
    return [*(4 + (token * 7) % 20 for token in source[:-1]), EOS]


def batch(sources: "list[list[int]]") -> dict[str, Any]:
    """As fairseq's dataset collates them; ``id`` says in which order."""
    pairs = [
        {"id": number, "source": torch.tensor(source), "target": torch.tensor(translation(source))}
        for number, source in enumerate(sources)
    ]
    return collate(pairs, PAD, EOS, left_pad_source=True)


def trained_model() -> VaswaniTransformer:
    """In float32 and evaluation mode. It knows sentences of up to eight words well, and longer ones less."""
    return copy.deepcopy(_train(200))


@functools.cache
def _train(updates: int) -> VaswaniTransformer:
    torch.manual_seed(1)
    sizes = {**_SIZES, "max_source_positions": 256, "max_target_positions": 256}
    model = VaswaniTransformer.build_model(sizes, ToyTask(WORDS)).train()
    loss_function = criterion(0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: 1.5e-2 * min((n + 1) / 60, 1 - n / (updates + 1)))
    choose = random.Random(0)
    for _ in range(updates):
        loss, size, _ = loss_function(model, batch([sentence(choose, 8) for _ in range(32)]))
        optimizer.zero_grad()
        (loss / size).backward()
        optimizer.step()
        schedule.step()
    return model.eval()


def sources(count: int, longest: int, seed: int = 7) -> "list[list[int]]":
    choose = random.Random(seed)
    return [sentence(choose, longest) for _ in range(count)]


def found(model: Any, chosen: "list[list[int]]", **settings: Any) -> "list[list[Output]]":
    """Finished hypotheses of each sentence, in the order of ``chosen``."""
    sample = batch(chosen)
    outputs = BeamSearch([model], WORDS, SearchSettings(**settings)).generate([model], sample)
    in_order = sorted(zip(sample["id"].tolist(), outputs))
    return [[(float(h["score"]), tuple(h["tokens"].tolist())) for h in hypotheses] for _, hypotheses in in_order]


def bleu(chosen: "list[list[int]]", outputs: "list[list[Output]]") -> float:
    """Of the best outputs, between 0 and 100."""
    texts = [" ".join(map(str, best[0][1])) for best in outputs]
    references = [" ".join(map(str, translation(source))) for source in chosen]
    return sacrebleu.corpus_bleu(texts, [references], tokenize="none", force=True).score
