"""vaswani package."""

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path

NAME = "package"
SUMMARY = "gather weights, dictionaries, SentencePiece model and settings of a run in one folder"
DETAILS = (
    "Takes the first of averaged.pt, checkpoint_best.pt and checkpoint_last.pt in RUN_DIR or RUN_DIR/checkpoints, and "
    "the dictionaries that the training used. The folder is all that vaswani translate, from_pretrained and "
    "fairseq-interactive need; the weights are without the optimiser's state."
)
EXAMPLE = "vaswani package runs/quickstart model"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run_dir", metavar="RUN_DIR", help="folder of a training's checkpoints, or of a recipe")
    parser.add_argument("output", metavar="OUT_DIR", help="the new folder")
    parser.add_argument("--checkpoint", metavar="FILE", help="the weights, instead of those found in RUN_DIR")
    parser.add_argument("--data", metavar="DIR", help="folder of dict.*.txt (default: the training's)")
    parser.add_argument(
        "--sentencepiece-model", metavar="FILE", help="default: the *.model beside run or data that fits the dictionary"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: Namespace) -> None:
    from vaswani_plugin.inference.packaging import package

    contents = package(
        Path(options.run_dir),
        Path(options.output),
        checkpoint=options.checkpoint,
        data=options.data,
        sentencepiece_model=options.sentencepiece_model,
    )
    if options.json:
        print(json.dumps(contents, indent=2))
        return
    print(f"{options.output}: weights of {contents['checkpoint']} ({contents['num_updates']:,} updates)")
    print(f"dictionaries of {contents['data']} ({contents['source_lang']}-{contents['target_lang']})")
    print(
        f"SentencePiece model {contents['sentencepiece_model']}"
        if contents["sentencepiece_model"]
        else "no SentencePiece model: the dictionary has whole words, so sentences are split at spaces"
    )
