"""Cross entropy against label-smoothed targets (section 5.4)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq import metrics, utils
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import FairseqDataclass
from omegaconf import II
from torch import Tensor
from torch.nn import functional

from vaswani_plugin.criterions.projected_loss import projected_smoothed_cross_entropy
from vaswani_plugin.errors import UserError
from vaswani_plugin.modules.packing import Packing

_NO_TOKEN = -100
"""Stands in for the gold id where there is no token to predict."""


@dataclass
class LabelSmoothingConfig(FairseqDataclass):
    label_smoothing: float = field(
        default=0.1,
        metadata={"help": "epsilon_ls: the gold token gets 1 - epsilon, all others share epsilon equally"},
    )
    report_accuracy: bool = field(default=False, metadata={"help": "log the share of target tokens ranked first"})
    ignore_prefix_size: int = field(
        default=0, metadata={"help": "leave each target's first N tokens out of loss and means"}
    )
    sentence_avg: bool = II("optimization.sentence_avg")


def smoothed_cross_entropy(
    log_probabilities_BTV: Tensor, target_BT: Tensor, is_token_BT: Tensor, epsilon: float
) -> tuple[Tensor, Tensor]:
    """-sum_k q(k) log p(k) with q = 1 - epsilon at the gold token and epsilon / (V - 1) at every other id.

    V counts the whole dictionary, padding and other symbols included, as in the code released with the paper. An id
    that the model has ruled out (log-probability -inf) is none of a position's V: its share goes to the others. A
    gold token that is ruled out has an infinite loss.

    Args:
        log_probabilities_BTV: log-softmax outputs; those of half precision are summed in float32.
        target_BT: gold ids.
        is_token_BT: True at the positions to count, False at padding.

    Returns:
        The smoothed loss and the negative log-likelihood, each summed over the counted positions, in nats.
    """
    exact = torch.promote_types(log_probabilities_BTV.dtype, torch.float32)
    log_probabilities_NV = log_probabilities_BTV.flatten(0, 1).to(exact)
    # The very sum of torch's and fairseq's cross entropy, so that epsilon 0 gives their number to the last bit.
    gold_N = target_BT.masked_fill(~is_token_BT, _NO_TOKEN).flatten()
    nll = functional.nll_loss(log_probabilities_NV, gold_N, ignore_index=_NO_TOKEN, reduction="sum")
    if epsilon == 0.0:
        return nll, nll
    gold_nll_N = functional.nll_loss(log_probabilities_NV, gold_N, ignore_index=_NO_TOKEN, reduction="none")
    possible_NV = log_probabilities_NV.isneginf().logical_not_()
    share_N = epsilon / (possible_NV.sum(dim=1, dtype=exact) - 1.0).clamp_(min=1.0)
    all_ids_N = -log_probabilities_NV.where(possible_NV, 0.0).sum(dim=1)
    others_N = all_ids_N - gold_nll_N.masked_fill(gold_nll_N.isinf(), 0.0)
    loss_N = (1.0 - epsilon) * gold_nll_N + share_N * others_N
    return loss_N.masked_fill(~is_token_BT.flatten(), 0.0).sum(), nll


@register_criterion("vaswani_label_smoothing", dataclass=LabelSmoothingConfig)
class VaswaniLabelSmoothingCriterion(FairseqCriterion):
    """Sum over target tokens, for fairseq's trainer to divide by the number of tokens of the whole update.

    Raises:
        ValueError: epsilon outside [0, 1), a negative prefix.
    """

    def __init__(
        self,
        task: Any,
        sentence_avg: bool,
        label_smoothing: float,
        ignore_prefix_size: int = 0,
        report_accuracy: bool = False,
    ) -> None:
        super().__init__(task)
        if not 0.0 <= label_smoothing < 1.0:
            raise UserError(f"--label-smoothing {label_smoothing} must be at least 0 and below 1 (the paper: 0.1)")
        if ignore_prefix_size < 0:
            raise UserError(f"--ignore-prefix-size {ignore_prefix_size} must not be negative")
        self.sentence_avg = sentence_avg
        self.epsilon = label_smoothing
        self.ignore_prefix_size = ignore_prefix_size
        self.report_accuracy = report_accuracy

    def forward(self, model: Any, sample: Mapping[str, Any], reduce: bool = True) -> tuple[Tensor, int, dict[str, Any]]:
        """
        Returns:
            The loss in nats, summed; what to divide its gradient by (target tokens, or sentences with
            ``--sentence-avg``); and the sums for the log.
        """
        target_BT = sample["target"]
        is_token_BT = target_BT.ne(self.padding_idx)
        num_tokens, num_sentences = sample["ntokens"], target_BT.size(0)
        sample_size = num_sentences if self.sentence_avg else num_tokens
        if self.ignore_prefix_size > 0:
            # Counted token by token, so that it holds for targets padded on the left too.
            is_token_BT &= is_token_BT.cumsum(dim=1) > self.ignore_prefix_size
            num_tokens = int(is_token_BT.sum())
            sample_size = int(is_token_BT.any(dim=1).sum()) if self.sentence_avg else num_tokens
        loss, nll, correct = self._sums(model, sample, target_BT, is_token_BT)

        logging_output = {
            "loss": loss.detach(),
            "nll_loss": nll.detach(),
            "ntokens": num_tokens,
            "nsentences": num_sentences,
            "sample_size": sample_size,
        }
        if "src_lengths" in sample["net_input"]:
            logging_output["src_ntokens"] = sample["net_input"]["src_lengths"].sum()
        if self.report_accuracy:
            logging_output.update(n_correct=correct, total=num_tokens)
        return loss, sample_size, logging_output

    def _sums(
        self, model: Any, sample: Mapping[str, Any], target_BT: Tensor, is_token_BT: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Smoothed loss, negative log-likelihood and number of tokens ranked first."""
        matrix = getattr(model, "pre_softmax_matrix", None)
        if matrix is not None:
            features_BTD, _ = model(**sample["net_input"], features_only=True)
            packing = Packing.of(is_token_BT)
            if packing is not None:
                features_BTD = packing.pack(features_BTD)
                target_BT, is_token_BT = (
                    each.flatten()[packing.rows_N].unsqueeze(0) for each in (target_BT, is_token_BT)
                )
            return projected_smoothed_cross_entropy(
                features_BTD.flatten(0, 1),
                matrix,
                target_BT.flatten(),
                is_token_BT.flatten(),
                self.epsilon,
                self.report_accuracy,
            )
        # Stock models: any output layer that fairseq can turn into probabilities.
        net_output = model(**sample["net_input"])
        log_probabilities_BTV = model.get_normalized_probs(net_output, log_probs=True)
        loss, nll = smoothed_cross_entropy(log_probabilities_BTV, target_BT, is_token_BT, self.epsilon)
        return loss, nll, (log_probabilities_BTV.argmax(2).eq(target_BT) & is_token_BT).sum()

    @classmethod
    def reduce_metrics(cls, logging_outputs: Sequence[Mapping[str, Any]]) -> None:
        """Log loss and nll_loss in bits, as fairseq does, and ppl = 2^nll_loss, whatever epsilon is."""

        def total(key: str) -> Any:
            return sum(log.get(key, 0) for log in logging_outputs)

        num_tokens, sample_size = total("ntokens"), total("sample_size")
        metrics.log_scalar("loss", total("loss") / max(sample_size, 1) / math.log(2), sample_size, round=3)
        metrics.log_scalar("nll_loss", total("nll_loss") / max(num_tokens, 1) / math.log(2), num_tokens, round=3)
        metrics.log_derived("ppl", lambda meters: utils.get_perplexity(meters["nll_loss"].avg))
        if any("src_ntokens" in log for log in logging_outputs):
            # Beside the task's wpb, which counts target tokens: both are sums of one update, over devices and batches.
            metrics.log_scalar("src_wpb", utils.item(total("src_ntokens")), priority=181, round=1)
        if any("total" in log for log in logging_outputs):
            counted = utils.item(total("total"))
            metrics.log_scalar("accuracy", 100.0 * utils.item(total("n_correct")) / max(counted, 1), counted, round=3)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """All entries are sums, so fairseq may add them over workers before the logging."""
        return True
