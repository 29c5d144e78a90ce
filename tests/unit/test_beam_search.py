"""The search against all possible outputs, and against the same rules written plainly for one sentence."""

import itertools
import math
from typing import Any

import pytest
import torch
from plain_search import log_probabilities, penalty, plain_search
from stock_weights import randomize
from toy_task import build, dictionary

from vaswani_plugin.generation.beam_search import BeamSearch, SearchSettings

PAD, EOS, UNK = 1, 2, 3
WORDS = dictionary(9)  # 4 special symbols and 5 words
SOURCES = [[5, 8, 4, EOS], [6, EOS], [7, 7, 4, 5, 6, 8, EOS], [4, 8, EOS]]


def models(*seeds: int) -> list[Any]:
    made = []
    for seed in seeds:
        model = build(9)
        randomize(model, seed)
        made.append(model)
    return made


def collate(sources: "list[list[int]]", left: bool = True) -> dict[str, Any]:
    longest = max(map(len, sources))
    padding = [[PAD] * (longest - len(source)) for source in sources]
    rows = [p + s if left else s + p for p, s in zip(padding, sources)]
    lengths = torch.tensor([len(source) for source in sources])
    return {"net_input": {"src_tokens": torch.tensor(rows), "src_lengths": lengths}}


def search(ensemble: "list[Any]", sources: "list[list[int]]", left: bool = True, **settings: Any) -> list[Any]:
    made = BeamSearch(ensemble, WORDS, SearchSettings(**settings))
    return made.generate(ensemble, collate(sources, left))


def exhaustive(ensemble: "list[Any]", source: "list[int]", longest: int, alpha: float) -> "list[tuple[float, Any]]":
    """Every output of up to ``longest`` tokens with its score, best first."""
    alphabet = [UNK, 4, 5, 6, 7, 8]
    log_p = {(): 0.0}
    scored = []
    for length in range(longest + 1):
        prefixes = list(itertools.product(alphabet, repeat=length))
        following = log_probabilities(ensemble, source, prefixes)
        for prefix, row in zip(prefixes, following.tolist()):
            scored.append(((log_p[prefix] + row[EOS]) / penalty(length + 1, alpha), (*prefix, EOS)))
            if length < longest:
                log_p.update({(*prefix, token): log_p[prefix] + row[token] for token in alphabet})
    return sorted(scored, reverse=True)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0, -0.5])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_wide_beam_finds_the_best_of_all_outputs(alpha: float, seed: int) -> None:
    ensemble = models(seed)
    found = search(ensemble, SOURCES[:2], beam=1300, alpha=alpha, max_len_a=0, max_len_b=4, nbest=5)
    for source, hypotheses in zip(SOURCES, found):
        expected = exhaustive(ensemble, source, 4, alpha)[:5]
        assert [tuple(h["tokens"].tolist()) for h in hypotheses[:5]] == [tokens for _, tokens in expected]
        assert [float(h["score"]) for h in hypotheses[:5]] == pytest.approx([s for s, _ in expected], abs=1e-5)


@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
@pytest.mark.parametrize("nbest", [1, 2])
@pytest.mark.parametrize("seeds", [(1,), (2,), (4, 5)])
def test_plain_search_finds_the_same(beam: int, alpha: float, nbest: int, seeds: "tuple[int, ...]") -> None:
    ensemble = models(*seeds)
    found = search(ensemble, SOURCES, beam=beam, alpha=alpha, max_len_a=1, max_len_b=3, nbest=nbest)
    for source, hypotheses in zip(SOURCES, found):
        expected = plain_search(ensemble, source, beam, alpha, len(source) - 1 + 3, min(nbest, beam))
        assert [tuple(h["tokens"].tolist()) for h in hypotheses] == [tokens for _, tokens in expected]
        assert [float(h["score"]) for h in hypotheses] == pytest.approx([score for score, _ in expected], abs=1e-5)


def test_a_beam_of_one_is_greedy() -> None:
    """It ends where </s> is the likeliest token, even if ending earlier would have the better score."""
    ensemble = models(7)  # its second likeliest token is often </s>
    for source, hypotheses in zip(SOURCES, search(ensemble, SOURCES, beam=1, alpha=0.0, max_len_b=5)):
        output: tuple[int, ...] = ()
        while not output or (output[-1] != EOS and len(output) < len(source) - 1 + 5):
            output = (*output, int(log_probabilities(ensemble, source, [output]).argmax()))
        expected = output if output[-1] == EOS else (*output, EOS)
        assert [tuple(h["tokens"].tolist()) for h in hypotheses] == [expected]


@pytest.mark.parametrize("left", [True, False])
def test_the_batch_does_not_matter(left: bool) -> None:
    ensemble = models(3)
    alone = [search(ensemble, [source])[0][0] for source in SOURCES]
    for order in ([0, 1, 2, 3], [2, 0, 3, 1], [3, 2]):
        batch = search(ensemble, [SOURCES[n] for n in order], left)
        for n, hypotheses in zip(order, batch):
            assert hypotheses[0]["tokens"].tolist() == alone[n]["tokens"].tolist()
            assert float(hypotheses[0]["score"]) == pytest.approx(float(alone[n]["score"]), abs=1e-5)


