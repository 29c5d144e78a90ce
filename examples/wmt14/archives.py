"""What the WMT14 recipes read: archives with their addresses and check sums, and the members that hold each corpus.

A check sum is one published by others who downloaded the file (sockeye-autopilot, sacreBLEU, tensorflow-datasets).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Archive:
    """One file of the servers; ``size`` in bytes, None where nobody has published it."""

    url: str
    size: int | None = None
    md5: str | None = None
    sha256: str | None = None

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[1]


# By year, because files of different years have the same name: there is a dev.tgz of nearly every one.
ARCHIVES: Mapping[str, Archive] = {
    "wmt13/training-parallel-europarl-v7.tgz": Archive(
        "https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",
        657_632_379,
        "c52404583294a1b609e56d45b2ed06f5",
        "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
    ),
    "wmt13/training-parallel-commoncrawl.tgz": Archive(
        "https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz",
        918_311_367,
        "7e0acbe86b0d7816300e14650f5b2bd4",
        "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
    ),
    "wmt13/training-parallel-un.tgz": Archive(
        "https://www.statmt.org/wmt13/training-parallel-un.tgz",
        2_365_634_246,
        "bb25a213ba9140023e4cc82c778bef53",
        "29141b5c1eba149a94f7a59d3b1a834b2e47fe0f8758d68dcd77a3d3f497ee47",
    ),
    "wmt10/training-giga-fren.tar": Archive(
        "https://www.statmt.org/wmt10/training-giga-fren.tar",
        2_595_102_720,
        "0b12e20027d5b5f0dfcca290c72c8953",
        "3ff8319f6919393520559bfbc7ad6a747ec81b3abc7be9993b338d4b017b4d9a",
    ),
    "wmt14/training-parallel-nc-v9.tgz": Archive(
        "https://www.statmt.org/wmt14/training-parallel-nc-v9.tgz",
        80_418_416,
        "92e42b68f9d3c2ae9722e6d1c2623e21",
        "cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
    ),
    "wmt14/dev.tgz": Archive("https://www.statmt.org/wmt14/dev.tgz", md5="88ba3fc60b2278d59277122e1c7dd6e7"),
    "wmt14/test-full.tgz": Archive(
        "https://www.statmt.org/wmt14/test-full.tgz", md5="a8cd784e006feb32ac6f3d9ec7eb389a"
    ),
}


@dataclass(frozen=True)
class Corpus:
    """Where the two sides of a corpus lie in an archive.

    ``source`` and ``target`` are names of members, the first one that is there counts. In them {language} is the
    side's language, {pair} the two as the training data write them (de-en), {both} as the news tests do (deen).
    ``pairs`` has the published number of pairs by {pair}, where there is one.
    """

    archive: str
    source: Sequence[str]
    target: Sequence[str]
    pairs: Mapping[str, int] = field(default_factory=dict)

    def members(self, side: str, source: str, target: str) -> list[str]:
        """Names for a side ("source" or "target") of a translation from English or into it."""
        other = target if source == "en" else source
        language = source if side == "source" else target
        names = self.source if side == "source" else self.target
        return [name.format(pair=f"{other}-en", both=f"{other}en", language=language) for name in names]


def _both_sides(archive: str, *names: str, pairs: Mapping[str, int]) -> Corpus:
    return Corpus(archive, names, names, pairs)


CORPORA: Mapping[str, Corpus] = {
    "europarl-v7": _both_sides(
        "wmt13/training-parallel-europarl-v7.tgz",
        "training/europarl-v7.{pair}.{language}",
        pairs={"de-en": 1_920_209},
    ),
    "commoncrawl": _both_sides(
        "wmt13/training-parallel-commoncrawl.tgz", "commoncrawl.{pair}.{language}", pairs={"de-en": 2_399_123}
    ),
    "un": _both_sides("wmt13/training-parallel-un.tgz", "un/undoc.2000.{pair}.{language}", pairs={"fr-en": 12_886_831}),
    "news-commentary-v9": _both_sides(
        "wmt14/training-parallel-nc-v9.tgz",
        "training/news-commentary-v9.{pair}.{language}",
        pairs={"de-en": 201_288, "fr-en": 183_251},
    ),
    # The members were renamed once.
    "giga-fren": _both_sides(
        "wmt10/training-giga-fren.tar",
        "giga-fren.release2.fixed.{language}.gz",
        "giga-fren.release2.{language}.gz",
        pairs={"fr-en": 22_520_376},
    ),
    # The dev.tgz of later years has plain text.
    "newstest2013": Corpus(
        "wmt14/dev.tgz",
        ["dev/newstest2013-src.{language}.sgm", "dev/newstest2013.{language}"],
        ["dev/newstest2013-ref.{language}.sgm", "dev/newstest2013-src.{language}.sgm", "dev/newstest2013.{language}"],
        {"de-en": 3_000, "fr-en": 3_000},
    ),
    "newstest2014": Corpus(
        "wmt14/test-full.tgz",
        ["test-full/newstest2014-{both}-src.{language}.sgm"],
        ["test-full/newstest2014-{both}-ref.{language}.sgm"],
        {"de-en": 3_003, "fr-en": 3_003},
    ),
}
DEVELOPMENT, TEST = "newstest2013", "newstest2014"


def archives_of(corpora: Sequence[str]) -> list[str]:
    """Keys of the archives that hold the corpora, the development and the test set, each once."""
    return list(dict.fromkeys(CORPORA[name].archive for name in [*corpora, DEVELOPMENT, TEST]))
