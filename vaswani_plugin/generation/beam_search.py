"""The paper's beam search (section 6.1), with the rules that the paper leaves open from the code released with it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

import torch
from fairseq.data import Dictionary
from torch import Tensor

from vaswani_plugin.errors import UserError
from vaswani_plugin.generation.alignment import align
from vaswani_plugin.generation.candidates import likeliest
from vaswani_plugin.generation.ensemble import EnsembleDecoder
from vaswani_plugin.generation.length_penalty import length_penalty

Hypothesis = dict[str, Any]


@dataclass(frozen=True)
class SearchSettings:
    """The defaults are the paper's.

    Attributes:
        beam: K, hypotheses kept alive per sentence.
        alpha: exponent of the length penalty.
        max_len_a, max_len_b: an output has at most a * (source length) + b tokens, </s> not counted on either side.
        min_len: no output has fewer tokens, </s> not counted.
        nbest: how many finished hypotheses the search must be sure of before it stops.
    """

    beam: int = 4
    alpha: float = 0.6
    max_len_a: float = 1.0
    max_len_b: int = 50
    min_len: int = 0
    nbest: int = 1

    def __post_init__(self) -> None:
        if self.beam < 1:
            raise UserError(f"--beam {self.beam} must be at least 1 (the paper: 4)")
        if not math.isfinite(self.alpha):
            raise UserError(f"--length-penalty-alpha {self.alpha} must be a number (the paper: 0.6)")


class BeamSearch:
    """Keeps the K likeliest unfinished hypotheses of each sentence and the K best-scored finished ones.

    Of the 2 K likeliest continuations, those that end join the finished ones with score log p / ((5 + n) / 6)^alpha,
    n counting </s>, and the K likeliest others stay alive. K = 1 is greedy search, as in the released code: there the
    likeliest continuation alone counts. A sentence is done when no living hypothesis can still
    reach the ``nbest``-th finished score. Every rule looks at one sentence alone, so its result does not depend on
    the batch that it is in.

    Args:
        models: one model, or an ensemble whose probabilities are averaged; put into evaluation mode.
        dictionary: of the target.
        alignment: fairseq's --print-alignment, "hard", "soft" or None.
    """

    def __init__(
        self,
        models: Sequence[Any],
        dictionary: Dictionary,
        settings: SearchSettings,
        alignment: Optional[str] = None,
    ) -> None:
        self.settings = settings
        self.alignment = alignment
        self.pad: int = dictionary.pad()
        self.bos: int = dictionary.bos()
        self.eos: int = dictionary.eos()
        # A source as long as the model takes may not ask for a longer target than it takes.
        self.longest = int(min(model.max_decoder_positions() for model in models)) - 1
        for model in models:
            model.eval()

    @torch.no_grad()
    def generate(
        self, models: Sequence[Any], sample: Mapping[str, Any], prefix_tokens: None = None, constraints: None = None
    ) -> list[list[Hypothesis]]:
        """The finished hypotheses of each sentence, best first, in the form of fairseq's generators.

        Raises:
            ValueError: the model's output is not a number; prefixes or constraints, which this search does not know.
        """
        if prefix_tokens is not None or constraints is not None:
            raise UserError("this search knows no prefixes or constraints: build the generator with their flags set")
        source = sample["net_input"]["src_tokens"]
        search = _Batch(self, EnsembleDecoder(models, sample["net_input"], self.settings.beam), source)
        while search.sentences:
            search.step()
        if self.alignment is not None:
            align(models, sample["net_input"], search.finished, self.alignment, self.pad, self.eos)
        return search.finished

    def max_lengths(self, source: Tensor) -> Tensor:
        """(B, S) ids -> the longest output of each sentence in tokens without </s>; nothing for a blank line."""
        lengths = (source.ne(self.pad) & source.ne(self.eos)).sum(dim=1)
        limits = (self.settings.max_len_a * lengths.double()).long() + self.settings.max_len_b
        return limits.clamp(max=self.longest).masked_fill(lengths.eq(0), 0)


class _Batch:
    """The state of one search: R sentences that are not done, K hypotheses each, all n tokens long."""

    def __init__(self, search: BeamSearch, decoder: EnsembleDecoder, source: Tensor) -> None:
        self.rules = search
        self.decoder = decoder
        self.beam = search.settings.beam
        self.candidates = 2 * self.beam if self.beam > 1 else 1
        batch = source.size(0)
        self.finished: list[list[Hypothesis]] = [[] for _ in range(batch)]
        self.sentences = list(range(batch))
        self.max_lengths = search.max_lengths(source)
        self.tokens = source.new_full((batch, self.beam, 1), search.eos)
        self.scores = torch.zeros(batch, self.beam, 0, device=source.device)
        # All hypotheses of a sentence start alike; only the first may be continued, or all would stay alike.
        self.log_p = torch.full((batch, self.beam), -math.inf, device=source.device)
        self.log_p[:, 0] = 0.0

    def step(self) -> None:
        """Extend every hypothesis by one token, collect those that end, drop the sentences that are done."""
        values, beams, tokens = self._candidates()
        log_p = values.sum(dim=-1)
        ends = tokens.eq(self.rules.eos)
        self._finish(values, log_p, beams, ends)
        self.log_p, chosen = log_p.masked_fill(ends, -math.inf).topk(self.beam)
        origins, tokens = beams.gather(1, chosen), tokens.gather(1, chosen)
        token_scores = values[..., 1].gather(1, chosen)

        kept = self._unfinished()
        self.sentences = [self.sentences[row] for row in kept]
        rows = torch.tensor(kept, device=origins.device, dtype=torch.long)
        origins = origins[rows]
        self.tokens = self._extend(self.tokens, rows, origins, tokens[rows])
        self.scores = self._extend(self.scores, rows, origins, token_scores[rows])
        self.log_p, self.max_lengths = self.log_p[rows], self.max_lengths[rows]
        if kept:
            self.decoder.reorder(rows, origins)

    def _candidates(self) -> tuple[Tensor, Tensor, Tensor]:
        """The 2 K likeliest continuations of each sentence (the likeliest, if K is 1), best first.

        Returns:
            log p of the prefix and of the new token (R, 2K, 2), the beam that it continues (R, 2K), the token (R, 2K).
        """
        logits_V = self.decoder.step(self.tokens)
        length = self.tokens.size(2) - 1
        end = logits_V[:, self.rules.eos].clone().view(len(self.sentences), self.beam, 1)
        # Of one hypothesis no more than 2 K continuations can be among the 2 K of its sentence; three more than
        # that, because up to three of them are then forbidden.
        best, tokens, log_total = (
            tensor.view(len(self.sentences), self.beam, -1) for tensor in likeliest(logits_V, 2 * self.beam + 3)
        )
        full = self.max_lengths <= length
        forbidden = tokens.eq(self.rules.pad) | tokens.eq(self.rules.bos) | full[:, None, None]
        if length < self.rules.settings.min_len:
            forbidden |= tokens.eq(self.rules.eos)
        best = best.masked_fill(forbidden, -math.inf)
        # A sentence that may not grow ends, whatever its length.
        tokens[full, :, 0], best[full, :, 0] = self.rules.eos, end[full, :, 0]
        best = best - log_total
        total = (self.log_p.unsqueeze(2) + best).flatten(1)
        _, chosen = total.topk(min(self.candidates, total.size(1)))
        beams = chosen // best.size(2)
        values = torch.stack([self.log_p.gather(1, beams), best.flatten(1).gather(1, chosen)], dim=-1)
        if values.isnan().any():
            raise UserError(
                "the model's output is not a number: a weight of the checkpoint is NaN or infinite, or the precision "
                "is too low; use an earlier checkpoint, or float32"
            )
        return values, beams, tokens.flatten(1).gather(1, chosen)

    def _finish(self, values: Tensor, log_p: Tensor, beams: Tensor, ends: Tensor) -> None:
        length = self.tokens.size(2)
        penalty = length_penalty(length, self.rules.settings.alpha)
        ending = (ends & log_p.gt(-math.inf)).nonzero().tolist()
        for row, candidate in ending:
            beam = int(beams[row, candidate])
            end = self.tokens.new_full((1,), self.rules.eos)
            self.finished[self.sentences[row]].append(
                {
                    "tokens": torch.cat([self.tokens[row, beam, 1:], end]),
                    "score": log_p[row, candidate] / penalty,
                    "positional_scores": torch.cat([self.scores[row, beam], values[row, candidate, 1:]]),
                    "attention": torch.empty(0),
                    "alignment": torch.empty(0),
                }
            )
        for row in {row for row, _ in ending}:
            pool = self.finished[self.sentences[row]]
            pool.sort(key=lambda hypothesis: float(hypothesis["score"]), reverse=True)
            del pool[self.beam :]

    def _unfinished(self) -> list[int]:
        """Rows in which a living hypothesis, at best certain of all its further tokens, could still be among nbest.

        They stay in their places, but for the last ones, which fill the holes: so that little has to be moved.
        """
        nbest, alpha = min(self.rules.settings.nbest, self.beam), self.rules.settings.alpha
        next_length = self.tokens.size(2) + 1
        kept = []
        for row, (best, limit) in enumerate(zip(self.log_p[:, 0].tolist(), self.max_lengths.tolist())):
            pool = self.finished[self.sentences[row]]
            penalty = max(length_penalty(next_length, alpha), length_penalty(limit + 1, alpha))
            if best > -math.inf and (len(pool) < nbest or best / penalty > float(pool[nbest - 1]["score"])):
                kept.append(row)
        staying = {row for row in kept if row < len(kept)}
        from_behind = iter(kept[len(staying) :])
        return [row if row in staying else next(from_behind) for row in range(len(kept))]

    def _extend(self, kept: Tensor, rows: Tensor, origins: Tensor, new: Tensor) -> Tensor:
        """(R, K, n) -> (R', K, n + 1): hypothesis ``origins[r, k]`` of sentence ``rows[r]`` with its new token."""
        return torch.cat([kept[rows.unsqueeze(1), origins], new.unsqueeze(2)], dim=2)
