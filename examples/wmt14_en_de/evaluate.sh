#!/usr/bin/env bash
# Scores a training on WMT14 English-German: bash evaluate.sh [base|big]   (default: the one trained last)
#   WORK        where train.sh has worked; ends with $WORK/score.json     VENV  environment
#   BATCH_SIZE  sentences translated at once (default: 64); it does not change the translations
#   TFLOPS      sustained single-precision TFLOPS of one GPU, to count FLOPs as the paper's Table 2 does (default: the
#               paper's number, for the GPUs that it has one for)
# Finished steps are skipped when it is run again.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../wmt14/evaluate.sh"
