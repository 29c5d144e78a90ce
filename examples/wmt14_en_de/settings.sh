# What is particular to WMT14 English-German; sourced by the scripts beside it.
RECIPE=wmt14_en_de
SOURCE_LANG=en TARGET_LANG=de
# Names in ../wmt14/archives.py, with addresses, sizes and check sums.
CORPORA=(europarl-v7 commoncrawl news-commentary-v9)
VOCAB_SIZE=${VOCAB_SIZE:-37000}
BASE_ARCH=vaswani_base BIG_ARCH=vaswani_big
