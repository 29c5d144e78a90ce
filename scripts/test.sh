#!/usr/bin/env bash
# Sets up what is missing, then lint, types and tests. Arguments go to pytest: bash scripts/test.sh -k schedule
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
VENV=${VENV:-.venv}
bash scripts/setup.sh
PATH=$(cd "$VENV" && pwd)/bin:$PATH
export PATH
ruff check .
ruff format --check .
mypy
# Two processes with a thread for every core each would wait for each other most of the time.
export OMP_NUM_THREADS=1
# One file to a worker: the tests of a file may share a run of training.
exec python -m pytest --numprocesses 2 --dist loadfile "$@"
