"""Decoding step by step with reordered hypotheses and leaving sentences, against full passes over each prefix."""

import pytest
import torch
from toy_task import build

from vaswani_plugin.generation.model_steps import FairseqSteps, VaswaniSteps
from vaswani_plugin.modules.cache import KeyValueCache

PAD, EOS = 1, 2
BEAM = 3
SOURCE = torch.tensor([[5, 8, 4, EOS], [PAD, PAD, 6, EOS], [7, 7, 4, EOS], [PAD, 4, 8, EOS], [9, 6, 5, EOS]])
# After each step: the sentences that go on, holes filled from behind.
LEAVING = [[0, 1, 2, 3, 4], [0, 4, 2, 3], [0, 4, 2, 3], [3, 4], [3, 4], [4]]


@pytest.mark.parametrize("kind", [VaswaniSteps, FairseqSteps])
@pytest.mark.parametrize("learned", [False, True])
@torch.no_grad()
def test_steps_equal_full_passes(kind: type, learned: bool) -> None:
    model = build(11, learned_positions=learned)
    steps = kind(model, {"src_tokens": SOURCE, "src_lengths": SOURCE.ne(PAD).sum(1)}, BEAM)
    generator = torch.Generator().manual_seed(7)
    rows = list(range(len(SOURCE)))
    tokens = torch.full((len(rows), BEAM, 1), EOS)
    for left in LEAVING:
        logits = steps.step(tokens).log_softmax(dim=-1)
        source = SOURCE[rows].repeat_interleave(BEAM, dim=0)
        expected = model(source, None, tokens.flatten(0, 1))[0][:, -1].log_softmax(dim=-1)
        torch.testing.assert_close(logits, expected.float())
        places = torch.tensor([rows.index(sentence) for sentence in left])
        origins = torch.randint(BEAM, (len(left), BEAM), generator=generator)
        steps.reorder(places, origins)
        following = torch.randint(4, 11, (len(left), BEAM, 1), generator=generator)
        tokens = torch.cat([tokens[places.unsqueeze(1), origins], following], dim=2)
        rows = left


def test_cache_grows_and_keeps() -> None:
    generator = torch.Generator().manual_seed(1)
    k, v = torch.randn(6, 2, 9, 3, generator=generator), torch.randn(6, 2, 9, 4, generator=generator)
    cache = KeyValueCache()
    for start, end in ((0, 1), (1, 3), (3, 4)):
        keys, values = cache.extend(k[:, :, start:end].clone(), v[:, :, start:end].clone())
    assert torch.equal(keys, k[:, :, :4])
    assert torch.equal(values, v[:, :, :4])
    kept = torch.tensor([0, 5, 2, 4])
    cache.keep(kept)
    keys, values = cache.extend(k[kept, :, 4:9], v[kept, :, 4:9])
    assert torch.equal(keys, k[kept])
    assert torch.equal(values, v[kept])
    order = torch.tensor([1, 1, 3])
    cache.reorder(order)
    assert torch.equal(cache.stored()[0], k[kept][order])
    assert torch.equal(cache.stored()[1], v[kept][order])
