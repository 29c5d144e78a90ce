"""vaswani describe."""

import json
from argparse import ArgumentParser, Namespace

NAME = "describe"
SUMMARY = "count parameters, operations and memory of an architecture"
DETAILS = (
    "Parameters by part beside the number that the paper prints, operations per token and per update of the paper's "
    "25,000 source and 25,000 target tokens, memory of such an update and of translating a sentence. Operations are "
    "counted as 2 per multiply-add of a matrix product and 3 forward passes per update. The paper's own numbers of "
    "parameters fit a vocabulary of 40,960 pieces, not the 37,000 that it names."
)
EXAMPLE = "vaswani describe vaswani_base --vocab 37000"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("architecture", metavar="ARCH", help="vaswani_base, vaswani_big, vaswani_tiny, ...")
    parser.add_argument("--vocab", type=int, default=37_000, metavar="N", help="shared pieces (default: 37000)")
    parser.add_argument(
        "--length", type=int, default=30, metavar="N", help="tokens of a sentence, </s> counted (default: 30)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: Namespace) -> None:
    from vaswani_plugin.accounting.description import as_text, describe

    description = describe(options.architecture, options.vocab, options.length)
    print(json.dumps(description, indent=2) if options.json else as_text(description))
