"""Sections 3.4 and 3.5 against the formula, digit for digit."""

import math

import numpy as np
import pytest
import reference
import torch

from vaswani_plugin.modules import Embedding, LearnedPositions, SinusoidalPositions, token_positions
from vaswani_plugin.modules.positional_encoding import sinusoids

PAD = 1


def test_published_values() -> None:
    table = sinusoids(8, 512)
    assert table[0].tolist() == [0.0, 1.0] * 256
    first = [0.841471, 0.540302, 0.821856, 0.569695, 0.801962, 0.597375]
    np.testing.assert_allclose(table[1, :6], first, atol=5e-7)
    np.testing.assert_allclose(table[1, 510:], [1.0366329e-4, 0.9999999946], rtol=1e-7)
    np.testing.assert_allclose(table[7, :4], [0.6569866, 0.7539023, 0.4523923, 0.8918190], atol=5e-8)
    np.testing.assert_allclose(sinusoids(2, 4)[1], [0.8414710, 0.5403023, 0.0099998, 0.9999500], atol=5e-8)


@pytest.mark.parametrize("d_model", [8, 512, 7])
def test_table_is_the_formula(d_model: int) -> None:
    np.testing.assert_allclose(sinusoids(300, d_model).numpy(), reference.positional_encoding(300, d_model), atol=1e-12)


def test_float32_is_the_rounded_float64() -> None:
    """Computing the angle in float32 would be off by 1e-3 at position 10,000."""
    module = SinusoidalPositions(16)
    positions = torch.arange(10_000).unsqueeze(0)
    rounded = torch.from_numpy(reference.positional_encoding(10_000, 16)[-1]).float()
    assert torch.equal(module(positions, like=torch.empty(0))[0, -1], rounded)


def test_table_grows_and_follows_dtype() -> None:
    module = SinusoidalPositions(6)
    short = module(torch.arange(3).unsqueeze(0), like=torch.empty(0))
    long = module(torch.arange(2000).unsqueeze(0), like=torch.empty(0))
    assert torch.equal(short[0], long[0, :3])
    assert module(torch.arange(3).unsqueeze(0), like=torch.empty(0, dtype=torch.bfloat16)).dtype == torch.bfloat16
    assert not module.state_dict()


def test_moving_by_an_offset_is_a_rotation() -> None:
    """The reason the paper gives: PE(pos + k) is a linear function of PE(pos), a rotation in each sine-cosine pair."""
    table = sinusoids(60, 8)
    for k in (1, 5, 20):
        for i in range(4):
            w = 10000 ** (-2 * i / 8)
            c, s = math.cos(k * w), math.sin(k * w)
            rotation = torch.tensor([[c, s], [-s, c]], dtype=torch.float64)
            pair = table[:, 2 * i : 2 * i + 2]
            torch.testing.assert_close(pair[k:], pair[:-k] @ rotation.T, atol=1e-12, rtol=0)
    products = table @ table.T
    for offset in (1, 7):
        diagonal = products.diagonal(offset)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-12, rtol=0)


def test_positions_count_tokens_wherever_the_padding_is() -> None:
    tokens = torch.tensor([[5, 6, 7, PAD, PAD], [PAD, PAD, 5, 6, 7], [5, 6, 7, 8, 9], [PAD] * 5])
    positions = token_positions(tokens, PAD)
    assert positions[0, :3].tolist() == positions[1, 2:].tolist() == [0, 1, 2]
    assert positions[2].tolist() == [0, 1, 2, 3, 4]
    assert positions.min() == 0


def test_learned_positions_are_rows_of_a_trained_table() -> None:
    module = LearnedPositions(2000, 64)
    assert module.weight.std().item() == pytest.approx(64**-0.5, rel=0.02)
    positions = torch.tensor([[2, 0]])
    module(positions, like=module.weight).sum().backward()
    assert module.weight.grad.sum(1).nonzero().flatten().tolist() == [0, 2]


def test_embedding_is_scaled_on_the_way_in_only() -> None:
    module = Embedding(4000, 512, PAD)
    assert module.weight.std().item() == pytest.approx(0.0441942, rel=0.01)
    assert module.weight.mean().item() == pytest.approx(0.0, abs=1e-4)
    tokens = torch.tensor([[5, 9]])
    torch.testing.assert_close(module(tokens), module.weight[tokens] * math.sqrt(512))
    x = torch.randn(1, 2, 512)
    torch.testing.assert_close(module.project(x), x @ module.weight.T)
