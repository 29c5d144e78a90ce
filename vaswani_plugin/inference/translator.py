"""Raw text in, raw text out: fairseq's hub interface with the paper's search."""

from collections.abc import Iterator, Sequence
from typing import Any, Optional

import numpy as np
from fairseq import utils
from fairseq.data import LanguagePairDataset
from fairseq.hub_utils import GeneratorHubInterface
from torch import Tensor

from vaswani_plugin.errors import UserError

BATCH_TOKENS = 4096
"""Source tokens of a batch, padding included: enough to fill the products, and little memory beside the weights."""
BATCH_SENTENCES = 128
"""Rows of logits are 4 x as many, so that short sentences do not make them huge."""


class Translator(GeneratorHubInterface):
    """What ``VaswaniTransformer.from_pretrained`` returns; ``.cuda()``, ``.half()`` and the like work as on any module.

    ``models``, ``task``, ``cfg``, ``src_dict``, ``tgt_dict``, ``encode``, ``decode`` and ``generate`` are fairseq's.
    """

    def __init__(self, cfg: Any, task: Any, models: Sequence[Any]) -> None:
        # Before fairseq builds its own, which does not say what is wrong with the file.
        bpe = task.build_bpe(cfg.bpe)
        super().__init__(cfg, task, models)
        self.bpe = bpe
        self.eval()

    def translate(
        self, sentences: str | Sequence[str], beam: Optional[int] = None, verbose: bool = False, **search: Any
    ) -> Any:
        """Best translation of one sentence (str -> str) or of each of several (in their order).

        A blank sentence stays blank, and white space at the ends is no part of a sentence. Sentences of like length
        are translated together.

        Args:
            beam: hypotheses kept alive (the paper: 4).
            verbose: log sources, hypotheses and scores.
            search: other fields of fairseq's generation configuration, such as ``min_len`` or ``sampling``.

        Raises:
            ValueError: a sentence that cannot be translated, by its number; a setting that does not exist.
        """
        if isinstance(sentences, str):
            return self.translate([sentences], beam=beam, verbose=verbose, **search)[0]
        for name in search:
            if name not in self.cfg.generation:
                raise UserError(f"{name} is not a setting of fairseq's search; beam and min_len are, for example")
        encoded = [self.encode(sentence) for sentence in _checked(sentences)]
        for number, tokens in enumerate(encoded, 1):
            if reason := self.refusal(tokens):
                raise UserError(f"sentence {number} of {len(encoded)} {reason}")
        return self.decode_best(encoded, beam, verbose, **search)

    def decode_best(
        self, encoded: Sequence[Tensor], beam: Optional[int] = None, verbose: bool = False, **search: Any
    ) -> list[str]:
        """Text of the best hypothesis for each sentence of ids; "" for one without pieces."""
        filled = [row for row, tokens in enumerate(encoded) if len(tokens) > 1]
        texts = [""] * len(encoded)
        if filled:
            found = self.generate([encoded[row] for row in filled], beam, verbose, **search)
            for row, hypotheses in zip(filled, found):
                texts[row] = self.decode(hypotheses[0]["tokens"].cpu())
        return texts

    def refusal(self, tokens: Tensor) -> Optional[str]:
        """Why a sentence of ids cannot be translated, as the end of a sentence that begins with its name."""
        limit = int(self.max_positions[0])
        if len(tokens) > limit:
            return f"has {len(tokens):,} tokens with </s>, more than the model's {limit:,}: split it"
        if len(tokens) > 1 and bool(tokens[:-1].eq(self.src_dict.unk()).all()):
            return "has no piece that the model's dictionary knows: is it in the model's source language and script?"
        return None

    def encode(self, sentence: str) -> Tensor:
        """Text without the white space at its ends -> ids with </s>; a blank sentence has nothing but </s>."""
        return super().encode(sentence.strip())

    def generate(
        self,
        tokenized_sentences: Any,
        beam: Optional[int] = None,
        verbose: bool = False,
        skip_invalid_size_inputs: bool = False,
        **search: Any,
    ) -> Any:
        """fairseq's, with the paper's search: hypotheses, best first, for each sentence of ids."""
        beam = self.cfg.generation.beam if beam is None else beam
        return super().generate(tokenized_sentences, beam, verbose, skip_invalid_size_inputs, **search)

    def score(self, sentences: Any, targets: Any) -> Any:
        """The model's log-probabilities of given translations, one or several.

        Returns:
            For each pair "tokens", "positional_scores" (log p of each token, </s> too) and "score", their mean.
        """
        if isinstance(sentences, str):
            return self.score([sentences], [targets])[0]
        if len(sentences) != len(targets):
            raise UserError(f"{len(sentences)} sentences cannot be scored with {len(targets)} translations")
        pairs = [
            (self.encode(sentence), self.tgt_dict.encode_line(self.apply_bpe(target), add_if_not_exist=False).long())
            for sentence, target in zip(_checked(sentences), _checked(targets))
        ]
        scored: dict[int, Any] = {}
        settings = self.cfg.generation.copy()
        settings.score_reference = True
        generator = self.task.build_generator(self.models, settings)
        for rows in batches_by_length([max(len(source), len(target)) for source, target in pairs]):
            sources, references = zip(*(pairs[row] for row in rows))
            dataset = LanguagePairDataset(
                sources,
                np.array([len(source) for source in sources]),
                self.src_dict,
                references,
                np.array([len(reference) for reference in references]),
                self.tgt_dict,
                shuffle=False,
            )
            batch = dataset.collater([dataset[index] for index in range(len(rows))])
            batch = utils.move_to_cuda(batch) if self.device.type == "cuda" else batch
            hypotheses = self.task.inference_step(generator, self.models, batch)
            scored.update((rows[index], hypotheses[place][0]) for place, index in enumerate(batch["id"].tolist()))
        return [scored[row] for row in range(len(pairs))]

    def _build_batches(self, tokens: Sequence[Tensor], skip_invalid_size_inputs: bool) -> Iterator[dict[str, Any]]:
        lengths = np.array([len(sentence) for sentence in tokens])
        dataset = self.task.build_dataset_for_inference(tokens, lengths)
        for rows in batches_by_length(lengths.tolist()):
            if skip_invalid_size_inputs:
                rows = [row for row in rows if self.refusal(tokens[row]) is None]
            if rows:
                yield dataset.collater([dataset[row] for row in rows])


def _checked(sentences: Sequence[Any]) -> list[str]:
    """The sentences, if each of them is text that can be written in UTF-8."""
    checked = list(sentences)
    for number, sentence in enumerate(checked, 1):
        name = f"sentence {number} of {len(checked)}"
        if not isinstance(sentence, str):
            raise UserError(f"{name} is of the type {type(sentence).__name__}, not str: decode bytes first")
        try:
            sentence.encode("utf-8")
        except UnicodeEncodeError as error:
            raise UserError(
                f"{name} holds half of a surrogate pair (U+{ord(sentence[error.start]):04X} at position "
                f"{error.start + 1}), which is no character: decode its bytes as UTF-8"
            ) from None
    return checked


def batches_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Rows in batches of like length, longest first, each within BATCH_TOKENS with its padding (or one row alone)."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if batch and (len(batch) == BATCH_SENTENCES or (len(batch) + 1) * lengths[batch[0]] > BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
