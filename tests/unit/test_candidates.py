"""The likeliest tokens chunk by chunk against log-softmax and sorting over the whole vocabulary."""

import pytest
import torch

from vaswani_plugin.generation import candidates
from vaswani_plugin.generation.candidates import likeliest


@pytest.mark.parametrize("elements", [1, 2 * 13, 10**6])
@pytest.mark.parametrize("size", [13, 3_001])
@pytest.mark.parametrize("count", [1, 4, 11, 50])
def test_top_of_the_log_softmax(elements: int, size: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row to a chunk, two of 13, and all at once; a count beyond the vocabulary gives all of it.

    Of 3,001 logits, the last 57 are in no block, and 50 are too many for blocks.
    """
    monkeypatch.setattr(candidates, "_CHUNK_ELEMENTS", elements)
    logits = 30 * torch.randn(70, size, generator=torch.Generator().manual_seed(1))
    values, ids, log_total = likeliest(logits.clone(), count)
    expected = logits.double().log_softmax(dim=1).sort(dim=1, descending=True)
    assert torch.equal(ids, expected.indices[:, :count])
    torch.testing.assert_close((values - log_total).double(), expected.values[:, :count], atol=1e-4, rtol=0)
    assert torch.equal(values, logits.gather(1, ids))
