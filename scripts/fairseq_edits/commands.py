# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Robustness of the command-line tools: mistakes of the user end in one sentence and a status that is not 0."""

from fairseq_edits.edit import Edit, Replace

_IMPORT = "from fairseq.user_error import tells_user_errors\n"

# (tool, an import line that ours goes after)
_TOOLS = (
    ("train", "from fairseq.trainer import Trainer\n"),
    ("generate", "from fairseq.logging.meters import StopwatchMeter, TimeMeter\n"),
    ("validate", "from fairseq.utils import reset_logging\n"),
    ("eval_lm", "from fairseq.sequence_scorer import SequenceScorer\n"),
    ("preprocess", "from fairseq.data import Dictionary\n"),
)

EDITS = [
    Edit(
        "one-sentence",
        "a mistake of the user ended in a traceback",
        *(Replace(f"fairseq_cli/{tool}.py", line, line + _IMPORT) for tool, line in _TOOLS),
        *(
            Replace(f"fairseq_cli/{tool}.py", "def cli_main(", "@tells_user_errors\ndef cli_main(")
            for tool in ("train", "generate", "interactive", "validate", "eval_lm", "preprocess")
        ),
    ),
    Edit(
        "validate-task",
        "fairseq-validate had no default task and died in KeyError: None; the checkpoint's task is what counts",
        Replace(
            "fairseq/options.py",
            "def get_validation_parser(default_task=None):\n",
            'def get_validation_parser(default_task="translation"):\n',
        ),
    ),
    Edit(
        "model-overrides",
        "validation evaluated --model-overrides as code",
        Replace(
            "fairseq_cli/validate.py",
            '        overrides.update(eval(getattr(override_args, "model_overrides", "{}")))\n',
            """\
        overrides.update(
            ast.literal_eval(getattr(override_args, "model_overrides", "{}"))
        )
""",
        ),
        Replace("fairseq_cli/validate.py", "import logging\nimport os\n", "import ast\nimport logging\nimport os\n"),
    ),
    Edit(
        "unknown-choice",
        "an architecture, task or criterion that is not registered was answered with the list of all three hundred",
        Replace(
            "fairseq/options.py",
            "def get_preprocessing_parser(",
            """\
class FairseqArgumentParser(argparse.ArgumentParser):
    \"\"\"Names a missing --user-dir as the likely reason for an unknown architecture, task and the like.\"\"\"

    def error(self, message):
        head, choices, _ = message.partition(" (choose from")
        plugged = ("--arch", "--task", "--criterion", "--optimizer", "--lr-scheduler")
        if choices and any(option in head for option in plugged):
            message = f"{head}; if a plugin defines it, give the plugin's folder with --user-dir"
        super().error(message)


def get_preprocessing_parser(""",
        ),
        Replace(
            "fairseq/options.py",
            "    parser = argparse.ArgumentParser(allow_abbrev=False)\n",
            "    parser = FairseqArgumentParser(allow_abbrev=False)\n",
        ),
    ),
]
