"""Where the whole model drops values (section 5.4), and what it says about its attention."""

from typing import Any

import numpy as np
import pytest
import reference
import torch
from stock_weights import numpy_attention
from torch import nn
from toy_task import build

from vaswani_plugin.models.config import VaswaniTransformerConfig
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


def test_attention_for_alignments_is_the_mean_of_the_last_layers_heads() -> None:
    config = VaswaniTransformerConfig(d_model=12, num_heads=3).layer_config()
    model = build()
    cross = model.decoder.stack.layers[-1].cross_attention
    seen = inputs_of(cross)
    (attention,) = run(model)[1]["attn"]
    memory = model.encoder(torch.tensor([SOURCE]))["memory"][0].detach().numpy()
    weights = numpy_attention(cross, config)
    queries = seen[0][0].numpy()
    heads = [
        reference.attention(queries @ w_q, memory @ w_k, memory @ w_v)[1]
        for w_q, w_k, w_v in zip(weights.w_q, weights.w_k, weights.w_v)
    ]
    np.testing.assert_allclose(attention[0].detach().numpy(), np.mean(heads, axis=0), atol=1e-12)
    assert np.abs(heads[0] - heads[1]).max() > 0.01
