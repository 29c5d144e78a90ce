"""Models that answer with given logits or features, and a criterion and batches for them."""

from typing import Any

import torch
from fairseq import metrics
from toy_task import ToyTask, dictionary

from vaswani_plugin.criterions.label_smoothing import VaswaniLabelSmoothingCriterion

PAD = 1


class FixedLogits:
    """A model that answers every batch with the same logits."""

    def __init__(self, logits: torch.Tensor) -> None:
        self.logits = logits

    def __call__(self, **_: Any) -> Any:
        return (self.logits, None)

    def get_normalized_probs(self, net_output: Any, log_probs: bool) -> torch.Tensor:
        assert log_probs
        return torch.log_softmax(net_output[0], dim=-1)

    def get_targets(self, sample: Any, net_output: Any) -> torch.Tensor:
        return sample["target"]


def criterion(epsilon: float = 0.1, **options: Any) -> VaswaniLabelSmoothingCriterion:
    settings = {"sentence_avg": False, "label_smoothing": epsilon, **options}
    return VaswaniLabelSmoothingCriterion(ToyTask(dictionary(9)), **settings)


def batch(target: "list[list[int]]") -> dict[str, Any]:
    tokens = torch.tensor(target)
    return {"net_input": {}, "target": tokens, "ntokens": int(tokens.ne(PAD).sum())}


def example(dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, dict[str, Any]]:
    logits = torch.randn(2, 4, 9, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return logits.to(dtype), batch([[5, 6, 2, PAD], [4, 2, PAD, PAD]])


def logged(outputs: "list[dict[str, Any]]") -> dict[str, float]:
    with metrics.aggregate(new_root=True) as meters:
        VaswaniLabelSmoothingCriterion.reduce_metrics(outputs)
    return meters.get_smoothed_values()


class FixedFeatures:
    """A model whose logits are fixed features times its pre-softmax matrix, as ours has one."""

    def __init__(self, features: torch.Tensor, matrix: torch.Tensor) -> None:
        self.features, self.pre_softmax_matrix = features, matrix

    def __call__(self, features_only: bool, **_: Any) -> Any:
        assert features_only
        return (self.features, None)
