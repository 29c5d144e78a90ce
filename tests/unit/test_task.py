"""What the task decides: which search, which defaults, which decoder of pieces."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from toy_task import build, dictionary

from vaswani_plugin.generation.beam_search import BeamSearch
from vaswani_plugin.generation.fairseq_search import PaperScoredSearch, PaperScoredSearchWithAlignment
from vaswani_plugin.tasks.vaswani_translation import VaswaniTranslationConfig, VaswaniTranslationTask

SPELT = "\u2581a <0xC2> <0xA0> b"


def task() -> VaswaniTranslationTask:
    words = dictionary(9)
    return VaswaniTranslationTask(VaswaniTranslationConfig(), words, words)


def generator(**flags: Any) -> Any:
    return task().build_generator([build(9)], Namespace(**flags))


def test_flags_not_given_mean_the_papers_search() -> None:
    """As in --eval-bleu-args '{}'."""
    search = generator()
    assert isinstance(search, BeamSearch)
    settings = search.settings
    assert (settings.beam, settings.alpha, settings.max_len_a, settings.max_len_b) == (4, 0.6, 1, 50)
    assert (settings.min_len, settings.nbest) == (0, 1)
    assert generator(beam=7, min_len=2).settings.beam == 7


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"sampling": True}, "--sampling"),
        ({"diverse_beam_groups": 2}, "--diverse-beam-groups"),
        ({"prefix_size": 3}, "--prefix-size"),
        ({"no_repeat_ngram_size": 2}, "--no-repeat-ngram-size"),
        ({"constraints": "ordered"}, "--constraints"),
        ({"temperature": 0.5}, "--temperature"),
        ({"unkpen": 1.0, "match_source_len": True}, "--match-source-len, --unkpen"),
    ],
)
def test_what_the_papers_search_lacks_is_fairseqs_and_said(
    flags: "dict[str, Any]", named: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    search = generator(**flags)
    assert isinstance(search, PaperScoredSearch)
    assert search.alpha == 0.6
    assert not search.normalize_scores
    assert f"{named}: fairseq's search is used; its scores are log p / ((5 + n) / 6)^0.6" in caplog.text


def test_fairseqs_search_is_scored_as_the_paper_scores() -> None:
    """log p / ((5 + n) / 6)^0.6, best first, for hypotheses of several lengths."""
    model = build(9).float()
    words = dictionary(9)
    made = VaswaniTranslationTask(VaswaniTranslationConfig(), words, words).build_generator(
        [model], Namespace(no_repeat_ngram_size=2, beam=8, nbest=8, max_len_a=0, max_len_b=6)
    )
    source = torch.tensor([[5, 8, 4, 2]])
    sample = {"net_input": {"src_tokens": source, "src_lengths": torch.tensor([4]), "prev_output_tokens": source}}
    (hypotheses,) = made.generate([model], sample)
    assert len({len(hypothesis["tokens"]) for hypothesis in hypotheses}) > 1
    scores = [float(hypothesis["score"]) for hypothesis in hypotheses]
    totals = [(float(h["positional_scores"].sum()), len(h["tokens"])) for h in hypotheses]
    assert scores == pytest.approx([log_p / ((5 + n) / 6) ** 0.6 for log_p, n in totals], abs=1e-5)
    assert scores == sorted(scores, reverse=True)


def test_alignment_in_both_searches() -> None:
    assert generator(print_alignment="hard").alignment == "hard"
    assert isinstance(generator(print_alignment="hard", sampling=True), PaperScoredSearchWithAlignment)


def test_byte_pieces_are_decoded(tmp_path: Path) -> None:
    from vaswani_plugin.data.vocabulary import make_vocabulary

    text = tmp_path / "text"
    text.write_text("a b ab ba aab bba\n" * 20, "utf-8")
    make_vocabulary([str(text)], 268, str(tmp_path / "joint"))
    bpe = task().build_bpe(Namespace(_name="sentencepiece", sentencepiece_model=str(tmp_path / "joint.model")))
    assert bpe.decode(SPELT) == "a\u00a0b"
    assert bpe.decode(bpe.encode("a\u20acb")) == "a\u20acb"
    assert task().build_bpe(None) is None
