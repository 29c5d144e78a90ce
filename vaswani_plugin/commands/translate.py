"""vaswani translate."""

import sys
from argparse import ArgumentParser, Namespace

NAME = "translate"
SUMMARY = "translate standard input to standard output with a packaged model"
DETAILS = (
    "Raw text in UTF-8, one sentence a line; one line out for every line in, in order, each as soon as it is ready. "
    "A line that cannot be translated is told on standard error and left empty; the exit status is then 1. Of bytes "
    "that are not UTF-8, U+FFFD is translated, and the line is told too."
)
EXAMPLE = "vaswani translate model <test.en >test.translated.de"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL_DIR", help="a folder made by vaswani package")
    parser.add_argument("--beam", type=int, metavar="N", help="hypotheses kept alive (default: 4, the paper's)")
    parser.add_argument("--cpu", action="store_true", help="leave a GPU alone")
    parser.add_argument("--int8", action="store_true", help="on the CPU, with 8-bit integer products: faster")


def run(options: Namespace) -> None:
    import torch

    from vaswani_plugin.inference.line_stream import translate_stream
    from vaswani_plugin.inference.loading import open_model

    translator = open_model(options.model, int8=options.int8)
    if torch.cuda.is_available() and not (options.cpu or options.int8):
        translator.cuda()

    def notice(sentence: str) -> None:
        print(f"vaswani translate: {sentence}", file=sys.stderr, flush=True)

    translate_stream(translator, sys.stdin.buffer, sys.stdout.buffer, notice, options.beam)
