# What is particular to WMT14 English-French; sourced by the scripts beside it.
RECIPE=wmt14_en_fr
SOURCE_LANG=en TARGET_LANG=fr
# Names in ../wmt14/archives.py, with addresses, sizes and check sums.
CORPORA=(europarl-v7 commoncrawl un news-commentary-v9 giga-fren)
VOCAB_SIZE=${VOCAB_SIZE:-32000}
BASE_ARCH=vaswani_base BIG_ARCH=vaswani_big_en_fr
