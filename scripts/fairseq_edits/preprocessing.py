# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Robustness of fairseq-preprocess: what is wrong with the text is told first, and no half-written data is left."""

from pathlib import Path

from fairseq_edits.edit import AddFile, Edit, Replace

_ADDED = Path(__file__).parent / "added"
_PREPROCESS = "fairseq_cli/preprocess.py"

EDITS = [
    Edit(
        "text-check",
        "sides of different length were binarised and found out by the training, and a line that is not UTF-8 after "
        "everything before it was binarised",
        AddFile("fairseq/text_check.py", _ADDED / "text_check.py"),
        Replace(
            _PREPROCESS,
            "    task = tasks.get_task(args.task)\n",
            """\
    prefixes = [args.trainpref] if args.trainpref else []
    for given in (args.validpref, args.testpref):
        prefixes += given.split(",") if given else []
    check_text(prefixes, [args.source_lang, args.target_lang] if target else [args.source_lang])

    task = tasks.get_task(args.task)
""",
        ),
        Replace(
            _PREPROCESS,
            "from fairseq.user_error import UserError, tells_user_errors\n",
            "from fairseq.flag_values import check_values\n"
            "from fairseq.text_check import check_text\n"
            "from fairseq.user_error import UserError, tells_user_errors\n",
        ),
    ),
    Edit(
        "preprocess-arguments",
        "arguments that do not go together ended in tracebacks",
        Replace(
            _PREPROCESS,
            "    args = parser.parse_args()\n    main(args)\n",
            """\
    args = parser.parse_args()
    check_values(vars(args))
    if not args.only_source and None in (args.source_lang, args.target_lang):
        raise UserError("the languages are missing; give -s and -t, the ends of the files' names")
    main(args)
""",
        ),
        Replace(
            _PREPROCESS,
            """\
    assert (
        args.dataset_impl != "huffman"
    ), "preprocessing.py doesn't support Huffman yet, use HuffmanCodeBuilder directly."
""",
            """\
    if args.dataset_impl == "huffman":
        raise UserError("--dataset-impl huffman cannot be written by fairseq-preprocess; use mmap")
""",
        ),
        Replace(
            _PREPROCESS,
            "        raise FileExistsError(_dict_path(args.source_lang, args.destdir))\n",
            "        raise UserError(_exists(_dict_path(args.source_lang, args.destdir)))\n",
        ),
        Replace(
            _PREPROCESS,
            "        raise FileExistsError(_dict_path(args.target_lang, args.destdir))\n",
            "        raise UserError(_exists(_dict_path(args.target_lang, args.destdir)))\n",
        ),
        Replace(
            _PREPROCESS,
            "def main(args):\n",
            """\
def _exists(path):
    return f"{path} is there already; give another --destdir, or the dictionary with --srcdict and --tgtdict"


def main(args):
""",
        ),
        Replace(
            _PREPROCESS,
            """\
        assert (
            not args.srcdict or not args.tgtdict
        ), "cannot use both --srcdict and --tgtdict with --joined-dictionary"
""",
            """\
        if args.srcdict and args.tgtdict:
            raise UserError(
                "--joined-dictionary is one dictionary for both languages; give it with --srcdict alone"
            )
""",
        ),
        *(
            Replace(
                _PREPROCESS,
                f"""\
{indent}assert (
{indent}    args.trainpref
{indent}), "--trainpref must be set if --{flag} is not specified"
""",
                f"""\
{indent}if not args.trainpref:
{indent}    raise UserError(
{indent}        "there is no text to make the dictionary from; give --trainpref, or --{flag} FILE"
{indent}    )
""",
                count,
            )
            for indent, flag, count in ((" " * 12, "srcdict", 2), (" " * 16, "tgtdict", 1))
        ),
    ),
    Edit(
        "whole-datasets",
        "binarised data was written under its final name from the first sentence on, and what a killed process had "
        "written stayed for ever",
        Replace(
            "fairseq/binarizer.py",
            """\
    @classmethod
    def multiprocess_dataset(
        cls,
        input_file: str,
        dataset_impl: str,
        binarizer: Binarizer,
        output_prefix: str,
        vocab_size=None,
        num_workers=1,
    ) -> BinarizeSummary:
""",
            """\
    @classmethod
    def multiprocess_dataset(
        cls,
        input_file: str,
        dataset_impl: str,
        binarizer: Binarizer,
        output_prefix: str,
        vocab_size=None,
        num_workers=1,
    ) -> BinarizeSummary:
        passing = f"{output_prefix}.{os.getpid()}.tmp"
        remove_leftovers(output_prefix)
        try:
            summary = cls._multiprocess_dataset(
                input_file, dataset_impl, binarizer, passing, vocab_size, num_workers
            )
            for path in (indexed_dataset.data_file_path, indexed_dataset.index_file_path):
                os.replace(path(passing), path(output_prefix))
        finally:
            for left in glob.glob(glob.escape(passing) + "*"):
                os.remove(left)
        return summary

    @classmethod
    def _multiprocess_dataset(
        cls,
        input_file: str,
        dataset_impl: str,
        binarizer: Binarizer,
        output_prefix: str,
        vocab_size=None,
        num_workers=1,
    ) -> BinarizeSummary:
""",
        ),
        AddFile("fairseq/leftovers.py", _ADDED / "leftovers.py"),
        Replace(
            "fairseq/binarizer.py",
            "from fairseq.tokenizer import tokenize_line\n",
            "from fairseq.leftovers import remove_leftovers\nfrom fairseq.tokenizer import tokenize_line\n",
        ),
        Replace("fairseq/binarizer.py", "import logging\nimport os\n", "import glob\nimport logging\nimport os\n"),
    ),
]
