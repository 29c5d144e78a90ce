"""All scores of one output against one reference, for people and for programs."""

from collections.abc import Mapping
from pathlib import Path

from vaswani_plugin.data.text_files import text_lines
from vaswani_plugin.errors import UserError
from vaswani_plugin.evaluation.bleu import BleuScore, ends_tokenized, sacrebleu_score
from vaswani_plugin.evaluation.translations import read_translations, refuse_pieces

_SUSPICIOUS_SHARE = 0.2


def score_files(
    hypothesis: str | Path, reference: str | Path, *, target_language: str | None = None, lowercase: bool = False
) -> tuple[dict[str, BleuScore], list[str]]:
    """Scores a file of translations (plain or generate output, also gzip); returns scores by name, and warnings."""
    references = [line.removesuffix("\r") for line in text_lines(reference)]
    if not references:
        raise UserError(f"{reference}: the reference is empty")
    refuse_pieces(str(reference), references)
    translations = read_translations(hypothesis, len(references))
    scores = {
        "sacrebleu": sacrebleu_score(translations, references, target_language=target_language, lowercase=lowercase)
    }
    warnings = []
    tokenized, expected = ends_tokenized(translations), ends_tokenized(references)
    if tokenized - expected > _SUSPICIOUS_SHARE * len(references):
        warnings.append(
            f"{tokenized} of {len(references)} translations end in ' .' but {expected} of the references do: "
            "detokenise the translations, or the score compares with nothing"
        )
    return scores, warnings


def as_table(scores: Mapping[str, BleuScore]) -> str:
    """A line for each score: name, value, lengths, signature."""
    rows = [f"{'metric':<16}{'score':>7}{'hyp_len':>10}{'ref_len':>10}  signature"]
    for name, score in scores.items():
        lengths = f"{score['hyp_len']:>10,}{score['ref_len']:>10,}"
        rows.append(f"{name:<16}{score['score']:>7.2f}{lengths}  {score['signature']}")
    return "\n".join(rows)
