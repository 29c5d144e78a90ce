"""BLEU with a signature, so that the number can be compared with others."""

from collections.abc import Sequence
from typing import TypedDict

from sacrebleu.metrics.bleu import BLEU

from vaswani_plugin.errors import UserError


class BleuScore(TypedDict):
    """A BLEU score with what is needed to reproduce it; lengths are in the metric's own tokens."""

    score: float
    signature: str
    hyp_len: int
    ref_len: int


def sacrebleu_score(
    hypotheses: Sequence[str], references: Sequence[str], *, target_language: str | None = None, lowercase: bool = False
) -> BleuScore:
    """Corpus BLEU of detokenised text against one raw reference, as the ``sacrebleu`` command computes it.

    The target language chooses the tokeniser where 13a does not fit (Chinese, Japanese, Korean).
    """
    try:
        # "force" only silences sacreBLEU's own warning about tokenised text: `ends_tokenized` counts for ours.
        metric = BLEU(lowercase=lowercase, trg_lang=target_language or "", force=True)
    except RuntimeError as error:
        raise UserError(
            f"sacreBLEU cannot tokenise {target_language!r} here: {' '.join(str(error).split())}"
        ) from error
    result = metric.corpus_score(hypotheses, [references])
    return {
        "score": result.score,
        "signature": str(metric.get_signature()),
        "hyp_len": result.sys_len,
        "ref_len": result.ref_len,
    }


def ends_tokenized(lines: Sequence[str]) -> int:
    """Number of lines that end in a full stop set apart by a space, the mark of text that was not detokenised."""
    return sum(line.rstrip().endswith(" .") for line in lines)
