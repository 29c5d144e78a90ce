"""vaswani clean."""

import json
from argparse import ArgumentParser, Namespace

NAME = "clean"
SUMMARY = "remove the pairs of a raw parallel text that would harm training"
DETAILS = (
    "Removed are pairs with a blank side, a side of too many words, too unequal lengths (words are separated by "
    "white space) or bytes that are not UTF-8. The ends of the input names become the ends of the output names. "
    "Lines end at LF only; the CR of a CR LF is dropped. Characters that break other tools (lone carriage returns, "
    "U+2028, U+2029, U+0085, byte order marks, NUL and other control characters) are reported with their line numbers, "
    "and kept without --fix. What bytes that are not UTF-8 should have been cannot be known, so such pairs are removed "
    "with --fix too."
)
EXAMPLE = "vaswani clean --source train.en --target train.de --output clean/train  # clean/train.en, clean/train.de"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--source", required=True, metavar="FILE", help="text in one language, plain or gzip")
    parser.add_argument("--target", required=True, metavar="FILE", help="its translation, line by line")
    parser.add_argument("--output", required=True, metavar="PREFIX", help="the outputs' names without their ends")
    parser.add_argument("--max-length", type=int, default=175, metavar="N", help="words on a side (default: 175)")
    parser.add_argument(
        "--max-ratio", type=float, default=1.5, metavar="R", help="words of the longer side per shorter (default: 1.5)"
    )
    parser.add_argument(
        "--fix",
        action="store_true",
        help="drop byte order marks, NUL and other control characters, and put a space for those that are white space "
        "or line ends elsewhere (CR, VT, FF, U+001C to U+001F, U+0085, U+2028, U+2029); tabs stay, and no line is cut",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: Namespace) -> None:
    from vaswani_plugin.data.cleaning import clean_pair

    report = clean_pair(
        options.source,
        options.target,
        options.output,
        max_length=options.max_length,
        max_ratio=options.max_ratio,
        fix=options.fix,
    )
    print(json.dumps(report.as_json(), indent=2) if options.json else report.as_text())
