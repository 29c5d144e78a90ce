"""Translation with the paper's search as its default."""

import json
import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np
import torch
from fairseq.data import LanguagePairDataset
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import DictConfig, OmegaConf

from vaswani_plugin.allocator import keep_freed_memory
from vaswani_plugin.data.segmentation import Segmentation
from vaswani_plugin.errors import UserError
from vaswani_plugin.generation.beam_search import BeamSearch, SearchSettings
from vaswani_plugin.generation.fairseq_search import (
    PaperScoredSearch,
    PaperScoredSearchWithAlignment,
    flags_of_fairseqs_search,
)
from vaswani_plugin.generation.int8_weights import use_int8_weights
from vaswani_plugin.generation.long_sources import blank_long_sources
from vaswani_plugin.generation.search_flags import check_search_flags
from vaswani_plugin.models.sequence_encoder import UNLIMITED_LENGTH
from vaswani_plugin.provenance import provenance

logger = logging.getLogger(__name__)

PAPER_SEARCH: Mapping[str, Any] = {"beam": 4, "max_len_a": 1, "max_len_b": 50, "min_len": 0}
"""Section 6.1: beam 4, output at most as long as the input + 50; there is no shortest output."""


@dataclass
class VaswaniTranslationConfig(TranslationConfig):
    max_source_positions: int = field(
        default=256,
        metadata={"help": "training leaves out pairs with a longer source (with </s>); rows of learned positions"},
    )
    max_target_positions: int = field(
        default=256,
        metadata={"help": "training leaves out pairs with a longer target (with </s>); rows of learned positions"},
    )
    length_penalty_alpha: float = field(
        default=0.6, metadata={"help": "alpha of the length penalty ((5 + n) / 6)^alpha; larger means longer output"}
    )
    mixed_precision: bool = field(
        default=False, metadata={"help": "matrix products in bfloat16, weights and sums in float32 (torch.autocast)"}
    )
    int8: bool = field(
        default=False, metadata={"help": "translate with 8-bit integer products, on a CPU; not for training"}
    )


