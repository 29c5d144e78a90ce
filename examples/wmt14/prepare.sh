# Sourced by the pairs' prepare.sh: from archives to binarised text.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
MAX_LENGTH=${MAX_LENGTH:-175}
require_numbers 1 VOCAB_SIZE MAX_LENGTH
WMT14_MIRROR=${WMT14_MIRROR:-}
case $WMT14_MIRROR in
  '' | http://* | https://* | file:*) ;;
  *) WMT14_MIRROR=$(absolute "$WMT14_MIRROR") ;;
esac
export WMT14_MIRROR
begin

download() {
  python "$SHARED/fetch.py" "$ARCHIVES" "${CORPORA[@]}"
}

text() {
  rm -rf "$TEXT"
  python "$SHARED/assemble.py" "$ARCHIVES" "$TEXT" "$SOURCE_LANG" "$TARGET_LANG" "${CORPORA[@]}"
}

# clean MAX_LENGTH MAX_RATIO
clean() {
  rm -rf "$CLEAN"
  vaswani clean --source "$TEXT/train.$SOURCE_LANG" --target "$TEXT/train.$TARGET_LANG" --output "$CLEAN/train" \
    --max-length "$1" --max-ratio "$2" | tee "$LOG"
}

# The sums of a mirror that is a folder are known without asking; those of a server count when its address changes.
SUMS=${WMT14_MIRROR#file://}/SHA256SUMS
step download download "$WMT14_MIRROR" "$(cat "$SHARED/archives.py" "$([ -f "$SUMS" ] && echo "$SUMS" || echo /dev/null)" | digest)" "${CORPORA[@]}"
step text text "$(cat "$SHARED/assemble.py" "$SHARED/sgm.py" | digest)"
step clean clean "$MAX_LENGTH" "$MAX_RATIO"
step vocabulary vocabulary "$VOCAB_SIZE"
step encode encode
step binarise binarise
say "ready for train.sh: $BINARY"
