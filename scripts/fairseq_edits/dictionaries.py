# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Robustness of dictionary files: read with errors that name the line, and written whole."""

from fairseq_edits.edit import Edit, Replace

_DICTIONARY = "fairseq/data/dictionary.py"

EDITS = [
    Edit(
        "dictionary-errors",
        "a dictionary that cannot be read ended in a traceback that did not name the file",
        Replace(
            _DICTIONARY,
            """\
                raise Exception(
                    "Incorrect encoding detected in {}, please "
                    "rebuild the dataset".format(f)
                )
""",
            """\
                raise UserError(f"the dictionary {f} is not UTF-8; make it again with fairseq-preprocess")
""",
        ),
        Replace(
            _DICTIONARY,
            "        for line in lines[indices_start_line:]:\n",
            '        name = getattr(f, "name", "the dictionary")\n'
            "        for number, line in enumerate(lines[indices_start_line:], indices_start_line + 1):\n",
        ),
        Replace(
            _DICTIONARY,
            """\
                    raise RuntimeError(
                        "Duplicate word found when loading Dictionary: '{}'. "
                        "Duplicate words can overwrite earlier ones by adding the "
                        "#fairseq:overwrite flag at the end of the corresponding row "
                        "in the dictionary file. If using the Camembert model, please "
                        "download an updated copy of the model file.".format(word)
                    )
""",
            """\
                    raise UserError(
                        f"{name}, line {number}: the entry {word!r} is there a second time; remove it, or put "
                        "#fairseq:overwrite at the end of the line"
                    )
""",
        ),
        Replace(
            _DICTIONARY,
            """\
            except ValueError:
                raise ValueError(
                    f"Incorrect dictionary format, expected '<token> <cnt> [flags]': \\"{line}\\""
                )
""",
            """\
            except UserError:
                raise
            except ValueError:
                raise UserError(
                    f"{name}, line {number}: {line.rstrip()!r} is no entry of a dictionary; expected a token, a "
                    "space and its count"
                ) from None
""",
        ),
        Replace(
            _DICTIONARY,
            "from fairseq.tokenizer import tokenize_line\n",
            "from fairseq.leftovers import remove_leftovers\n"
            "from fairseq.tokenizer import tokenize_line\nfrom fairseq.user_error import UserError\n",
        ),
    ),
    Edit(
        "whole-dictionaries",
        "a dictionary was written under its final name from the first entry on",
        Replace(
            _DICTIONARY,
            """\
            with PathManager.open(f, "w", encoding="utf-8", newline="\\n") as fd:
                return self.save(fd)
""",
            """\
            remove_leftovers(f)
            passing = f"{f}.{os.getpid()}.tmp"
            try:
                with PathManager.open(
                    passing, "w", encoding="utf-8", newline="\\n"
                ) as fd:
                    self.save(fd)
                os.replace(passing, f)
            finally:
                if os.path.exists(passing):
                    os.remove(passing)
            return
""",
        ),
    ),
]
