# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Mends of fairseq-score, of the BLEU scorer and of the score that fairseq-generate prints."""

from fairseq_edits.edit import Edit, Replace

EDITS = [
    Edit(
        "score-lines",
        "system and reference were read with universal newlines in the locale's encoding, paired up to the shorter "
        "one; text that is not UTF-8 and empty files ended in tracebacks, and --sentence-bleu called the scorer with "
        "arguments it no longer takes",
        Replace(
            "fairseq_cli/score.py",
            "            with open(args.ref) as fdref:\n",
            "            with opened(args.ref) as fdref:\n",
            count=3,
        ),
        Replace(
            "fairseq_cli/score.py",
            """\
    if args.sys == "-":
        score(sys.stdin)
    else:
        with open(args.sys, "r") as f:
            score(f)
""",
            """\
    with opened(0 if args.sys == "-" else args.sys) as f:
        score(f)
""",
        ),
        Replace(
            "fairseq_cli/score.py",
            """\
    assert args.sys == "-" or os.path.exists(
        args.sys
    ), "System output file {} does not exist".format(args.sys)
    assert os.path.exists(args.ref), "Reference file {} does not exist".format(args.ref)

    dict = dictionary.Dictionary()

    def readlines(fd):
        for line in fd.readlines():
            if args.ignore_case:
                yield line.lower()
            else:
                yield line
""",
            """\
    for what, path in (("system output", args.sys), ("reference", args.ref)):
        if path != "-" and not os.path.exists(path):
            raise MissingFile(f"the {what} file {path} does not exist")

    dict = dictionary.Dictionary()

    def opened(path):
        return open(path, "rb", closefd=path != 0)

    def readlines(fd, path):
        lines = []
        for number, line in enumerate(fd, 1):
            try:
                lines.append(line.decode("utf-8"))
            except UnicodeDecodeError as error:
                raise UserError(
                    f"{path}, line {number}: not UTF-8 (byte 0x{line[error.start]:02X} at position "
                    f"{error.start + 1}); convert the file to UTF-8"
                ) from None
        return [line.lower() for line in lines] if args.ignore_case else lines

    def pairs(fdsys, fdref):
        hypotheses, references = readlines(fdsys, args.sys), readlines(fdref, args.ref)
        if len(hypotheses) != len(references):
            raise UserError(
                f"{args.sys} has {len(hypotheses)} lines but {args.ref} has {len(references)}; "
                "they must match line by line"
            )
        if not references:
            raise UserError(f"{args.ref} is empty; give a reference with at least one line")
        return zip(hypotheses, references)
""",
        ),
        Replace(
            "fairseq_cli/score.py",
            "                print(sacrebleu.corpus_bleu(fdsys, [fdref]).format())\n",
            "                lines = [[side.rstrip() for side in pair] for pair in pairs(fdsys, fdref)]\n"
            "                hypotheses, references = map(list, zip(*lines))\n"
            "                print(sacrebleu.corpus_bleu(hypotheses, [references]).format())\n",
        ),
        Replace(
            "fairseq_cli/score.py",
            """\
                scorer = bleu.Scorer(dict.pad(), dict.eos(), dict.unk())
                for i, (sys_tok, ref_tok) in enumerate(
                    zip(readlines(fdsys), readlines(fdref))
                ):
""",
            """\
                scorer = bleu.Scorer(
                    bleu.BleuConfig(pad=dict.pad(), eos=dict.eos(), unk=dict.unk())
                )
                for i, (sys_tok, ref_tok) in enumerate(pairs(fdsys, fdref)):
""",
        ),
        Replace(
            "fairseq_cli/score.py",
            "                for sys_tok, ref_tok in zip(readlines(fdsys), readlines(fdref)):\n",
            "                for sys_tok, ref_tok in pairs(fdsys, fdref):\n",
        ),
        Replace("fairseq_cli/score.py", "import os\nimport sys\n", "import os\n"),
        Replace(
            "fairseq_cli/score.py",
            "from fairseq.scoring import bleu\n",
            "from fairseq.scoring import bleu\n"
            "from fairseq.user_error import MissingFile, UserError, tells_user_errors\n",
        ),
        Replace("fairseq_cli/score.py", "def cli_main():\n", "@tells_user_errors\ndef cli_main():\n"),
    ),
    Edit(
        "empty-translations",
        "a system output without a single token ended scoring in a division by zero",
        Replace(
            "fairseq/scoring/bleu.py",
            "        r = self.stat.reflen / self.stat.predlen\n",
            "        if self.stat.predlen == 0:\n            return 0.0\n"
            "        r = self.stat.reflen / self.stat.predlen\n",
        ),
    ),
    Edit(
        "empty-references",
        "references without a single token ended scoring, and with it fairseq-generate, in a division by zero",
        Replace(
            "fairseq/scoring/bleu.py",
            "            self.stat.predlen / self.stat.reflen,\n",
            '            self.stat.predlen / self.stat.reflen if self.stat.reflen else float("nan"),\n',
        ),
    ),
    Edit(
        "generate-sacrebleu",
        "--sacrebleu, which fairseq-generate itself recommends, was ignored without a word",
        Replace(
            "fairseq_cli/generate.py",
            "    scorer = scoring.build_scorer(cfg.scoring, tgt_dict)\n",
            """\
    if cfg.generation.sacrebleu and cfg.scoring._name not in ("bleu", "sacrebleu"):
        raise UserError(
            f"--sacrebleu and --scoring {cfg.scoring._name} ask for two scores; leave out one of them"
        )
    # bleu is there without being asked for
    as_sacrebleu = cfg.generation.sacrebleu and cfg.scoring._name == "bleu"
    scorer = scoring.build_scorer(
        "sacrebleu" if as_sacrebleu else cfg.scoring, tgt_dict
    )
""",
        ),
        Replace(
            "fairseq_cli/generate.py",
            "        if cfg.bpe and not cfg.generation.sacrebleu:\n",
            '        if cfg.bpe and not hasattr(scorer, "add_string"):\n',
        ),
    ),
]
