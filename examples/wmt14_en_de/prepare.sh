#!/usr/bin/env bash
# WMT14 English-German from the archives to binarised text: download, unpack, clean, vocabulary, pieces.
#   WORK          where everything goes (default: runs/wmt14_en_de in the checkout)
#   WMT14_MIRROR  a folder, or an http address, with the archives under their official names; a SHA256SUMS file there
#                 replaces the built-in check sums (default: the official servers)
#   VOCAB_SIZE    pieces of the joint vocabulary (default: 37000)
#   MAX_LENGTH, MAX_RATIO  words of a side, and of the longer per shorter, to keep a pair (default: 175, 3)
#   VENV          environment (default: .venv in the checkout)
# Finished steps are skipped, and an interrupted download goes on, when it is run again.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../wmt14/prepare.sh"