@register_task("vaswani_translation", dataclass=VaswaniTranslationConfig)
class VaswaniTranslationTask(TranslationTask):
    """fairseq's translation task with the paper's values in place of fairseq's."""

    cfg: VaswaniTranslationConfig
    # That of a training until its first epoch begins.
    _whole_configuration: Optional[DictConfig] = None
    # A task that builds no criterion translates.
    _computes_losses = False
    # By fairseq-interactive, which hands over one buffer of lines after the other.
    _lines_translated = 0

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        super().add_args(parser)
        # fairseq-generate and -interactive read these flags after the task's; an explicit flag still wins.
        parser.set_defaults(**PAPER_SEARCH)

    def max_positions(self) -> tuple[int, int]:
        """Any length is translated and validated; training's own limit is in :meth:`filter_indices_by_size`."""
        return UNLIMITED_LENGTH, UNLIMITED_LENGTH

    def filter_indices_by_size(
        self, indices: np.ndarray, dataset: Any, max_positions: Any = None, ignore_invalid_inputs: bool = False
    ) -> np.ndarray:
        """Leave out training pairs longer than ``--max-source-positions`` or ``--max-target-positions``."""
        if dataset is self.datasets.get(self.cfg.train_subset) and ignore_invalid_inputs:
            before = len(indices)
            limits = (self.cfg.max_source_positions, self.cfg.max_target_positions)
            indices, _ = dataset.filter_indices_by_size(indices, limits)
            logger.info(
                f"{before - len(indices):,} of {before:,} training pairs left out: more than "
                f"--max-source-positions {limits[0]} or --max-target-positions {limits[1]} tokens"
            )
        return super().filter_indices_by_size(indices, dataset, max_positions, ignore_invalid_inputs)

    def get_batch_iterator(
        self,
        dataset: Any,
        max_tokens: Optional[int] = None,
        max_sentences: Optional[int] = None,
        max_positions: Any = None,
        ignore_invalid_inputs: bool = False,
        **settings: Any,
    ) -> Any:
        """fairseq's, with a batch of its own for a sentence longer than ``max_tokens``, and every line translated.

        In generation a source longer than the model takes becomes blank instead of ending the run.
        """
        is_training = dataset is self.datasets.get(self.cfg.train_subset) and ignore_invalid_inputs
        pairs = isinstance(dataset, LanguagePairDataset)
        if pairs and not self._computes_losses and not ignore_invalid_inputs and max_positions is not None:
            dataset = self._blank_long_sources(dataset, max_positions)
            max_positions = None
        if pairs and not is_training and max_tokens is not None and len(dataset) > 0:
            max_tokens = max(max_tokens, int(dataset.sizes.max()))
        return super().get_batch_iterator(
            dataset, max_tokens, max_sentences, max_positions, ignore_invalid_inputs, **settings
        )

    def _blank_long_sources(self, dataset: LanguagePairDataset, max_positions: Any) -> LanguagePairDataset:
        limit = max_positions if isinstance(max_positions, int | float) else max_positions[0]
        for split, loaded in self.datasets.items():
            if loaded is dataset:
                return blank_long_sources(dataset, int(limit), split, 1)
        self._lines_translated += len(dataset)
        return blank_long_sources(dataset, int(limit), "the input", self._lines_translated - len(dataset) + 1)

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """fairseq's; a model that is built to be trained also writes into the log where it comes from."""
        if not from_checkpoint:
            logger.info(provenance())
        if self.cfg.eval_bleu:
            for name in ("eval_bleu_args", "eval_bleu_detok_args"):
                _check_json(name, getattr(self.cfg, name) or "{}")
        return super().build_model(cfg, from_checkpoint)

    def build_generator(
        self,
        models: list[Any],
        args: Any,
        seq_gen_cls: Optional[type] = None,
        extra_gen_cls_kwargs: Optional[dict[str, Any]] = None,
        **kwargs: Any,
    ) -> Any:
        """The paper's beam search; fairseq's own, under the paper's score, for what the paper's does not do.

        With ``--int8`` the models' weights become 8-bit integers here, whichever search it is.

        Raises:
            ValueError: ``--lenpen`` or ``--unnormalized``, which belong to fairseq's own score; a flag without a
                meaning; models that ``--int8`` is not for.
        """
        if isinstance(args, Namespace):  # --eval-bleu-args: a flag that is not there means the paper's value
            args = Namespace(**{**PAPER_SEARCH, **vars(args)})
        if getattr(args, "lenpen", 1) != 1:
            raise UserError(
                f"--lenpen {args.lenpen} is the exponent of fairseq's length penalty, which --task "
                "vaswani_translation does not use: give --length-penalty-alpha (the paper: 0.6)"
            )
        if getattr(args, "unnormalized", False):
            raise UserError(
                "--unnormalized has no effect under --task vaswani_translation: give --length-penalty-alpha 0"
            )
        if self.cfg.int8:
            use_int8_weights(models, self.cfg.mixed_precision)
        if seq_gen_cls is not None or getattr(args, "score_reference", False):
            return super().build_generator(models, args, seq_gen_cls, extra_gen_cls_kwargs, **kwargs)
        check_search_flags(args, len(self.target_dictionary))
        settings = SearchSettings(
            beam=args.beam,
            alpha=self.cfg.length_penalty_alpha,
            max_len_a=args.max_len_a,
            max_len_b=args.max_len_b,
            min_len=args.min_len,
            nbest=getattr(args, "nbest", 1),
        )
        alignment = getattr(args, "print_alignment", None)
        other = flags_of_fairseqs_search(args, {**(extra_gen_cls_kwargs or {}), **kwargs})
        if not other:
            return BeamSearch(models, self.target_dictionary, settings, alignment)
        logger.info(
            f"{', '.join(other)}: fairseq's search is used; its scores are log p / ((5 + n) / 6)^{settings.alpha}, and "
            f"its outputs have at most {settings.max_len_a} x + {settings.max_len_b} tokens, x being the longest "
            "source of the batch"
        )
        extra = {**(extra_gen_cls_kwargs or {}), "alpha": settings.alpha}
        search: type = PaperScoredSearch
        if alignment is not None:
            search = PaperScoredSearchWithAlignment
            extra["print_alignment"] = alignment
        return super().build_generator(models, args, search, extra, **kwargs)

    def build_bpe(self, args: Any) -> Any:
        """fairseq's --bpe, with SentencePiece's own decoding: fairseq's leaves byte pieces (<0x35>) as they are."""
        if getattr(args, "_name", None) == "sentencepiece":
            if OmegaConf.is_config(args) and OmegaConf.is_missing(args, "sentencepiece_model"):
                raise UserError("--bpe sentencepiece needs --sentencepiece-model, the .model of `vaswani vocabulary`")
            return Segmentation(args.sentencepiece_model)
        return super().build_bpe(args)

    def build_criterion(self, cfg: Any) -> Any:
        if self.cfg.int8:
            raise UserError("--int8 is for translating: leave it out of fairseq-train and fairseq-validate")
        # fairseq hands over one part of the configuration; the others, which the task sees nowhere, are beside it.
        self._computes_losses = True
        self._whole_configuration = cfg._get_parent() if OmegaConf.is_config(cfg) else None
        return super().build_criterion(cfg)

    def begin_epoch(self, epoch: int, model: Any) -> None:
        super().begin_epoch(epoch, model)
        if self._whole_configuration is not None:
            from vaswani_plugin.audit.comparison import log_differences  # which knows this task

            log_differences(self._whole_configuration)
            self._whole_configuration = None

    def train_step(
        self, sample: Any, model: Any, criterion: Any, optimizer: Any, update_num: int, ignore_grad: bool = False
    ) -> Any:
        in_precision = self._in_precision(criterion, sample)
        return super().train_step(sample, model, in_precision, optimizer, update_num, ignore_grad)

    def valid_step(self, sample: Any, model: Any, criterion: Any) -> Any:
        return super().valid_step(sample, model, self._in_precision(criterion, sample))

    def inference_step(
        self, generator: Any, models: Any, sample: Any, prefix_tokens: Any = None, constraints: Any = None
    ) -> Any:
        with self._precision(sample):
            return super().inference_step(generator, models, sample, prefix_tokens, constraints)

    def _in_precision(self, criterion: Any, sample: Any) -> Callable[..., Any]:
        """The criterion under autocast; the backward pass outside of it follows each product's own precision."""

        def forward(model: Any, batch: Any) -> Any:
            with self._precision(sample):
                return criterion(model, batch)

        return forward

    def _precision(self, sample: Any) -> AbstractContextManager[Any]:
        device = sample["net_input"]["src_tokens"].device.type
        if device == "cpu":
            keep_freed_memory()
        return torch.autocast(device, dtype=torch.bfloat16, enabled=self.cfg.mixed_precision)


def _check_json(name: str, text: str) -> None:
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise UserError(f"--{name.replace('_', '-')} {text!r} is not a JSON object such as '{{\"beam\": 4}}'")
