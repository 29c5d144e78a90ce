"""vaswani report."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

NAME = "report"
SUMMARY = "write one web page about a training run, during it or after it"
DETAILS = (
    "Curves, scores, sample translations with the worst of them, one sentence's attention, versions and command line, "
    "from what the run has written so far: fairseq-train's log (*.log or logs/*.log), checkpoints, the output of "
    "fairseq-generate and score.json. The page needs no network and no other file."
)
EXAMPLE = "vaswani report runs/quickstart  # runs/quickstart/report.html"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run_dir", metavar="RUN_DIR", help="a recipe's folder, or that of a training's log")
    parser.add_argument("--output", metavar="FILE", help="the page (default: RUN_DIR/report.html)")


def run(options: Namespace) -> None:
    from vaswani_plugin.figures.web_page import write_page
    from vaswani_plugin.report.run_report import run_report

    folder = Path(options.run_dir)
    output = Path(options.output) if options.output else folder / "report.html"
    write_page(output, run_report(folder))
    print(output)
