# Sourced by the pairs' evaluate.sh: the mean of the last checkpoints and the last one alone, translated and scored.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
(($# <= 1)) || fail "usage: evaluate.sh [base|big] (default: the one trained last)"
BATCH_SIZE=${BATCH_SIZE:-64}
TFLOPS=${TFLOPS:-}
require_numbers 1 BATCH_SIZE
WORK=$(absolute "${WORK:-$ROOT/runs/$RECIPE}")
if (($# == 0)); then
  [ -e "$WORK/last_trained" ] || fail "train.sh has not been run to its end in $WORK: run it first"
  set -- "$(<"$WORK/last_trained")"
fi
choose_size "$1"
begin
after "train-$SIZE" "train.sh $SIZE"
AVERAGED=$(<"$RUN/averaged")
LAST=$CHECKPOINTS/checkpoint_last.pt

average() {
  vaswani average "$CHECKPOINTS" --last "$AVERAGED" --output "$RUN/averaged.pt"
}

# translate CHECKPOINT PART NAME: the search is the task's own, which is the paper's.
translate() {
  fairseq-generate "$BINARY" --user-dir "$ROOT/vaswani_plugin" --task vaswani_translation \
    --source-lang "$SOURCE_LANG" --target-lang "$TARGET_LANG" --path "$1" --gen-subset "$2" \
    --bpe sentencepiece --sentencepiece-model "$MODEL" --batch-size "$BATCH_SIZE" 2>"$RUN/$3.log" >"$RUN/$3.txt.tmp" ||
    { cat "$RUN/$3.log" >>"$LOG"; return 1; }
  mv "$RUN/$3.txt.tmp" "$RUN/$3.txt"
}

score() {
  # The dictionary's file leaves out fairseq's four special symbols.
  local symbols=$(($(LC_ALL=C grep -c '' "$BINARY/dict.$TARGET_LANG.txt") + 4))
  python "$SHARED/report.py" "$RUN" "$TEXT" "$TARGET_LANG" --tflops "${TFLOPS:-0}" \
    --vocabulary "$symbols" --output "$RUN/score.json"
}

step "average-$SIZE" average "$AVERAGED"
step "test-averaged-$SIZE" translate "$RUN/averaged.pt" test test_averaged
step "test-last-$SIZE" translate "$LAST" test test_last
step "development-last-$SIZE" translate "$LAST" valid development_last
step "score-$SIZE" score "$(cat "$SHARED/report.py" | digest)" "$TFLOPS"
# The one evaluated last, be it base or big.
cp "$RUN/score.json" "$WORK/score.json.tmp"
mv "$WORK/score.json.tmp" "$WORK/score.json"
python "$SHARED/report.py" --show "$RUN/score.json"
say "scores in $WORK/score.json, model in $RUN/averaged.pt"
