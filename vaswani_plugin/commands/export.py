"""vaswani export."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

NAME = "export"
SUMMARY = "write a packaged model in the format of another program"
DETAILS = (
    "ctranslate2: a folder for ctranslate2.Translator, with the SentencePiece model in it. "
    "safetensors: one file with every parameter under its name in the model, and the sizes in its metadata."
)
EXAMPLE = "vaswani export ctranslate2 model model.ct2"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("format", choices=("ctranslate2", "safetensors"))
    parser.add_argument("model", metavar="MODEL_DIR", help="a folder made by vaswani package")
    parser.add_argument("output", metavar="OUT", help="the new folder, or the file")


def run(options: Namespace) -> None:
    model, output = Path(options.model), Path(options.output)
    if options.format == "ctranslate2":
        from vaswani_plugin.export.ctranslate2_model import export_ctranslate2

        export_ctranslate2(model, output)
    else:
        from vaswani_plugin.export.safetensors_file import export_safetensors

        export_safetensors(model, output)
    print(f"{output} is {model} for {options.format}")
