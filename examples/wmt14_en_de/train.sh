#!/usr/bin/env bash
# The paper's training on WMT14 English-German: bash train.sh base|big [--dry-run]   (--dry-run prints the command)
#   WORK           where prepare.sh has worked     VENV  environment
#   ARCH           architecture (default: vaswani_base or vaswani_big)
#   MAX_UPDATE     updates (default: 100000 or 300000)      SEED  of the training (default: 1)
#   UPDATE_TOKENS  source, and target, tokens that an update sees (default: 25000)
#   MAX_TOKENS     tokens with padding that a device takes at once (default: from its memory)
#   PRECISION      bfloat16 (products only), float16 or float32 (default: the first of them that the GPU is made for)
#   WANDB_PROJECT  also log to that project of Weights & Biases (default: none)
#   NNODES, NODE_RANK, MASTER_ADDR, MASTER_PORT  several machines, unless SLURM's srun or torchrun says so already
# An interrupted training goes on from its last checkpoint when it is run again.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../wmt14/train.sh"
