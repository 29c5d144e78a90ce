"""fairseq's own search under the paper's length penalty."""

from typing import Any

from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment

from vaswani_plugin.generation.length_penalty import length_penalty


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
