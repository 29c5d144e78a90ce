"""vaswani clean."""

import json
from argparse import ArgumentParser, Namespace

NAME = "clean"
SUMMARY = "remove the pairs of a raw parallel text that would harm training"
DETAILS = (
    "Removed are pairs with a blank side, a side of too many words, too unequal lengths (words are separated by "
    "white space) or bytes that are not UTF-8. The ends of the input names become the ends of the output names. "
    "Odd characters that break other tools (lone carriage returns, U+2028, U+2029, U+0085, byte order marks, NUL) "
    "are reported with their line numbers, and kept."
)
EXAMPLE = "vaswani clean --source train.en --target train.de --output clean/train   (clean/train.en, clean/train.de)"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--source", required=True, metavar="FILE", help="text in one language, plain or gzip")
    parser.add_argument("--target", required=True, metavar="FILE", help="its translation, line by line")
    parser.add_argument("--output", required=True, metavar="PREFIX", help="the outputs' names without their ends")
    parser.add_argument("--max-length", type=int, default=175, metavar="N", help="words on a side (default: 175)")
    parser.add_argument(
        "--max-ratio", type=float, default=1.5, metavar="R", help="words of the longer side per shorter (default: 1.5)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: Namespace) -> None:
    from vaswani_plugin.data.cleaning import clean_pair

    report = clean_pair(
        options.source, options.target, options.output, max_length=options.max_length, max_ratio=options.max_ratio
    )
    print(json.dumps(report.as_json(), indent=2) if options.json else report.as_text())
