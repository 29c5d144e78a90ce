"""The Transformer of "Attention Is All You Need" for fairseq.

Importing this package registers the model and its architectures, the criterion, the learning-rate scheduler and
the task; fairseq's ``--user-dir`` imports it.
"""

import os as _os
import sys as _sys

__version__ = "0.1.0"

# The parts name each other by this name, so a copy under another one would load the installed plugin's.
if __name__ != "vaswani_plugin":
    raise ImportError(f"the plugin's folder must be called vaswani_plugin, not {__name__}: rename it")

try:
    import fairseq as _fairseq  # noqa: F401
except (ImportError, ValueError) as error:
    # The ValueError is that of an unmended fairseq's dataclasses on Python 3.11 and later.
    raise ImportError(
        f"vaswani_plugin cannot import fairseq ({error}): install one that runs on this Python with "
        'pip install "$(python scripts/build_fairseq.py)" from the plugin\'s repository'
    ) from error
except KeyboardInterrupt:
    # As ``vaswani`` these are its first seconds; what imports the package otherwise answers for itself.
    if _os.path.basename(_sys.argv[0]) not in ("vaswani", "-m"):
        raise
    print("vaswani: interrupted", file=_sys.stderr)
    _sys.exit(130)

# fairseq scans only models/ and tasks/, and not even those when the package was imported before: name all parts here.
import vaswani_plugin.criterions.label_smoothing
import vaswani_plugin.models.architectures
import vaswani_plugin.models.vaswani_transformer
import vaswani_plugin.optim.inverse_sqrt
import vaswani_plugin.tasks.vaswani_translation  # noqa: F401
