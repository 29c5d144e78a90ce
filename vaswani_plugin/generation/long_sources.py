"""Lines that are too long to be translated: told by their number, and translated as if they were blank."""

import copy
import logging
from typing import Any

import numpy as np
import torch
from fairseq.data import LanguagePairDataset
from torch import Tensor

logger = logging.getLogger(__name__)


class _WithBlanks(torch.utils.data.Dataset):
    """Sentences of ids, with nothing but </s> in the place of some."""

    def __init__(self, sentences: Any, is_blank: np.ndarray, eos: int) -> None:
        self.sentences, self.is_blank, self.eos = sentences, is_blank, eos

    def __getitem__(self, index: int) -> Tensor:
        return torch.tensor([self.eos]) if self.is_blank[index] else self.sentences[index]

    def __len__(self) -> int:
        return len(self.sentences)


def blank_long_sources(dataset: LanguagePairDataset, limit: int, place: str, first_line: int) -> LanguagePairDataset:
    """The dataset with a blank source in the place of each that is longer than ``limit`` tokens, </s> included.

    Args:
        place: what the lines belong to, for the log.
        first_line: number of the first line there.
    """
    too_long = dataset.src_sizes > limit
    if not too_long.any():
        return dataset
    for index in too_long.nonzero()[0].tolist():
        logger.warning(
            f"line {first_line + index} of {place} has {dataset.src_sizes[index]:,} tokens with </s>, more than the "
            f"{limit:,} that the model takes: its translation is left empty; split it"
        )
    changed = copy.copy(dataset)
    changed.src = _WithBlanks(dataset.src, too_long, dataset.eos)
    changed.src_sizes = np.where(too_long, 1, dataset.src_sizes)
    changed.sizes = changed.src_sizes
    if dataset.tgt_sizes is not None:
        changed.sizes = np.vstack((changed.src_sizes, dataset.tgt_sizes)).T
    return changed
