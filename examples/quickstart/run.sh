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

# fetch_text DIGEST: the catalogues' text.
fetch_text() {
  rm -rf "$TEXT"
  python examples/quickstart/catalogues.py "$TEXT"
}

# take_text DIGEST: the user's text, unpacked and under the names of the recipe.
take_text() {
  local part from language file counts
  rm -rf "$TEXT"
  mkdir -p "$TEXT"
  for part in train valid test; do
    case $part in train) from=$TRAIN ;; valid) from=$VALID ;; test) from=$TEST ;; esac
    counts=()
    for language in "$SOURCE_LANG" "$TARGET_LANG"; do
      file=$(existing_file "$from.$language")
      take_file "$file" "$TEXT/$part.$language"
      # An unfinished last line is a line too, which wc does not count.
      counts+=("$(LC_ALL=C grep -c '' "$TEXT/$part.$language")")
    done
    ((counts[0] == counts[1])) ||
      fail "$from: $((counts[0])) lines of $SOURCE_LANG but $((counts[1])) of $TARGET_LANG; they must be translations line by line"
    say "$((counts[0])) pairs from $from"
  done
}

# Messages are short, so that a ratio of 1.5, which suits sentences, would drop good ones.
clean() {
  rm -rf "$CLEAN"
  vaswani clean --source "$TEXT/train.$1" --target "$TEXT/train.$2" --output "$CLEAN/train" --max-ratio 3
}

# train SETTINGS MAX_UPDATE
train() {
  local settings=$1 last=$2
  settle_checkpoints "$settings" "$last"
  fairseq-train "$BINARY" --user-dir vaswani_plugin --task vaswani_translation --arch "$ARCH" \
    --dropout "$DROPOUT" --criterion vaswani_label_smoothing --lr-scheduler vaswani_inverse_sqrt --warmup-updates "$WARMUP" \
    --lr-factor "$LR_FACTOR" --optimizer adam --adam-betas '(0.9,0.98)' --adam-eps 1e-9 --max-tokens "$MAX_TOKENS" \
    --max-update "$last" --seed "$SEED" --save-dir "$CHECKPOINTS" --save-interval-updates "$SAVE_EVERY" \
    --keep-interval-updates "$AVERAGED" --no-epoch-checkpoints --validate-interval 1000 --num-workers 0 \
    --distributed-world-size 1 --log-format json --log-interval 25 --log-file "$CHECKPOINTS/train.log" 2>&1 | tee -a "$LOG" | python examples/training_progress.py "$last"
}

average() {
  vaswani average "$CHECKPOINTS" --last "$AVERAGED" --output "$WORK/averaged.pt"
}

translate() {
  local total
  total=$(LC_ALL=C grep -c '' "$TEXT/test.$SOURCE_LANG")
  fairseq-generate "$BINARY" --user-dir vaswani_plugin --task vaswani_translation --path "$WORK/averaged.pt" \
    --bpe sentencepiece --sentencepiece-model "$MODEL" --batch-size 64 2>>"$LOG" |
    LC_ALL=C awk -v output="$WORK/generate.txt.tmp" -v total="$total" '{ print >output }
      /^D-/ && ++done % 200 == 0 { printf "  %d of %d sentences\n", done, total; fflush() }'
  mv "$WORK/generate.txt.tmp" "$WORK/generate.txt"
}

score() {
  vaswani score --hypothesis "$WORK/generate.txt" --reference "$TEXT/test.$TARGET_LANG" --target-lang "$TARGET_LANG" \
    --json >"$WORK/score.json.tmp"
  mv "$WORK/score.json.tmp" "$WORK/score.json"
}

report() {
  vaswani report "$WORK" >>"$LOG"
}

if [ -n "${DATA:-}" ]; then
  DATA=$(absolute "$DATA")
  [ -d "$DATA" ] || fail "DATA=$DATA is not a folder"
  find_text "$DATA"
  step text take_text "$(cat "$TRAIN".* "$VALID".* "$TEST".* | digest)" "$SOURCE_LANG" "$TARGET_LANG"
else
  SOURCE_LANG=en TARGET_LANG=de
  step text fetch_text "$(cat examples/quickstart/catalogues.* | digest)"
fi
step clean clean "$SOURCE_LANG" "$TARGET_LANG"
step vocabulary vocabulary "$VOCAB_SIZE"
step encode encode
step binarise binarise
SETTINGS=$(printf '%s\n' "$CHAIN" "$ARCH" "$SEED" "$WARMUP" "$LR_FACTOR" "$DROPOUT" "$MAX_TOKENS" | digest)
step train train "$SETTINGS" "$MAX_UPDATE"
step average average "$AVERAGED"
step translate translate
step score score
step report report

say "five sentences of the test set:"
python examples/samples.py "$TEXT/test.$SOURCE_LANG" "$TEXT/test.$TARGET_LANG" "$WORK/generate.txt"
python - "$WORK/score.json" <<'PYTHON'
import json, sys
bleu = json.load(open(sys.argv[1]))["sacrebleu"]
print(f"BLEU {bleu['score']:.2f}  ({bleu['signature']})")
PYTHON
say "score in $WORK/score.json, curves and more in $WORK/report.html, model in $WORK/averaged.pt, $(duration "$SECONDS") in all"
