# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Mends of where a line of text ends: at the byte "\\n" and nowhere else."""

from fairseq_edits.edit import Cut, Edit, Replace

_CHUNKER = "fairseq/file_chunker_utils.py"

EDITS = [
    Edit(
        "chunker-lines",
        "files were opened with universal newlines, so a lone carriage return inside a line counted as a line end and "
        "the two sides of a corpus drifted apart; text positions were also guessed where byte positions are exact",
        Cut(
            _CHUNKER,
            "def _safe_readline(fd) -> str:\n",
            "def find_offsets(filename: str, num_chunks: int)",
        ),
        Replace(
            _CHUNKER, '    with open(filename, "r", encoding="utf-8") as f:\n', '    with open(filename, "rb") as f:\n'
        ),
        Replace(_CHUNKER, "            _safe_readline(f)\n", "            f.readline()\n"),
        Cut(
            _CHUNKER,
            "    def __iter__(self) -> tp.Iterable[str]:\n",
            "class Chunker:\n",
            """\
    def __iter__(self) -> tp.Iterable[str]:
        start = self._start_offset
        self._fd.seek(start)
        for line in self._fd:
            end = start + len(line)
            if 0 < self._end_offset < end:
                break
            try:
                yield line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise UserError(
                    f"{self._fd.name} is not UTF-8: byte {start + error.start} "
                    "cannot be decoded; convert the file first"
                ) from None
            start = end


""",
        ),
        Replace(
            _CHUNKER,
            '        self.fd = open(self.path, "r", encoding="utf-8")\n',
            '        self.fd = open(self.path, "rb")\n',
        ),
        Replace(
            _CHUNKER,
            "import os\nimport typing as tp\n",
            "import os\nimport typing as tp\n\nfrom fairseq.user_error import UserError\n",
        ),
    ),
    Edit(
        "dictionary-lines",
        "a dictionary entry with a carriage return inside it was read as two broken ones",
        Replace(
            "fairseq/data/dictionary.py",
            'with open(PathManager.get_local_path(f), "r", encoding="utf-8") as fd:',
            "with open(\n"
            '                    PathManager.get_local_path(f), encoding="utf-8", newline="\\n"\n'
            "                ) as fd:",
        ),
        Replace(
            "fairseq/data/dictionary.py",
            '            with PathManager.open(f, "w", encoding="utf-8") as fd:\n',
            '            with PathManager.open(f, "w", encoding="utf-8", newline="\\n") as fd:\n',
        ),
    ),
    Edit(
        "alignment-lines",
        "line n of the alignments has to be line n of both texts",
        Replace(
            "fairseq_cli/preprocess.py",
            'open(args.alignfile, "r", encoding="utf-8")',
            'open(args.alignfile, encoding="utf-8", newline="\\n")',
        ),
        Replace(
            "fairseq_cli/preprocess.py",
            'open(src_file_name, "r", encoding="utf-8")',
            'open(src_file_name, encoding="utf-8", newline="\\n")',
        ),
        Replace(
            "fairseq_cli/preprocess.py",
            'open(tgt_file_name, "r", encoding="utf-8")',
            'open(tgt_file_name, encoding="utf-8", newline="\\n")',
        ),
    ),
    Edit(
        "raw-dataset-lines",
        "a raw text dataset (--dataset-impl raw) counted lines another way than the binarised one",
        Replace(
            "fairseq/data/indexed_dataset.py",
            '        with open(path, "r", encoding="utf-8") as f:\n',
            '        with open(path, encoding="utf-8", newline="\\n") as f:\n',
        ),
    ),
    Edit(
        "replacement-lines",
        "the dictionary of --replace-unk was read with universal newlines in the locale's encoding",
        Replace(
            "fairseq/utils.py",
            '        with open(replace_unk, "r") as f:\n',
            '        with open(replace_unk, encoding="utf-8", newline="\\n") as f:\n',
        ),
    ),
    Edit(
        "interactive-lines",
        "input lines were counted with universal newlines and in the locale's encoding, one that cannot be decoded "
        "ended the run, and a byte order mark at the start was translated",
        Replace(
            "fairseq_cli/interactive.py",
            """\
    with fileinput.input(files=[input], openhook=fileinput.hook_encoded("utf-8")) as h:
        for src_str in h:
            buffer.append(src_str.strip())
""",
            """\
    source = 0 if input == "-" else input
    with open(source, "rb", closefd=source != 0) as h:
        for number, line in enumerate(iter(h.readline, b""), start=1):
            if number == 1:
                line = line[len(codecs.BOM_UTF8) :] if line.startswith(codecs.BOM_UTF8) else line
            try:
                buffer.append(line.decode("utf-8").strip())
            except UnicodeDecodeError:
                logger.warning(
                    f"line {number} of the input is not UTF-8; U+FFFD stands for what cannot be read"
                )
                buffer.append(line.decode("utf-8", errors="replace").strip())
""",
        ),
        # line by line from a pipe, an answer has to come before the next line; from a file, nobody waits for it
        Replace(
            "fairseq_cli/interactive.py",
            """\
    assert (
        not cfg.dataset.batch_size
        or cfg.dataset.batch_size <= cfg.interactive.buffer_size
    ), "--batch-size cannot be larger than --buffer-size"
""",
            """\
    if cfg.dataset.batch_size is not None and cfg.interactive.input != "-":
        cfg.interactive.buffer_size = max(
            cfg.interactive.buffer_size, cfg.dataset.batch_size
        )
""",
        ),
        Replace(
            "fairseq_cli/interactive.py",
            "        # update running id_ counter\n",
            "        sys.stdout.flush()\n\n        # update running id_ counter\n",
        ),
        Replace("fairseq_cli/interactive.py", "import ast\nimport fileinput\n", "import ast\nimport codecs\n"),
        Replace(
            "fairseq_cli/interactive.py",
            "from fairseq_cli.generate import get_symbols_to_strip_from_output\n",
            "from fairseq.user_error import UserError, tells_user_errors\n"
            "from fairseq_cli.generate import get_symbols_to_strip_from_output\n",
        ),
    ),
    Edit(
        "one-line-per-hypothesis",
        "a tokenizer with byte pieces can decode to a line feed, and one hypothesis would become two lines",
        Replace(
            "fairseq_cli/interactive.py",
            "                detok_hypo_str = decode_fn(hypo_str)\n",
            '                detok_hypo_str = decode_fn(hypo_str).replace("\\n", " ")\n',
        ),
        Replace(
            "fairseq_cli/generate.py",
            "                detok_hypo_str = decode_fn(hypo_str)\n",
            '                detok_hypo_str = decode_fn(hypo_str).replace("\\n", " ")\n',
        ),
        Replace(
            "fairseq_cli/generate.py",
            "            src_str = decode_fn(src_str)\n",
            '            src_str = decode_fn(src_str).replace("\\n", " ")\n',
        ),
        Replace(
            "fairseq_cli/generate.py",
            "                target_str = decode_fn(target_str)\n",
            '                target_str = decode_fn(target_str).replace("\\n", " ")\n',
        ),
        Replace(
            "fairseq_cli/generate.py",
            '        with open(output_path, "w", buffering=1, encoding="utf-8") as h:\n',
            "        with open(\n"
            '            output_path, "w", buffering=1, encoding="utf-8", newline="\\n"\n'
            "        ) as h:\n",
        ),
    ),
]
