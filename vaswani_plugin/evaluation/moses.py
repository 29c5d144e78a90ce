"""Words as Moses separates them, and German compounds as the paper's authors split them, for BLEU that counts words."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

# "rich-text" becomes "rich ##AT##-##AT## text", on both sides.
_COMPOUND = re.compile(r"(\S)-(\S)")
# No language by whose words Moses can count.
WITHOUT_SPACES = frozenset({"ja", "km", "lo", "my", "th", "zh"})


class MosesWords:
    """Moses' tokeniser (sacremoses with its defaults: entities, no splitting of dashes) for one language.

    A line that comes again, as most do on both sides and before and after a replacement, is tokenised once.
    """

    def __init__(self, language: str) -> None:
        from sacremoses.tokenize import MosesTokenizer  # type: ignore[import-untyped]  # here: it takes over a second

        self._tokenizer: Any = MosesTokenizer(lang=language)
        self._known: dict[str, str] = {}

    def separated(self, lines: Sequence[str]) -> list[str]:
        """The lines with a space between any two words."""
        for line in lines:
            if line not in self._known:
                self._known[line] = self._tokenizer.tokenize(line, return_str=True)
        return [self._known[line] for line in lines]


@cache
def tokenizer_signature(language: str) -> str:
    """What tokenised, in the form of a value in sacreBLEU's signatures."""
    from sacremoses import __version__  # type: ignore[import-untyped]

    return f"sacremoses-{__version__}-{language}"


def split_compounds(line: str) -> str:
    """Hyphens inside words become words, as in the script with which the paper's BLEU was computed."""
    return _COMPOUND.sub(r"\1 ##AT##-##AT## \2", line)


def plain_punctuation(lines: Sequence[str]) -> list[str]:
    """Moses' replacement of Unicode's punctuation by ASCII's, which that script does to raw text first."""
    from sacremoses.normalize import MosesPunctNormalizer  # type: ignore[import-untyped]

    replace = MosesPunctNormalizer().replace_unicode_punct
    # The replacement is forty substitutions, none of which ASCII has anything for.
    return [line if line.isascii() else replace(line) for line in lines]
