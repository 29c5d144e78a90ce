# What the recipes share; sourced, not run: steps that are timed, logged, skipped when finished and explained when
# they fail. A recipe sets RECIPE (its name) before sourcing, calls `start_recipe`, then `step NAME COMMAND...`.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CALLED_FROM=$PWD
# Hash over all steps so far: a step is done over when anything before it has changed.
CHAIN=start
# Set once a step has run: what follows is done over too.
REDO=
# The log of the running step; a command with much to say writes there and prints only what a person wants to see.
LOG=/dev/null

say() { printf '%s\n' "$RECIPE: $*"; }
fail() { printf '%s\n' "$RECIPE: $*" >&2; exit 1; }

# A path given by the user counts from where the recipe was called.
absolute() { case $1 in /*) printf '%s' "$1" ;; *) printf '%s' "$CALLED_FROM/$1" ;; esac; }

digest() { cksum | tr ' ' '-'; }
cores() { getconf _NPROCESSORS_ONLN; }
# Seconds as 1 min 05 s.
duration() { if (($1 < 60)); then printf '%d s' "$1"; else printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); fi; }

# require_numbers LEAST NAME...: checks variables of the environment.
require_numbers() {
  local least=$1 name
  shift
  for name; do
    if ! [[ ${!name} =~ ^[0-9]{1,9}$ ]] || ((10#${!name} < least)); then
      fail "$name=${!name} is not a whole number of at least $least"
    fi
  done
}

# Makes WORK and VENV absolute, sets up the environment if there is none, and puts it first on the PATH.
start_recipe() {
  WORK=$(absolute "${WORK:-$ROOT/runs/$RECIPE}")
  VENV=$(absolute "${VENV:-$ROOT/.venv}")
  mkdir -p "$WORK/steps" "$WORK/logs"
  # A worker that follows the first one of a training uses what that one has locked and set up.
  if [ -z "${FOLLOWS:-}" ] && command -v flock >/dev/null; then
    exec 9>"$WORK/lock"
    flock -n 9 || fail "another run is at work in $WORK; wait for it, or choose another WORK"
  fi
  # An environment that the set-up made is brought up to date (at once when it is); a user's own is left alone.
  if [ ! -x "$VENV/bin/vaswani" ] || [ -e "$VENV/.vaswani-setup" ]; then
    VENV=$VENV bash "$ROOT/scripts/setup.sh" 9>&-
  fi
  PATH=$VENV/bin:$PATH
  export PATH
  trap 'say "interrupted; run it again to go on from here" >&2; exit 130' INT TERM
}

# is_done NAME COMMAND...: whether the step has succeeded before with the same arguments after the same earlier steps.
is_done() { [ "$(cat "$WORK/steps/$1" 2>/dev/null)" = "$(printf '%s\n' "$CHAIN" "$@" | digest)" ]; }

# step NAME COMMAND...: runs the command, a shell function as a rule, unless it has succeeded before with the same
# arguments after the same earlier steps. What decides about the result must therefore be among the arguments.
step() {
  local name=$1 begun=$SECONDS status known=
  if [ -z "$REDO" ] && is_done "$@"; then known=yes; fi
  CHAIN=$(printf '%s\n' "$CHAIN" "$@" | digest)
  shift
  if [ -n "$known" ]; then
    say "$name: done before"
    return
  fi
  say "$name ..."
  REDO=yes
  rm -f "$WORK/steps/$name"
  LOG=$WORK/logs/$name.log
  : >"$LOG"
  # As a condition the command would run without its errexit; this way it stops at its first error.
  set +e
  (
    set -euo pipefail
    "$@"
  )
  status=$?
  set -e
  if ((status)); then
    if [ -s "$LOG" ]; then
      tail -n 15 "$LOG" >&2
      fail "step '$name' failed (exit status $status); above is the end of $LOG"
    fi
    fail "step '$name' failed (exit status $status)"
  fi
  printf '%s\n' "$CHAIN" >"$WORK/steps/$name"
  say "$name: $(duration $((SECONDS - begun))), $(duration "$SECONDS") in all"
}

# The steps between text and training. They read TEXT, CLEAN, ENCODED, BINARY (folders), MODEL, DICTIONARY,
# SOURCE_LANG and TARGET_LANG.

# clean_messages SOURCE_LANG TARGET_LANG: they are short, so that a ratio of 1.5, which suits sentences, would drop good
# ones.
clean_messages() {
  rm -rf "$CLEAN"
  vaswani clean --source "$TEXT/train.$1" --target "$TEXT/train.$2" --output "$CLEAN/train" --max-ratio 3
}

vocabulary() {
  vaswani vocabulary --size "$1" --output "$WORK/vocabulary" "$CLEAN/train.$SOURCE_LANG" "$CLEAN/train.$TARGET_LANG"
}

encode() {
  rm -rf "$ENCODED"
  mkdir -p "$ENCODED"
  vaswani encode --model "$MODEL" --output "$ENCODED" "$CLEAN/train."* "$TEXT/valid."* "$TEXT/test."*
}

binarise() {
  rm -rf "$BINARY" "$BINARY.tmp"
  fairseq-preprocess --source-lang "$SOURCE_LANG" --target-lang "$TARGET_LANG" --srcdict "$DICTIONARY" \
    --joined-dictionary --trainpref "$ENCODED/train" --validpref "$ENCODED/valid" --testpref "$ENCODED/test" \
    --destdir "$BINARY.tmp" --workers "$(cores)" >>"$LOG" 2>&1
  mv "$BINARY.tmp" "$BINARY"
}

# settle_checkpoints SETTINGS MAX_UPDATE: training goes on from the last checkpoint of the same settings, whatever
# MAX_UPDATE was then; checkpoints of other settings, or beyond MAX_UPDATE, are put aside. Killed anywhere, it does the
# same the next time: a folder without settings is empty, and there is never half a line of them.
settle_checkpoints() {
  local settings=$1 last=$2 before=
  if [ -e "$CHECKPOINTS/settings" ]; then before=$(<"$CHECKPOINTS/settings"); fi
  if [ -n "$(ls -A "$CHECKPOINTS" 2>/dev/null)" ] &&
    { [ "${before% *}" != "$settings" ] || { ((${before##* } > last)) && beyond "$last"; }; }; then
    say "the settings have changed: the earlier checkpoints are now in $CHECKPOINTS.before"
    rm -rf "$CHECKPOINTS.before"
    mv "$CHECKPOINTS" "$CHECKPOINTS.before"
  fi
  mkdir -p "$CHECKPOINTS"
  printf '%s %s\n' "$settings" "$last" >"$CHECKPOINTS.settings.tmp"
  mv "$CHECKPOINTS.settings.tmp" "$CHECKPOINTS/settings"
}

# beyond UPDATE: whether a checkpoint may be of a later update, which fairseq logs before it writes one.
beyond() {
  [ ! -e "$CHECKPOINTS/train.log" ] || LC_ALL=C awk -v last="$1" \
    '/Preparing to save checkpoint/ && $(NF - 1) > last { later = 1 } END { exit !later }' "$CHECKPOINTS/train.log"
}

# Readers of the training's log outlive a signal to the whole group, so that it can still write its last checkpoint.
deaf() { (trap '' INT TERM; exec "$@"); }

# run_training MAX_UPDATE ARGUMENT...: fairseq-train on BINARY into CHECKPOINTS, where its log of all starts is too.
run_training() {
  local last=$1
  shift
  # A line that a kill has cut off must not swallow the first one of this start.
  if [ -n "$(tail -c 1 "$CHECKPOINTS/train.log" 2>/dev/null)" ]; then echo >>"$CHECKPOINTS/train.log"; fi
  fairseq-train "$BINARY" --user-dir "$ROOT/vaswani_plugin" --task vaswani_translation \
    --criterion vaswani_label_smoothing --lr-scheduler vaswani_inverse_sqrt --optimizer adam --adam-betas '(0.9,0.98)' \
    --max-update "$last" --save-dir "$CHECKPOINTS" --num-workers 0 --log-format json --log-interval 25 \
    "$@" 2>&1 | deaf tee -a "$LOG" "$CHECKPOINTS/train.log" | deaf python "$ROOT/examples/training_progress.py" "$last"
}

# translate_part PART CHECKPOINT OUTPUT: by the paper's search.
translate_part() {
  local total
  total=$(LC_ALL=C grep -c '' "$TEXT/$1.$SOURCE_LANG")
  fairseq-generate "$BINARY" --user-dir "$ROOT/vaswani_plugin" --task vaswani_translation --path "$2" --gen-subset "$1" \
    --bpe sentencepiece --sentencepiece-model "$MODEL" --batch-size 64 2>>"$LOG" |
    LC_ALL=C awk -v output="$3.tmp" -v total="$total" '{ print >output }
      /^D-/ && ++done % 200 == 0 { printf "  %d of %d sentences\n", done, total; fflush() }'
  mv "$3.tmp" "$3"
}

# score_part PART TRANSLATIONS OUTPUT ARGUMENT...
score_part() {
  vaswani score --hypothesis "$2" --reference "$TEXT/$1.$TARGET_LANG" --target-lang "$TARGET_LANG" --json "${@:4}" \
    >"$3.tmp"
  mv "$3.tmp" "$3"
}

report() {
  vaswani report "$WORK" >>"$LOG"
}

# show_result KIND NAME: five translations, and the BLEU of this kind in score.json.
show_result() {
  say "five sentences of the test set:"
  python "$ROOT/examples/samples.py" "$TEXT/test.$SOURCE_LANG" "$TEXT/test.$TARGET_LANG" "$WORK/generate.txt"
  python - "$WORK/score.json" "$1" "$2" <<'PYTHON'
import json, sys
bleu = json.load(open(sys.argv[1]))[sys.argv[2]]
print(f"{sys.argv[3]} {bleu['score']:.2f}  ({bleu['signature']})")
PYTHON
}

# take_file FROM TO: a copy, unpacked when FROM is gzip.
take_file() {
  if [ "$(head -c 2 "$1" | od -An -tx1 | tr -d ' ')" = 1f8b ]; then gzip -dc <"$1" >"$2"; else cat "$1" >"$2"; fi
}

# find_text DIR: sets SOURCE_LANG and TARGET_LANG, and TRAIN, VALID and TEST to the names of the parts without their
# language. Takes train, valid (or val, dev) and test, each FILE.LANGUAGE or FILE.LANGUAGE.gz.
find_text() {
  local file language languages=() rest
  for file in "$1"/train.*; do
    [ -e "$file" ] || fail "there is no train.LANGUAGE (such as train.en and train.de) in $1"
    rest=${file##*/train.}
    language=${rest%.gz}
    [[ $language == *.* || " ${languages[*]-} " == *" $language "* ]] || languages+=("$language")
  done
  ((${#languages[@]} == 2)) || fail "$1 needs train.LANGUAGE for two languages, but has: ${languages[*]}"
  SOURCE_LANG=${languages[0]} TARGET_LANG=${languages[1]}
  if [ "$TARGET_LANG" = en ]; then SOURCE_LANG=en TARGET_LANG=${languages[0]}; fi
  TRAIN=$1/train
  VALID=$(find_part "$1" valid val dev)
  TEST=$(find_part "$1" test)
}

# find_part DIR NAME...: the file, without its language, of the first name that is there; NAME_2016 does for NAME.
find_part() {
  local folder=$1 name file found=()
  shift
  for name; do
    for file in "$folder/$name.$SOURCE_LANG" "$folder/$name"_*".$SOURCE_LANG" \
      "$folder/$name.$SOURCE_LANG.gz" "$folder/$name"_*".$SOURCE_LANG.gz"; do
      [ -e "$file" ] || continue
      file=${file%.gz}
      file=${file%."$SOURCE_LANG"}
      [[ ${file##*/} == *.* ]] || found+=("$file")
    done
    ((${#found[@]} == 0)) || break
  done
  ((${#found[@]} > 0)) || fail "there is no $1.$SOURCE_LANG in $folder"
  ((${#found[@]} == 1)) || fail "$folder has several: ${found[*]##*/}; leave one of them there"
  printf '%s' "${found[0]}"
}

# existing_file NAME: NAME, or NAME.gz.
existing_file() {
  if [ -e "$1" ]; then printf '%s' "$1"; elif [ -e "$1.gz" ]; then printf '%s' "$1.gz"; else fail "there is no $1"; fi
}

# take_text DIGEST: the user's text, unpacked and under the names of the recipe.
take_text() {
  local part from language file counts
  rm -rf "$TEXT" "$TEXT.tmp"
  mkdir -p "$TEXT.tmp"
  for part in train valid test; do
    case $part in train) from=$TRAIN ;; valid) from=$VALID ;; test) from=$TEST ;; esac
    counts=()
    for language in "$SOURCE_LANG" "$TARGET_LANG"; do
      file=$(existing_file "$from.$language")
      take_file "$file" "$TEXT.tmp/$part.$language"
      # An unfinished last line is a line too, which wc does not count.
      counts+=("$(LC_ALL=C grep -c '' "$TEXT.tmp/$part.$language")")
    done
    ((counts[0] == counts[1])) ||
      fail "$from: $((counts[0])) lines of $SOURCE_LANG but $((counts[1])) of $TARGET_LANG; they must be translations line by line"
    say "$((counts[0])) pairs from $from"
  done
  mv "$TEXT.tmp" "$TEXT"
}

# fetch_text DIGEST: the catalogues' text.
fetch_text() {
  rm -rf "$TEXT"
  python "$ROOT/examples/quickstart/catalogues.py" "$TEXT"
}

# text_step: the step for the text: that of the user in DATA, or the catalogues'. Sets SOURCE_LANG and TARGET_LANG.
text_step() {
  if [ -n "${DATA:-}" ]; then
    DATA=$(absolute "$DATA")
    [ -d "$DATA" ] || fail "DATA=$DATA is not a folder"
    find_text "$DATA"
    step text take_text "$(cat "$TRAIN".* "$VALID".* "$TEST".* | digest)" "$SOURCE_LANG" "$TARGET_LANG"
  else
    SOURCE_LANG=en TARGET_LANG=de
    step text fetch_text "$(cat "$ROOT"/examples/quickstart/catalogues.* | digest)"
  fi
}
