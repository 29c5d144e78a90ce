"""vaswani vocabulary."""

import json
from argparse import ArgumentParser, Namespace

NAME = "vocabulary"
SUMMARY = "learn a SentencePiece vocabulary and the fairseq dictionary that goes with it"
DETAILS = (
    "Byte-pair merges with byte fallback and no normalisation, so that every text can be encoded and comes back "
    "unchanged. Learned on all files together, or on an even sample of them, always the same, when they are over "
    "300 MB. Takes up to about 2 GB of memory, however large the files are."
)
EXAMPLE = "vaswani vocabulary --size 8000 --output joint train.en train.de  # joint.model, joint.dict.txt"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="raw UTF-8 text, plain or gzip; both sides for one")
    parser.add_argument("--size", type=int, required=True, metavar="N", help="number of pieces, special ones included")
    parser.add_argument("--output", required=True, metavar="PREFIX", help="writes PREFIX.model and PREFIX.dict.txt")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: Namespace) -> None:
    from vaswani_plugin.data.vocabulary import make_vocabulary

    counts = make_vocabulary(options.files, options.size, options.output)
    if options.json:
        print(json.dumps(counts))
    else:
        print(
            f"{counts['size']:,} pieces ({counts['characters']:,} single characters) from {counts['lines']:,} lines: "
            f"{options.output}.model, {options.output}.dict.txt"
        )
