#!/usr/bin/env bash
# Makes the environment that recipes and tests use: fairseq for today's Python, torch, this plugin, and the tools.
#   VENV    where (default: .venv in the checkout)
#   PYTHON  which Python, 3.10 to 3.13 (default: python3)
# Finished work is kept: a second run takes seconds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
VENV=${VENV:-.venv}
PYTHON=${PYTHON:-python3}

say() { echo "setup: $*" >&2; }

command -v "$PYTHON" >/dev/null || { say "there is no $PYTHON; set PYTHON to a Python 3.10 to 3.13"; exit 1; }
"$PYTHON" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' ||
  { say "$PYTHON is $("$PYTHON" -V 2>&1), and 3.10 to 3.13 work; set PYTHON to one of those"; exit 1; }

# What the environment was made from; a different answer means that it has to be made again.
recipe=$("$PYTHON" -V; cat setup.py scripts/constraints.txt scripts/requirements.txt; cat scripts/build_fairseq.py; find scripts/fairseq_edits -name '*.py' | sort | xargs cat)
recipe=$(printf '%s\n%s' "$PWD" "$recipe" | sha256sum | cut -d' ' -f1)
if [ "$(cat "$VENV/.vaswani-setup" 2>/dev/null)" = "$recipe" ]; then
  say "$VENV is up to date"
  exit 0
fi

"$PYTHON" -c 'import venv, ensurepip' 2>/dev/null ||
  { say "$PYTHON lacks its venv module (on Debian or Ubuntu: apt install python3-venv)"; exit 1; }
# First of all, because it is the step that may lack something on this machine: a compiler.
wheel=$("$PYTHON" scripts/build_fairseq.py)
if [ ! -x "$VENV/bin/python" ]; then
  say "creating $VENV"
  "$PYTHON" -m venv "$VENV"
fi
rm -f "$VENV/.vaswani-setup"
say "installing torch and the other packages into $VENV (the first time: a minute or more)"
pip() { "$VENV/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }
# A rebuilt wheel has the same version, which pip would take for installed.
pip install --force-reinstall --no-deps "$wheel"
pip install --constraint scripts/constraints.txt --requirement scripts/requirements.txt "$wheel" --editable ".[figures,export]"
pip check >&2
echo "$recipe" >"$VENV/.vaswani-setup.tmp"
mv "$VENV/.vaswani-setup.tmp" "$VENV/.vaswani-setup"
say "$VENV is ready: source $VENV/bin/activate"
