#!/usr/bin/env bash
# Table 1 of the paper, measured here: time and memory of a training step of one layer of self-attention, recurrence
# and convolution over the length n, and where they cross. Minutes on two cores.
#   WORK     where the results go (default: runs/complexity): complexity.json, complexity.png
#   LENGTHS  lengths n, several (default: 64 128 256 512 1024 2048 4096)
#   D_MODEL  width d, a multiple of 8 (default: 512)      VENV  environment (default: .venv in the checkout)
set -euo pipefail
RECIPE=complexity
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"

LENGTHS=${LENGTHS:-64 128 256 512 1024 2048 4096}
D_MODEL=${D_MODEL:-512}
require_numbers 1 D_MODEL
((D_MODEL % 8 == 0)) || fail "D_MODEL=$D_MODEL is not a multiple of 8, the number of heads"
read -ra N <<<"$LENGTHS"
((${#N[@]} >= 2)) || fail "LENGTHS='$LENGTHS' are too few for a curve: give at least two"
for LENGTH in "${N[@]}"; do require_numbers 1 LENGTH; done

start_recipe
cd "$ROOT"

# measure WIDTH LENGTH...
measure() {
  python examples/complexity/measure.py "$@" 2> >(tee -a "$LOG" >&2) >"$WORK/measured.jsonl.tmp"
  mv "$WORK/measured.jsonl.tmp" "$WORK/measured.jsonl"
}

step measure measure "$D_MODEL" "${N[@]}"
python examples/complexity/summary.py "$WORK/measured.jsonl" "$WORK"
say "$WORK/complexity.json, $WORK/complexity.png, $(duration "$SECONDS") in all"
