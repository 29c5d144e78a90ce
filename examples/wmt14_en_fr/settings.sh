# What is particular to WMT14 English-French; sourced by the scripts beside it.
RECIPE=wmt14_en_fr
SOURCE_LANG=en TARGET_LANG=fr
# Names in ../wmt14/archives.py, with addresses, sizes and check sums.
CORPORA=(europarl-v7 commoncrawl un news-commentary-v9 giga-fren)
VOCAB_SIZE=${VOCAB_SIZE:-32000}
# With 175 words this leaves 35.5 million pairs, where the paper has 36.
MAX_RATIO=${MAX_RATIO:-1.5}
BASE_ARCH=vaswani_base BIG_ARCH=vaswani_big_en_fr
