"""One or more models that decode together, step by step, over the hypotheses of a beam."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from vaswani_plugin.generation.model_steps import FairseqSteps, ModelSteps, VaswaniSteps
from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer


class EnsembleDecoder:
    """Probabilities averaged over the models.

    Args:
        net_input: a batch's source, as fairseq's datasets collate it.
        beam: K, hypotheses per sentence.
    """

    def __init__(self, models: Sequence[Any], net_input: Mapping[str, Tensor], beam: int) -> None:
        self.each: list[ModelSteps] = [
            (VaswaniSteps if isinstance(model, VaswaniTransformer) else FairseqSteps)(model, net_input, beam)
            for model in models
        ]

    def step(self, tokens: Tensor) -> Tensor:
        """Hypotheses (R, K, n), one token longer than at the step before -> logits (R K, V) in float32.

        Their softmax is the distribution of the next token.
        """
        each = [steps.step(tokens) for steps in self.each]
        if len(each) == 1:
            return each[0]
        log_p = torch.stack([logits.log_softmax(dim=-1) for logits in each])
        return torch.logsumexp(log_p, dim=0) - math.log(len(each))

    def reorder(self, sentences: Tensor, origins: Tensor) -> None:
        """Hypothesis k of sentence r continues hypothesis ``origins[r, k]`` of the former sentence ``sentences[r]``.

        Args:
            sentences: (R'), the first R' places, with the holes among them filled from behind.
            origins: (R', K)
        """
        for steps in self.each:
            steps.reorder(sentences, origins)
