#!/usr/bin/env bash
# From nothing to a scored translation: text, vocabulary, training on a CPU, averaging, translation, BLEU.
#   WORK        where everything goes (default: runs/quickstart in the checkout); ends with $WORK/score.json and
#               $WORK/report.html
#   DATA        a folder with train, valid and test files in two languages, such as train.en and train.de, plain or
#               gzip (default: message catalogues of openly licensed packages, see catalogues.py)
#   VOCAB_SIZE  pieces of the joint vocabulary      ARCH  architecture      SEED  of the training
#   MAX_UPDATE  updates of the training             VENV  environment (default: .venv in the checkout)
# Finished steps are skipped, and an interrupted training goes on, when it is run again.
set -euo pipefail
RECIPE=quickstart
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"

VOCAB_SIZE=${VOCAB_SIZE:-4000}
ARCH=${ARCH:-vaswani_tiny}
MAX_UPDATE=${MAX_UPDATE:-1300}
SEED=${SEED:-1}
# Peak rate of the paper's schedule: LR_FACTOR / sqrt(d_model * WARMUP).
WARMUP=600
LR_FACTOR=0.85
# So few updates do not overfit: the base model's dropout, and small batches to make more updates of the time.
DROPOUT=0.1
MAX_TOKENS=2048
AVERAGED=5
require_numbers 1 VOCAB_SIZE MAX_UPDATE
require_numbers 0 SEED
# Ten checkpoints in all, and the mean of the last five of them (of all, when there are not even five updates).
SAVE_EVERY=$(((MAX_UPDATE + 9) / 10))
((MAX_UPDATE >= AVERAGED)) || AVERAGED=$MAX_UPDATE

start_recipe
cd "$ROOT"
TEXT=$WORK/text CLEAN=$WORK/clean ENCODED=$WORK/encoded BINARY=$WORK/binary CHECKPOINTS=$WORK/checkpoints
MODEL=$WORK/vocabulary.model DICTIONARY=$WORK/vocabulary.dict.txt

# train SETTINGS MAX_UPDATE
train() {
  local settings=$1 last=$2
  settle_checkpoints "$settings" "$last"
  run_training "$last" --arch "$ARCH" --dropout "$DROPOUT" --warmup-updates "$WARMUP" --lr-factor "$LR_FACTOR" \
    --adam-eps 1e-9 --max-tokens "$MAX_TOKENS" --seed "$SEED" --save-interval-updates "$SAVE_EVERY" \
    --keep-interval-updates "$AVERAGED" --no-epoch-checkpoints --validate-interval 1000 --distributed-world-size 1
}

average() {
  vaswani average "$CHECKPOINTS" --last "$AVERAGED" --output "$WORK/averaged.pt"
}

translate() {
  translate_part test "$WORK/averaged.pt" "$WORK/generate.txt"
}

score() {
  score_part test "$WORK/generate.txt" "$WORK/score.json"
}

text_step
step clean clean_messages "$SOURCE_LANG" "$TARGET_LANG"
step vocabulary vocabulary "$VOCAB_SIZE"
step encode encode
step binarise binarise
SETTINGS=$(printf '%s\n' "$CHAIN" "$ARCH" "$SEED" "$WARMUP" "$LR_FACTOR" "$DROPOUT" "$MAX_TOKENS" | digest)
step train train "$SETTINGS" "$MAX_UPDATE"
step average average "$AVERAGED"
step translate translate
step score score
step report report

show_result sacrebleu BLEU
say "score in $WORK/score.json, curves and more in $WORK/report.html, model in $WORK/averaged.pt, $(duration "$SECONDS") in all"
