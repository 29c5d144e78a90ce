# What is particular to WMT14 English-German; sourced by the scripts beside it.
RECIPE=wmt14_en_de
SOURCE_LANG=en TARGET_LANG=de
# Names in ../wmt14/archives.py, with addresses, sizes and check sums.
CORPORA=(europarl-v7 commoncrawl news-commentary-v9)
VOCAB_SIZE=${VOCAB_SIZE:-37000}
# By words, German compounds count as one: 1.5 would drop a tenth of the pairs, 3 leaves the 4.5 million of the paper.
MAX_RATIO=${MAX_RATIO:-3}
BASE_ARCH=vaswani_base BIG_ARCH=vaswani_big
