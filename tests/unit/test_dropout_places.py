"""Where the whole model drops values (section 5.4)."""

from typing import Any

import numpy as np
import pytest
import reference
import torch
from torch import nn
from toy_task import build

from vaswani_plugin.modules import Dropout

EOS = 2
SOURCE, TARGET = [5, 9, 4, 7, 6, 8, EOS], [EOS, 6, 8, 5, 4]


def inputs_of(module: nn.Module) -> list[torch.Tensor]:
    """Filled with the first argument of every call."""
    seen: list[torch.Tensor] = []
    module.register_forward_pre_hook(lambda _, args: seen.append(args[0].detach()))
    return seen


def run(model: nn.Module) -> Any:
    return model(torch.tensor([SOURCE]), None, torch.tensor([TARGET]))


@pytest.mark.parametrize(("side", "ids"), [("encoder", SOURCE), ("decoder", TARGET)])
def test_sums_of_embedding_and_position_are_dropped(side: str, ids: "list[int]") -> None:
    """Each element of sqrt(d_model) E[x] + PE becomes 0 or twice as large, in about equal parts."""
    model = build(d_model=24, dropout=0.5).train()
    seen = inputs_of(getattr(model, side).stack)
    torch.manual_seed(1)
    for _ in range(20):
        run(model)
    expected = reference.embed(ids, getattr(model, side).embedding.weight.detach().numpy())
    stacked = np.stack([x[0].numpy() for x in seen])
    kept = stacked != 0.0
    np.testing.assert_allclose(stacked[kept], np.broadcast_to(2.0 * expected, stacked.shape)[kept], atol=1e-12)
    # Four standard deviations of a binomial share.
    assert abs(kept.mean() - 0.5) < 4 * 0.5 / kept.size**0.5


def test_nothing_else_is_dropped_by_default() -> None:
    """The two sums and the 2 and 3 sub-layer outputs of each of the 2 + 2 layers: 12 places with the rate given."""
    model = build(dropout=0.25).train()
    seen = [inputs_of(module) for module in model.modules() if isinstance(module, Dropout) and module.dropout > 0]
    rates = {module.dropout for module in model.modules() if isinstance(module, Dropout)}
    run(model)
    assert [len(calls) for calls in seen] == [1] * 12
    assert rates == {0.0, 0.25}
    places = {name for name, module in model.named_modules() if isinstance(module, Dropout) and module.dropout == 0}
    assert all(name.endswith("feed_forward.dropout") for name in places)
