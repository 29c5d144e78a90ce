"""All scores of one output against one reference, for people and for programs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from vaswani_plugin.data.text_files import text_lines
from vaswani_plugin.errors import UserError
from vaswani_plugin.evaluation.bleu import Score, bleu, bleu_of_words, chrf, corpus_score, ends_tokenized
from vaswani_plugin.evaluation.moses import (
    WITHOUT_SPACES,
    MosesWords,
    plain_punctuation,
    split_compounds,
    tokenizer_signature,
)
from vaswani_plugin.evaluation.translations import read_translations, refuse_pieces

_SUSPICIOUS_SHARE = 0.2


def score_files(
    hypothesis: str | Path,
    reference: str | Path,
    *,
    compare: str | Path | None = None,
    target_language: str | None = None,
    lowercase: bool = False,
    tokenized: bool = False,
    confidence: bool = False,
) -> tuple[dict[str, Score], list[str]]:
    """Scores a file of translations (plain or generate output, also gzip); returns scores by name, and warnings.

    Args:
        compare: translations by another system of the same test set.
        tokenized: the words of all files are separated already.
    """
    references = [line.removesuffix("\r") for line in text_lines(reference)]
    if not references:
        raise UserError(f"{reference}: the reference is empty")
    refuse_pieces(str(reference), references)
    systems = [read_translations(path, len(references)) for path in (hypothesis, compare) if path is not None]
    scores = score_texts(
        systems[0],
        references,
        baseline=systems[1] if compare is not None else None,
        target_language=target_language,
        lowercase=lowercase,
        tokenized=tokenized,
        confidence=confidence,
    )
    return scores, _warnings(systems[0], references, tokenized)


def score_texts(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    baseline: Sequence[str] | None = None,
    target_language: str | None = None,
    lowercase: bool = False,
    tokenized: bool = False,
    confidence: bool = False,
) -> dict[str, Score]:
    """Scores by name, of lines against lines.

    sacrebleu is for comparing with today's papers; tokenized and, for German alone, compound_split are older papers'
    kinds; nearest to the paper's own is compound_split_plain_punctuation. Moses has no words of languages without
    spaces, and tokenised text has had its punctuation replaced or not.
    """
    versions = [hypotheses, references] if baseline is None else [hypotheses, references, baseline]

    def scored(metric: object, texts: Sequence[Sequence[str]], **signature: str) -> Score:
        other = texts[2] if baseline is not None else None
        return corpus_score(
            metric,  # type: ignore[arg-type]
            texts[0],
            texts[1],
            confidence=confidence,
            baseline=other,
            signature=signature,
        )

    language = (target_language or "en").split("_")[0].split("-")[0].lower()
    scores = {"sacrebleu": scored(bleu(target_language, lowercase), versions)}
    words, separator = versions, None
    if not tokenized and language not in WITHOUT_SPACES:
        separator = MosesWords(language)
        words = [separator.separated(lines) for lines in versions]
    told = {"tok": tokenizer_signature(language)} if separator else {}
    if tokenized or separator:
        scores["tokenized"] = scored(bleu_of_words(lowercase), words, **told)
    if language == "de":
        parts = [[split_compounds(line) for line in lines] for lines in words]
        told["split"] = "compounds"
        scores["compound_split"] = scored(bleu_of_words(lowercase), parts, **told)
        if separator:
            plain = [separator.separated(plain_punctuation(lines)) for lines in versions]
            parts = [[split_compounds(line) for line in lines] for lines in plain]
            told["punctuation"] = "plain"
            scores["compound_split_plain_punctuation"] = scored(bleu_of_words(lowercase), parts, **told)
    scores["chrf"] = scored(chrf(lowercase), versions)
    return scores


def _warnings(translations: Sequence[str], references: Sequence[str], tokenized: bool) -> list[str]:
    if tokenized:
        return ["sacrebleu and chrf are for raw text: of tokenised text they compare only with the same kind"]
    ends, expected = ends_tokenized(translations), ends_tokenized(references)
    if ends - expected <= _SUSPICIOUS_SHARE * len(references):
        return []
    return [
        f"{ends} of {len(references)} translations end in ' .' but {expected} of the references do: "
        "detokenise the translations, or the score compares with nothing"
    ]


def as_table(scores: Mapping[str, Score]) -> str:
    """A line for each score: name, value, lengths, what resampling says, signature."""
    columns = [_column("metric", scores, "<")]
    columns.append(_column("score", [f"{score['score']:.2f}" for score in scores.values()]))
    for key in ("hyp_len", "ref_len"):
        lengths = [score.get(key) for score in scores.values()]
        columns.append(_column(key, ["-" if length is None else f"{length:,}" for length in lengths]))
    intervals = [score["confidence"] for score in scores.values() if "confidence" in score]
    if intervals:
        columns.append(_column("95 %", [f"{each['mean']:.2f} ± {each['half_width']:.2f}" for each in intervals]))
    others = [score["compared"] for score in scores.values() if "compared" in score]
    if others:
        columns.append(_column("compared", [f"{other['score']:.2f}" for other in others]))
        columns.append(_column("p", [f"{other['p_value']:.4f}" for other in others]))
    columns.append(_column("signature", [score["signature"] for score in scores.values()], "<"))
    return "\n".join("  ".join(cells).rstrip() for cells in zip(*columns))


def _column(title: str, cells: Mapping[str, object] | Sequence[str], align: str = ">") -> list[str]:
    texts = [title, *cells]
    width = max(map(len, texts))
    return [f"{text:{align}{width}}" for text in texts]
