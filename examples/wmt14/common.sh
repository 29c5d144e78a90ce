# What the WMT14 scripts share; sourced by them after the pair's settings.sh.

EXAMPLES=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$EXAMPLES/recipe.sh"
SHARED=$EXAMPLES/wmt14

# begin: what start_recipe does, and the names of what is in WORK; after choose_size also RUN, that size's folder.
begin() {
  start_recipe
  ARCHIVES=$WORK/archives TEXT=$WORK/text CLEAN=$WORK/clean ENCODED=$WORK/encoded BINARY=$WORK/binary
  MODEL=$WORK/vocabulary.model DICTIONARY=$WORK/vocabulary.dict.txt
  if [ -n "${SIZE:-}" ]; then RUN=$WORK/$SIZE CHECKPOINTS=$WORK/$SIZE/checkpoints; fi
  cd "$ROOT"
}

# after STEP SCRIPT: goes on where another script has ended, so that what follows is done over when that was.
after() {
  [ -e "$WORK/steps/$1" ] || fail "$2 has not been run to its end in $WORK: run it first"
  CHAIN=$(<"$WORK/steps/$1")
}

# choose_size base|big: sets SIZE and what the paper has for that size.
choose_size() {
  SIZE=$1
  case $SIZE in
    base) PAPER_ARCH=$BASE_ARCH PAPER_UPDATES=100000 SAVE_EVERY=1500 AVERAGED=5 ;;
    big) PAPER_ARCH=$BIG_ARCH PAPER_UPDATES=300000 SAVE_EVERY=600 AVERAGED=20 ;;
    *) fail "'$SIZE' is neither base nor big, the two models of the paper" ;;
  esac
}
