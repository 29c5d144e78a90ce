"""fairseq's own search under the paper's length penalty, for what the paper's search does not do."""

from collections.abc import Mapping
from typing import Any

from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment

from vaswani_plugin.errors import UserError
from vaswani_plugin.generation.beam_search import BeamSearch, SearchSettings
from vaswani_plugin.generation.length_penalty import length_penalty

# Flag (as fairseq names it in its configuration) and the value that leaves it out of play.
_FLAGS: Mapping[str, Any] = {
    "sampling": False,
    "diverse_beam_groups": -1,
    "diversity_rate": -1.0,
    "constraints": None,
    "prefix_size": 0,
    "match_source_len": False,
    "no_repeat_ngram_size": 0,
    "unkpen": 0,
    "temperature": 1.0,
}


def flags_of_fairseqs_search(args: Any, keywords: Mapping[str, Any]) -> list[str]:
    """The flags in use that only fairseq's search knows.

    Args:
        args: fairseq's generation settings.
        keywords: further arguments of ``build_generator``: a language model, a function that allows tokens.
    """
    used = [name for name, neutral in _FLAGS.items() if getattr(args, name, neutral) not in (neutral, None)]
    flags = ["--" + name.replace("_", "-") for name in used]
    if keywords.get("lm_model") is not None:
        flags.append("--lm-path")
    if keywords.get("prefix_allowed_tokens_fn") is not None or getattr(args, "prefix_allowed_tokens_fn", None):
        flags.append("prefix_allowed_tokens_fn")
    return flags


class _PaperScores:
    """Ranks the finished hypotheses by log p / ((5 + n) / 6)^alpha, where fairseq divides by n^lenpen.

    Which hypotheses finish does not depend on the penalty in fairseq's search, so ranking them afterwards is exact.
    """

    def __init__(self, models: Any, dictionary: Any, *args: Any, alpha: float, **kwargs: Any) -> None:
        super().__init__(models, dictionary, *args, **{**kwargs, "normalize_scores": False})  # type: ignore[call-arg]
        self.alpha = alpha
        self.of_blank_lines = BeamSearch(models, dictionary, SearchSettings(beam=1, alpha=alpha))

    def generate(
        self, models: Any, sample: Mapping[str, Any], prefix_tokens: Any = None, constraints: Any = None, **kwargs: Any
    ) -> list[list[dict[str, Any]]]:
        """fairseq's; a blank line stays blank unless prefixes or constraints say otherwise.

        Raises:
            ValueError: constraints that nothing gives.
        """
        if constraints is None and self.search.supports_constraints:  # type: ignore[attr-defined]
            raise UserError("--constraints come after a tab in the lines that fairseq-interactive reads: use that")
        finished = super().generate(  # type: ignore[misc]
            models, sample, prefix_tokens=prefix_tokens, constraints=constraints, **kwargs
        )
        for hypotheses in finished:
            for hypothesis in hypotheses:
                hypothesis["score"] = hypothesis["score"] / length_penalty(len(hypothesis["tokens"]), self.alpha)
            hypotheses.sort(key=lambda hypothesis: float(hypothesis["score"]), reverse=True)
        if prefix_tokens is None and constraints is None:
            self._blank(models, sample["net_input"], finished)
        return finished

    def _blank(self, models: Any, net_input: Mapping[str, Any], finished: list[list[dict[str, Any]]]) -> None:
        source = net_input["src_tokens"]
        rules = self.of_blank_lines
        rows = (source.eq(rules.pad) | source.eq(rules.eos)).all(dim=1).nonzero()[:, 0]
        if rows.numel() > 0:
            part = {"net_input": {name: net_input[name][rows] for name in ("src_tokens", "src_lengths")}}
            for row, hypotheses in zip(rows.tolist(), rules.generate(models, part)):
                finished[row] = hypotheses


class PaperScoredSearch(_PaperScores, SequenceGenerator):
    pass


class PaperScoredSearchWithAlignment(_PaperScores, SequenceGeneratorWithAlignment):
    pass
