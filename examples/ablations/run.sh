#!/usr/bin/env bash
# Table 3 of the paper in small: a scaled-down base model and its variations (heads, d_k, layers, d_ff, dropout, label
# smoothing, learned positions), all trained alike on a CPU, beside the direction in which the paper's numbers moved.
#   WORK        where everything goes (default: runs/ablations in the checkout): score.json, ablations.txt, ablations.png
#   DATA        a folder with train, valid and test files in two languages, such as train.en and train.de, plain or
#               gzip (default: the quickstart's text)
#   ROWS        rows of Table 3, with base (default: base A1 A2 A3 A4 B1 B2 C1 C2 C3 C6 C7 D1 D2 D3 D4 E)
#   SEEDS       seeds; each row is trained once with each
#   MAX_UPDATE  updates of each training            VOCAB_SIZE  pieces of the joint vocabulary
#   VENV        environment (default: .venv in the checkout)
# Finished steps and rows are skipped, and an interrupted training goes on, when it is run again.
set -euo pipefail
RECIPE=ablations
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"

VOCAB_SIZE=${VOCAB_SIZE:-2000}
MAX_UPDATE=${MAX_UPDATE:-600}
read -ra NAMES <<<"${ROWS:-}"
read -ra SEED_LIST <<<"${SEEDS-1 2}"
# Peak rate of the paper's schedule: LR_FACTOR / sqrt(d_model * WARMUP).
WARMUP=300
LR_FACTOR=0.55
MAX_TOKENS=2048
require_numbers 1 VOCAB_SIZE MAX_UPDATE
((${#SEED_LIST[@]})) || fail "SEEDS is empty: give at least one"
for SEED in "${SEED_LIST[@]}"; do require_numbers 0 SEED; done

start_recipe
cd "$ROOT"
TEXT=$WORK/text CLEAN=$WORK/clean ENCODED=$WORK/encoded BINARY=$WORK/binary
MODEL=$WORK/vocabulary.model DICTIONARY=$WORK/vocabulary.dict.txt
PLAN=$(python examples/ablations/rows.py "${NAMES[@]}") || exit 1

# train SETTINGS MAX_UPDATE SEED ARGUMENT...
train() {
  local settings=$1 last=$2 seed=$3
  settle_checkpoints "$settings" "$last"
  run_training "$last" --arch vaswani_base "${@:4}" --warmup-updates "$WARMUP" --lr-factor "$LR_FACTOR" \
    --adam-eps 1e-9 --max-tokens "$MAX_TOKENS" --seed "$seed" --no-epoch-checkpoints --validate-interval 1000 \
    --distributed-world-size 1
  # As Table 3, of the last checkpoint alone.
  rm -f "$CHECKPOINTS/checkpoint_best.pt"
}

# evaluate FOLDER: as in Table 3, BLEU of the development set.
evaluate() {
  translate_part valid "$CHECKPOINTS/checkpoint_last.pt" "$1/generate.txt"
  score_part valid "$1/generate.txt" "$1/score.json"
}

text_step
step clean clean_messages "$SOURCE_LANG" "$TARGET_LANG"
step vocabulary vocabulary "$VOCAB_SIZE"
step encode encode
step binarise binarise
# The rows do not depend on each other, but each on the text.
PREPARED=$CHAIN PREPARED_ANEW=$REDO
while IFS=$'\t' read -r -u 3 NAME WORDS; do
  read -ra ARGUMENTS <<<"$WORDS"
  for SEED in "${SEED_LIST[@]}"; do
    CHAIN=$PREPARED REDO=$PREPARED_ANEW
    FOLDER=$WORK/rows/$NAME-seed$SEED
    CHECKPOINTS=$FOLDER/checkpoints
    mkdir -p "$FOLDER"
    SETTINGS=$(printf '%s\n' "$CHAIN" "$SEED" "$WARMUP" "$LR_FACTOR" "$MAX_TOKENS" "${ARGUMENTS[@]}" | digest)
    step "train-$NAME-seed$SEED" train "$SETTINGS" "$MAX_UPDATE" "$SEED" "${ARGUMENTS[@]}"
    step "score-$NAME-seed$SEED" evaluate "$FOLDER"
  done
done 3<<<"$PLAN"

python examples/ablations/results.py "$WORK" --seeds "${SEED_LIST[@]}" --rows "${NAMES[@]}"
say "$WORK/score.json, ablations.txt and ablations.png beside it, $(duration "$SECONDS") in all"
