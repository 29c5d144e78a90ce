"""The same made-up sentences for every peer."""

from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.data.language_pair_dataset import collate

from benchmarks.peers import Size


def batch(size: Size, dictionary: Dictionary, tokens: int, same_length: bool = False, seed: int = 1) -> dict[str, Any]:
    """Sentence pairs with about ``tokens`` target tokens, as fairseq's dataset collates them.

    Args:
        same_length: all of ``size.length``, as nearly in fairseq's batches of a corpus of millions of pairs; else up to
            a fifth longer or shorter, so that a fifth of the places are padding, as in those of a smaller one.
    """
    generator = torch.Generator().manual_seed(seed)

    def sentence() -> torch.Tensor:
        length = size.length
        if not same_length:
            length += int(torch.randint(-length // 5, length // 5 + 1, (), generator=generator))
        words = torch.randint(dictionary.nspecial, len(dictionary), (length,), generator=generator)
        return torch.cat([words, torch.tensor([dictionary.eos()])])

    pairs = [
        {"id": number, "source": sentence(), "target": sentence()}
        for number in range(round(tokens / (size.length + 1)))
    ]
    return collate(pairs, dictionary.pad(), dictionary.eos())
