"""``python -m vaswani_plugin`` is the ``vaswani`` command."""

import sys

from vaswani_plugin.cli import main

if __name__ == "__main__":
    sys.exit(main())
