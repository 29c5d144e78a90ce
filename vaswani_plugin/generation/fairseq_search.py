"""fairseq's own search under the paper's length penalty, for what the paper's search does not do."""

from collections.abc import Mapping
from typing import Any

from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment

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

    def __init__(self, *args: Any, alpha: float, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "normalize_scores": False})
        self.alpha = alpha

    def generate(self, *args: Any, **kwargs: Any) -> list[list[dict[str, Any]]]:
        finished = super().generate(*args, **kwargs)  # type: ignore[misc]
        for hypotheses in finished:
            for hypothesis in hypotheses:
                hypothesis["score"] = hypothesis["score"] / length_penalty(len(hypothesis["tokens"]), self.alpha)
            hypotheses.sort(key=lambda hypothesis: float(hypothesis["score"]), reverse=True)
        return finished


class PaperScoredSearch(_PaperScores, SequenceGenerator):
    pass


class PaperScoredSearchWithAlignment(_PaperScores, SequenceGeneratorWithAlignment):
    pass
