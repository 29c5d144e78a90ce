"""vaswani encode."""

from argparse import ArgumentParser, Namespace

NAME = "encode"
SUMMARY = "cut text into the pieces of a vocabulary"
DETAILS = (
    "One line out for every line in, in order; a blank line stays blank. Several files go to a folder, each under "
    "its own name."
)
EXAMPLE = "vaswani encode --model joint.model train.en --output train.sp.en"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", metavar="FILE", help="UTF-8 text, plain or gzip (default: -)")
    parser.add_argument("--model", required=True, metavar="M", help="the .model file of vaswani vocabulary")
    parser.add_argument("--output", default="-", metavar="FILE", help="file or folder for the pieces (default: -)")


def run(options: Namespace) -> None:
    from vaswani_plugin.data.encoding import encode_files

    encode_files(options.model, options.files or ["-"], options.output)
