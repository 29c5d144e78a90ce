# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Mends of what grows with the length of a run."""

from fairseq_edits.edit import Edit, Replace

EDITS = [
    Edit(
        "metrics-keep-their-names",
        "each update left the name of a passing group of metrics behind, for the length of the run",
        Replace(
            "fairseq/logging/metrics.py",
            """\
    if _active_aggregators_cnt[name] == 0 and name in _active_aggregators:
        del _active_aggregators[name]
""",
            """\
    if _active_aggregators_cnt[name] == 0:
        del _active_aggregators_cnt[name]
        _active_aggregators.pop(name, None)
""",
        ),
    ),
    Edit(
        "interactive-keeps-its-input",
        "fairseq-interactive kept the data and batches of every buffer of lines that it had translated",
        Replace(
            "fairseq_cli/interactive.py",
            "        ignore_invalid_inputs=cfg.dataset.skip_invalid_size_inputs_valid_test,\n    ).next_epoch_itr",
            "        ignore_invalid_inputs=cfg.dataset.skip_invalid_size_inputs_valid_test,\n"
            "        disable_iterator_cache=True,\n    ).next_epoch_itr",
        ),
    ),
]
