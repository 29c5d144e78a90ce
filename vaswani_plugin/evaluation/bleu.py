"""BLEU and chrF as sacreBLEU computes them, each with its signature, so that the number can be compared with others."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from vaswani_plugin.errors import UserError

_RESAMPLES = 1000
# It tells of its progress, which fairseq's logging would print.
logging.getLogger("sacrebleu").setLevel(logging.WARNING)


class Confidence(TypedDict):
    """Of 1,000 bootstrap resamples: their mean, and half the width of the interval that holds 95 % of them."""

    mean: float
    half_width: float


class Comparison(TypedDict):
    """The other system's score, and the chance of a difference as large where there is none (paired bootstrap)."""

    score: float
    p_value: float
    signature: str


class Score(TypedDict, total=False):
    """A score with what is needed to reproduce it; lengths, of BLEU alone, are in the metric's own tokens."""

    score: float
    signature: str
    hyp_len: int
    ref_len: int
    confidence: Confidence
    compared: Comparison


def bleu(target_language: str | None = None, lowercase: bool = False) -> BLEU:
    """The metric of the ``sacrebleu`` command for raw text.

    The target language chooses the tokeniser where 13a does not fit (Chinese, Japanese, Korean).
    """
    try:
        # "force" only silences sacreBLEU's own warning about tokenised text: `ends_tokenized` counts for ours.
        return BLEU(lowercase=lowercase, trg_lang=target_language or "", force=True)
    except RuntimeError as error:
        raise UserError(
            f"sacreBLEU cannot tokenise {target_language!r} here: {' '.join(str(error).split())}"
        ) from error


def bleu_of_words(lowercase: bool = False) -> BLEU:
    """Counts the words that white space separates."""
    return BLEU(lowercase=lowercase, tokenize="none", force=True)


def chrf(lowercase: bool = False) -> CHRF:
    """Character n-grams up to 6, no word n-grams."""
    return CHRF(lowercase=lowercase)


def corpus_score(
    metric: BLEU | CHRF,
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    confidence: bool = False,
    baseline: Sequence[str] | None = None,
    signature: Mapping[str, str] | None = None,
) -> Score:
    """Score of a whole test set against one reference.

    Args:
        confidence: adds the interval of ``sacrebleu --confidence``.
        baseline: another system's translations; adds the test of ``sacrebleu -i BASELINE SYSTEM --paired-bs``.
        signature: entries that tell of what was done to the text before it came here.
    """
    result: Any = metric.corpus_score(hypotheses, [references], n_bootstrap=_RESAMPLES if confidence else 1)
    score: Score = {"score": result.score, "signature": _signed(metric.get_signature(), signature)}
    if isinstance(metric, BLEU):
        score["hyp_len"], score["ref_len"] = result.sys_len, result.ref_len
    if confidence:
        score["confidence"] = {"mean": float(result._mean), "half_width": float(result._ci)}
    if baseline is not None:
        systems = [("baseline", baseline), ("system", hypotheses)]
        signatures, rows = PairedTest(systems, {"metric": metric}, [references], "bs", _RESAMPLES)()
        (name,) = signatures
        other, this = rows[name]
        score["compared"] = {
            "score": float(other.score),  # type: ignore[union-attr]
            "p_value": this.p_value,  # type: ignore[union-attr, typeddict-item]
            "signature": _signed(signatures[name], signature),
        }
    return score


def _signed(signature: Any, additions: Mapping[str, str] | None) -> str:
    for key, value in (additions or {}).items():
        signature.update(key, value)
    return str(signature)


def ends_tokenized(lines: Sequence[str]) -> int:
    """Number of lines that end in a full stop set apart by a space, the mark of text that was not detokenised."""
    return sum(line.rstrip().endswith(" .") for line in lines)