def unwilling_to_end() -> list[Any]:
    """A model whose </s> is always the least likely token."""
    (model,) = models(1)
    discourage_end(model)
    return [model]


def discourage_end(model: Any) -> None:
    project = model.decoder.output_layer
    model.decoder.output_layer = lambda features: project(features).index_fill(-1, torch.tensor([EOS]), -60.0)


def test_longest_output_follows_each_sentences_own_length() -> None:
    found = search(unwilling_to_end(), SOURCES, max_len_a=2, max_len_b=3)
    for source, hypotheses in zip(SOURCES, found):
        assert len(hypotheses[0]["tokens"]) == 2 * (len(source) - 1) + 3 + 1
        assert hypotheses[0]["tokens"][-1] == EOS


def test_blank_line_in_blank_line_out() -> None:
    found = search(models(1), [[EOS], SOURCES[0]])
    assert found[0][0]["tokens"].tolist() == [EOS]
    assert len(found[1][0]["tokens"]) > 0


def test_blank_line_stays_blank_whatever_the_model_prefers() -> None:
    (blank, *others) = search(unwilling_to_end(), [[EOS], *SOURCES], max_len_b=3)
    assert [hypothesis["tokens"].tolist() for hypothesis in blank] == [[EOS]]
    assert all(len(hypotheses[0]["tokens"]) > 1 for hypotheses in others)


def test_shortest_output() -> None:
    found = search(models(1, 2), SOURCES, min_len=4)
    assert all(len(hypothesis["tokens"]) >= 5 for hypotheses in found for hypothesis in hypotheses)
    # The limit of the longest output goes first.
    assert len(search(models(1), [[4, EOS]], min_len=4, max_len_a=0, max_len_b=2)[0][0]["tokens"]) == 3


@pytest.mark.parametrize("shortest", [1, 2])
def test_shortest_output_is_among_the_longer_ones(shortest: int) -> None:
    """Every output of at least so many tokens stays possible, no shorter one does."""
    found = search(models(2), SOURCES[:2], beam=250, alpha=0.0, max_len_a=0, max_len_b=3, min_len=shortest, nbest=5)
    for source, hypotheses in zip(SOURCES, found):
        allowed = [tokens for _, tokens in exhaustive(models(2), source, 3, 0.0) if len(tokens) > shortest]
        assert [tuple(h["tokens"].tolist()) for h in hypotheses[:5]] == allowed[:5]
        assert len(allowed[0]) == shortest + 1


def test_model_limit_bounds_the_output() -> None:
    model = build(9, learned_positions=True, max_target_positions=6)
    discourage_end(model)
    (hypotheses,) = search([model], [[4, 5, EOS]])
    assert len(hypotheses[0]["tokens"]) == 6


def test_scores_of_tokens_add_up() -> None:
    for hypotheses in search(models(2), SOURCES, nbest=4):
        for hypothesis in hypotheses:
            n = len(hypothesis["tokens"])
            assert len(hypothesis["positional_scores"]) == n
            total = float(hypothesis["positional_scores"].sum())
            assert float(hypothesis["score"]) == pytest.approx(total / penalty(n, 0.6), abs=1e-5)


def test_beam_larger_than_the_vocabulary() -> None:
    for source, hypotheses in zip(SOURCES, search(models(1), SOURCES, beam=30, max_len_b=1, max_len_a=0, nbest=7)):
        expected = exhaustive(models(1), source, 1, 0.6)
        assert [tuple(h["tokens"].tolist()) for h in hypotheses] == [tokens for _, tokens in expected]


def test_alignment_points_at_the_largest_weight() -> None:
    (model,) = models(1)
    sample = collate(SOURCES[:3])
    made = BeamSearch([model], WORDS, SearchSettings(), alignment="hard")
    for row, (source, hypotheses) in enumerate(zip(SOURCES, made.generate([model], sample))):
        tokens = hypotheses[0]["tokens"].tolist()
        weights = model(torch.tensor([source]), None, torch.tensor([[EOS, *tokens[:-1]]]))[1]["attn"][0][0]
        best = weights[: len(tokens) - 1, : len(source) - 1].argmax(dim=1).tolist()
        assert hypotheses[0]["alignment"] == list(zip(best, range(len(tokens) - 1))), row


def test_not_a_number_is_refused() -> None:
    (model,) = models(1)
    with torch.no_grad():
        model.decoder.stack.layers[0].feed_forward.inner.bias[0] = math.nan
    with pytest.raises(ValueError, match="not a number: a weight of the checkpoint is NaN"):
        search([model], SOURCES)


@pytest.mark.parametrize(("settings", "message"), [({"beam": 0}, "--beam 0"), ({"alpha": math.nan}, "alpha nan")])
def test_settings_without_meaning(settings: "dict[str, Any]", message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SearchSettings(**settings)
