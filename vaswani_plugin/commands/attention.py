"""vaswani attention."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from vaswani_plugin.errors import UserError

NAME = "attention"
SUMMARY = "draw what every head of a model attends to in one sentence"
DETAILS = (
    "Writes a picture of each layer's heads (PNG and SVG) for the encoder's self-attention, the decoder's, and the "
    "decoder's attention to the source, and attention.html, where layer and head are chosen by mouse or keyboard and "
    "a word shows its links. Without --target, the target is the model's own translation."
)
EXAMPLE = 'vaswani attention model "The small house stands in the garden." --output maps  # maps/attention.html'


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL_DIR", help="a folder that vaswani package made")
    parser.add_argument("source", metavar="SENTENCE", help="a sentence in the source language")
    parser.add_argument("--target", metavar="SENTENCE", help="its translation (default: the model's)")
    parser.add_argument("--output", required=True, metavar="DIR", help="folder for the pictures and the page")


def run(options: Namespace) -> None:
    for sentence in (options.source, options.target or ""):
        # An argument's bytes that are not UTF-8 arrive as lone surrogates.
        if any("\ud800" <= character <= "\udfff" for character in sentence):
            raise UserError("the sentence is not valid UTF-8: write it in a terminal whose encoding is UTF-8")

    from vaswani_plugin.figures.attention_maps import maps_of_sentence
    from vaswani_plugin.figures.attention_page import attention_page
    from vaswani_plugin.figures.drawing import draw_maps, load_figure_class
    from vaswani_plugin.figures.web_page import write_page
    from vaswani_plugin.inference.loading import open_model

    load_figure_class()  # before the work, not after it
    translator = open_model(options.model)
    maps, target = maps_of_sentence(translator, options.source, options.target)
    print(f"source: {options.source}\ntarget: {target}")
    folder = Path(options.output)
    write_page(folder / "attention.html", attention_page(maps, options.source, target))
    pictures = sum(1 for _ in draw_maps(maps, folder))
    print(f"{folder / 'attention.html'} and {pictures} pictures beside it, such as cross-layer1.png")
