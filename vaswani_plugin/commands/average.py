"""vaswani average."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from vaswani_plugin.errors import UserError

NAME = "average"
SUMMARY = "write the mean of several checkpoints of one training run"
DETAILS = "Give a folder and --last N, or the checkpoint files themselves."
EXAMPLE = "vaswani average checkpoints --last 5 --output checkpoints/averaged.pt"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("checkpoints", nargs="+", metavar="DIR|FILE", help="the folder of the run, or checkpoint files")
    parser.add_argument("--last", type=int, metavar="N", help="the newest N checkpoints of the folder")
    parser.add_argument("--by", choices=("updates", "epochs"), help="which checkpoints count (default: updates)")
    parser.add_argument("--output", required=True, metavar="FILE", help="the averaged checkpoint")


def run(options: Namespace) -> None:
    paths = [Path(name) for name in options.checkpoints]
    folders = [path for path in paths if path.is_dir()]
    if folders and (len(paths) > 1 or options.last is None):
        raise UserError(f"{folders[0]} is a folder: give it alone, with --last N for the newest N checkpoints in it")
    if not folders and (options.last is not None or options.by is not None):
        raise UserError(f"--last and --by choose from a folder, but {paths[0]} is not a folder")

    from vaswani_plugin.checkpoints.averaging import average_checkpoints, select_checkpoints

    if folders:
        paths = select_checkpoints(folders[0], options.last, options.by or "updates")
    average_checkpoints(paths, Path(options.output))
    print(f"{options.output} is the mean of {len(paths)}: {', '.join(path.name for path in paths)}")
