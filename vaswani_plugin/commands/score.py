"""vaswani score."""

import json
import sys
from argparse import ArgumentParser, Namespace

NAME = "score"
SUMMARY = "compute BLEU and chrF of translations against the raw reference"
DETAILS = (
    "The translations are plain text in the order of the reference, or the output of fairseq-generate as it is; "
    "which of the two is seen from the text. Detokenised text, as sacreBLEU wants it. Printed are sacreBLEU; BLEU of "
    "the words that Moses' tokeniser separates; for German the same with compounds split at their hyphens, which is "
    "nearest to the numbers of the paper, and the same after Moses' replacement of Unicode's punctuation, as in the "
    "script of its authors; and chrF."
)
EXAMPLE = "vaswani score --hypothesis generate.txt --reference test.de --target-lang de"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--hypothesis", required=True, metavar="FILE", help="translations, plain or gzip; - for stdin")
    parser.add_argument("--reference", required=True, metavar="FILE", help="the raw test file, one sentence a line")
    parser.add_argument("--target-lang", metavar="L", help="language of the text (default: words are taken as English)")
    parser.add_argument("--lowercase", action="store_true", help="ignore upper and lower case")
    parser.add_argument(
        "--tokenized", action="store_true", help="translations and reference are tokenised: count words as they are"
    )
    parser.add_argument(
        "--compare", metavar="FILE", help="translations by a second system, to test the difference (paired bootstrap)"
    )
    parser.add_argument(
        "--confidence", action="store_true", help="add the 95 %% interval of 1,000 bootstrap resamples (seed 12345)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: Namespace) -> None:
    from vaswani_plugin.evaluation.report import as_table, score_files

    scores, warnings = score_files(
        options.hypothesis,
        options.reference,
        compare=options.compare,
        target_language=options.target_lang,
        lowercase=options.lowercase,
        tokenized=options.tokenized,
        confidence=options.confidence,
    )
    for warning in warnings:
        print(f"vaswani score: warning: {warning}", file=sys.stderr)
    print(json.dumps(scores, indent=2, ensure_ascii=False) if options.json else as_table(scores))
