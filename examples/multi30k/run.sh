#!/usr/bin/env bash
# Multi30k English-German as Wu et al. (2021) trained Transformer-Tiny, which published 41.02 tokenised lower-cased BLEU
# on the test set of 2016: from the tokenised text to a score of the same kind. On a CPU, or on one or two GPUs.
#   DATA        a folder with train, val and test_2016_flickr, each FILE.lc.norm.tok.en and FILE.lc.norm.tok.de, plain or
#               gzip; from github.com/multi30k/dataset, folder data/task1/tok
#   WORK        where everything goes (default: runs/multi30k in the checkout); ends with $WORK/score.json and
#               $WORK/report.html
#   VOCAB_SIZE  pieces of the joint vocabulary      ARCH  architecture      SEED  of the training
#   MAX_UPDATE  updates of the training             PATIENCE  epochs without a better development loss that end it
#   MAX_TOKENS  of half an update                   PRECISION  float32, bfloat16, or float16 (on GPUs)
#   VENV        environment (default: .venv in the checkout)
# Finished steps are skipped, and an interrupted training goes on, when it is run again.
set -euo pipefail
RECIPE=multi30k
source "$(dirname "${BASH_SOURCE[0]}")/../recipe.sh"

VOCAB_SIZE=${VOCAB_SIZE:-10000}
ARCH=${ARCH:-vaswani_tiny}
MAX_UPDATE=${MAX_UPDATE:-8000}
PATIENCE=${PATIENCE:-10}
SEED=${SEED:-1}
MAX_TOKENS=${MAX_TOKENS:-4096}
PRECISION=${PRECISION:-float32}
WARMUP=2000
# 0.005 sqrt(128 * 2000): the published peak rate of 0.005 at the width of the published model.
LR_FACTOR=2.5298
AVERAGED=10
require_numbers 1 VOCAB_SIZE MAX_UPDATE PATIENCE MAX_TOKENS
require_numbers 0 SEED
case $PRECISION in
  float32) PRECISION_FLAGS=() ;;
  bfloat16) PRECISION_FLAGS=(--mixed-precision) ;;
  float16) PRECISION_FLAGS=(--fp16) ;;
  *) fail "PRECISION=$PRECISION is none of float32, bfloat16 and float16" ;;
esac
[ -n "${DATA:-}" ] ||
  fail "DATA is not set: give the folder with train.lc.norm.tok.en and its like, data/task1/tok of https://github.com/multi30k/dataset"
DATA=$(absolute "$DATA")
[ -d "$DATA" ] || fail "DATA=$DATA is not a folder"
SOURCE_LANG=en TARGET_LANG=de
TRAIN=$DATA/train.lc.norm.tok VALID=$DATA/val.lc.norm.tok TEST=$DATA/test_2016_flickr.lc.norm.tok
FILES=()
for PART in "$TRAIN" "$VALID" "$TEST"; do
  for LANGUAGE in "$SOURCE_LANG" "$TARGET_LANG"; do
    FILE=$(existing_file "$PART.$LANGUAGE")
    FILES+=("$FILE")
  done
done

start_recipe
cd "$ROOT"
# The published setting trains on all pairs, so that there is nothing to clean.
TEXT=$WORK/text CLEAN=$WORK/text ENCODED=$WORK/encoded BINARY=$WORK/binary CHECKPOINTS=$WORK/checkpoints
MODEL=$WORK/vocabulary.model DICTIONARY=$WORK/vocabulary.dict.txt

# An update is two batches of MAX_TOKENS: one on each of two GPUs, or one after the other.
GPUS=$(python -c 'import torch; print(torch.cuda.device_count() if torch.cuda.is_available() else 0)')
DEVICES=$((GPUS >= 2 ? 2 : 1))
[ "$PRECISION" != float16 ] || ((GPUS)) || fail "PRECISION=float16 needs a GPU: leave it out, or take bfloat16"

# train SETTINGS MAX_UPDATE
train() {
  local settings=$1 last=$2
  settle_checkpoints "$settings" "$last"
  say "an update is 2 batches of at most $MAX_TOKENS tokens, $((2 / DEVICES)) on each of $DEVICES $( ((GPUS)) && echo GPU || echo CPU), $PRECISION"
  run_training "$last" --arch "$ARCH" --warmup-updates "$WARMUP" --lr-factor "$LR_FACTOR" --adam-eps 1e-8 \
    --clip-norm 25 --label-smoothing 0.1 --max-tokens "$MAX_TOKENS" --update-freq $((2 / DEVICES)) \
    --distributed-world-size "$DEVICES" "${PRECISION_FLAGS[@]}" --seed "$SEED" --patience "$PATIENCE" \
    --keep-last-epochs "$AVERAGED"
}

# The last ten epochs, as published; all of them when there are fewer, and the last checkpoint when there is not one.
average() {
  local files=("$CHECKPOINTS"/checkpoint[0-9]*.pt) count=0
  [ ! -e "${files[0]}" ] || count=${#files[@]}
  vaswani average "$CHECKPOINTS" --by epochs --last $((count == 0 ? 1 : count < $1 ? count : $1)) --output "$WORK/averaged.pt"
}

translate() {
  translate_part test "$WORK/averaged.pt" "$WORK/generate.txt"
}

# The text is tokenised and lower-cased already: its words count as they are.
score() {
  score_part test "$WORK/generate.txt" "$WORK/score.json" --tokenized --lowercase
}

step text take_text "$(cat "${FILES[@]}" | digest)"
step vocabulary vocabulary "$VOCAB_SIZE"
step encode encode
step binarise binarise
SETTINGS=$(printf '%s\n' "$CHAIN" "$ARCH" "$SEED" "$PATIENCE" "$WARMUP" "$LR_FACTOR" "$MAX_TOKENS" "$PRECISION" | digest)
step train train "$SETTINGS" "$MAX_UPDATE"
step average average "$AVERAGED"
step translate translate
step score score
step report report

show_result tokenized "BLEU, tokenised and lower-cased,"
# The published number belongs to its test set, of 12,103 words.
if grep -q '"ref_len": 12103' "$WORK/score.json"; then say "published for Transformer-Tiny on this test set: 41.02"; fi
say "score in $WORK/score.json, curves and more in $WORK/report.html, model in $WORK/averaged.pt, $(duration "$SECONDS") in all"
