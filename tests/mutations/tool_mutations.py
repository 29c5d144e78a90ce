"""Faults in the tools around fairseq's: BLEU, translations, vocabulary, pieces, cleaning."""

from mutation import Mutation

_BLEU = "evaluation/bleu.py"
_CLEANING = "data/cleaning.py"
_SEGMENTATION = "data/segmentation.py"
_TRANSLATIONS = "evaluation/translations.py"
_VOCABULARY = "data/vocabulary.py"

_TEST_BLEU = "unit/test_bleu.py"
_TEST_CLEANING = "unit/test_cleaning.py"
_TEST_SEGMENTATION = "unit/test_segmentation.py"
_TEST_TRANSLATIONS = "unit/test_translations.py"
_TEST_VOCABULARY = "unit/test_vocabulary.py"

TOOLS = [
    Mutation(
        "BLEU without case", _BLEU, "BLEU(lowercase=lowercase, trg_lang", "BLEU(lowercase=True, trg_lang", _TEST_BLEU
    ),
    Mutation(
        "BLEU of the reference against the translation",
        _BLEU,
        "corpus_score(hypotheses, [references]",
        "corpus_score(references, [hypotheses]",
        _TEST_BLEU,
    ),
    Mutation(
        "worst of the n best is scored", _TRANSLATIONS, "score > known[0]", "score < known[0]", _TEST_TRANSLATIONS
    ),
    Mutation(
        "translations in the order of the output",
        _TRANSLATIONS,
        "[translations[sentence][1] for sentence in range(expected)]",
        "[text for _, text in translations.values()]",
        _TEST_TRANSLATIONS,
    ),
    Mutation(
        "pieces scored in place of text",
        _TRANSLATIONS,
        'self.best["D"] or self.best["H"]',
        'self.best["H"] or self.best["D"]',
        f"{_TEST_BLEU}::test_reference_comes_from_the_file_and_not_from_the_generate_output",
    ),
    Mutation(
        "no byte pieces",
        _VOCABULARY,
        "byte_fallback=True",
        "byte_fallback=False",
        f"{_TEST_VOCABULARY}::test_size_too_small_names_the_smallest_which_then_works",
    ),
    Mutation(
        "text is normalised",
        _VOCABULARY,
        'normalization_rule_name="identity"',
        'normalization_rule_name="nmt_nfkc"',
        _TEST_SEGMENTATION,
    ),
    Mutation(
        "spaces are merged",
        _VOCABULARY,
        "remove_extra_whitespaces=False",
        "remove_extra_whitespaces=True",
        _TEST_SEGMENTATION,
    ),
    Mutation(
        "ascending counts in the dictionary",
        _VOCABULARY,
        'f"{piece} {size - index}\\n"',
        'f"{piece} {index}\\n"',
        _TEST_VOCABULARY,
    ),
    Mutation(
        "literal word mark comes back as a space",
        _SEGMENTATION,
        "if WORD_START in line:",
        "if WORD_START * 99 in line:",
        _TEST_SEGMENTATION,
    ),
    Mutation(
        "length limit one word too strict",
        _CLEANING,
        "if longer > max_length:",
        "if longer >= max_length:",
        _TEST_CLEANING,
    ),
    Mutation(
        "ratio of the first language alone",
        _CLEANING,
        "shorter, longer = sorted((left, right))",
        "shorter, longer = left, right",
        _TEST_CLEANING,
    ),
]
