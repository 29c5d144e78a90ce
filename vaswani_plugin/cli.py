"""The ``vaswani`` command: one sub-command for each tool around fairseq's own."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from vaswani_plugin.errors import UserError

_INTERRUPTED = 130
_BROKEN_PIPE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a sub-command; returns the exit status. An error of the user's is one line on standard error."""
    options = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], None] = options.run
    try:
        run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (ValueError, OSError) as error:
        print(f"vaswani {options.tool}: {_sentence(error)}", file=sys.stderr)
        return 1
    return 0


def _sentence(error: Exception) -> str:
    """One line, with the file's name before the system's words for what went wrong."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="vaswani", description="Tools for training Transformers with vaswani_plugin.")
    tools = parser.add_subparsers(dest="tool", required=True, metavar="TOOL")
    for add in (_add_user_dir, _add_clean, _add_vocabulary, _add_encode, _add_average, _add_score):
        add(tools)
    return parser


def _add(
    tools: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    run: Callable[[argparse.Namespace], None],
    summary: str,
    details: str,
    example: str,
) -> argparse.ArgumentParser:
    parser = tools.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}. {details}",
        epilog=f"example: {example}",
    )
    parser.set_defaults(run=run)
    return parser


def _add_user_dir(tools: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    _add(
        tools,
        "user-dir",
        _run_user_dir,
        "print the folder that fairseq takes as --user-dir",
        "",
        'fairseq-train DATA --user-dir "$(vaswani user-dir)" --task vaswani_translation --arch vaswani_base ...',
    )


def _run_user_dir(_: argparse.Namespace) -> None:
    print(Path(__file__).resolve().parent)


def _add_clean(tools: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = _add(
        tools,
        "clean",
        _run_clean,
        "remove the pairs of a raw parallel text that would harm training",
        "Removed are pairs with a blank side, a side of too many words, too unequal lengths (words are separated by "
        "white space) or bytes that are not UTF-8. The ends of the input names become the ends of the output names. "
        "Odd characters that break other tools (lone carriage returns, U+2028, U+2029, U+0085, byte order marks, NUL) "
        "are reported with their line numbers, and kept.",
        "vaswani clean --source train.en --target train.de --output clean/train   (clean/train.en, clean/train.de)",
    )
    parser.add_argument("--source", required=True, metavar="FILE", help="text in one language, plain or gzip")
    parser.add_argument("--target", required=True, metavar="FILE", help="its translation, line by line")
    parser.add_argument("--output", required=True, metavar="PREFIX", help="the outputs' names without their ends")
    parser.add_argument("--max-length", type=int, default=175, metavar="N", help="words on a side (default: 175)")
    parser.add_argument(
        "--max-ratio", type=float, default=1.5, metavar="R", help="words of the longer side per shorter (default: 1.5)"
    )
    _add_json(parser)


def _run_clean(options: argparse.Namespace) -> None:
    from vaswani_plugin.data.cleaning import clean_pair

    report = clean_pair(
        options.source, options.target, options.output, max_length=options.max_length, max_ratio=options.max_ratio
    )
    print(json.dumps(report.as_json(), indent=2) if options.json else report.as_text())


def _add_vocabulary(tools: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = _add(
        tools,
        "vocabulary",
        _run_vocabulary,
        "learn a SentencePiece vocabulary and the fairseq dictionary that goes with it",
        "Byte-pair merges with byte fallback and no normalisation, so that every text can be encoded and comes back "
        "unchanged. Learned on all files together, or on an even sample of them when they are over 300 MB.",
        "vaswani vocabulary --size 8000 --output joint train.en train.de   (joint.model, joint.dict.txt)",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="raw UTF-8 text, plain or gzip; both sides for one")
    parser.add_argument("--size", type=int, required=True, metavar="N", help="number of pieces, special ones included")
    parser.add_argument("--output", required=True, metavar="PREFIX", help="writes PREFIX.model and PREFIX.dict.txt")
    _add_json(parser)


def _run_vocabulary(options: argparse.Namespace) -> None:
    from vaswani_plugin.data.vocabulary import make_vocabulary

    counts = make_vocabulary(options.files, options.size, options.output)
    if options.json:
        print(json.dumps(counts))
    else:
        print(
            f"{counts['size']:,} pieces ({counts['characters']:,} single characters) from {counts['lines']:,} lines: "
            f"{options.output}.model, {options.output}.dict.txt"
        )


def _add_encode(tools: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = _add(
        tools,
        "encode",
        _run_encode,
        "cut text into the pieces of a vocabulary",
        "One line out for every line in, in order; a blank line stays blank. Several files go to a folder, each under "
        "its own name.",
        "vaswani encode --model joint.model train.en --output train.sp.en",
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="UTF-8 text, plain or gzip (default: -)")
    parser.add_argument("--model", required=True, metavar="M", help="the .model file of vaswani vocabulary")
    parser.add_argument("--output", default="-", metavar="FILE", help="file or folder for the pieces (default: -)")


def _run_encode(options: argparse.Namespace) -> None:
    from vaswani_plugin.data.encoding import encode_files

    encode_files(options.model, options.files or ["-"], options.output)


def _add_average(tools: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = _add(
        tools,
        "average",
        _run_average,
        "write the mean of several checkpoints of one training run",
        "Give a folder and --last N, or the checkpoint files themselves.",
        "vaswani average checkpoints --last 5 --output checkpoints/averaged.pt",
    )
    parser.add_argument("checkpoints", nargs="+", metavar="DIR|FILE", help="the folder of the run, or checkpoint files")
    parser.add_argument("--last", type=int, metavar="N", help="the newest N checkpoints of the folder")
    parser.add_argument("--by", choices=("updates", "epochs"), help="which checkpoints count (default: updates)")
    parser.add_argument("--output", required=True, metavar="FILE", help="the averaged checkpoint")


def _run_average(options: argparse.Namespace) -> None:
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


def _add_score(tools: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = _add(
        tools,
        "score",
        _run_score,
        "compute BLEU of translations against the raw reference",
        "The translations are plain text in the order of the reference, or the output of fairseq-generate as it is; "
        "which of the two is seen from the text. Detokenised text, as sacreBLEU wants it.",
        "vaswani score --hypothesis generate.txt --reference test.de --target-lang de",
    )
    parser.add_argument("--hypothesis", required=True, metavar="FILE", help="translations, plain or gzip; - for stdin")
    parser.add_argument("--reference", required=True, metavar="FILE", help="the raw test file, one sentence a line")
    parser.add_argument("--target-lang", metavar="L", help="language of the text, where scoring depends on it")
    parser.add_argument("--lowercase", action="store_true", help="ignore upper and lower case")
    _add_json(parser)


def _run_score(options: argparse.Namespace) -> None:
    from vaswani_plugin.evaluation.report import as_table, score_files

    scores, warnings = score_files(
        options.hypothesis, options.reference, target_language=options.target_lang, lowercase=options.lowercase
    )
    for warning in warnings:
        print(f"vaswani score: warning: {warning}", file=sys.stderr)
    print(json.dumps(scores, indent=2, ensure_ascii=False) if options.json else as_table(scores))


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
