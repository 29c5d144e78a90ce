"""Tokens without their padding, against boolean indexing and its gradient."""

import pytest
import torch

from vaswani_plugin.modules.packing import Packing

TOKENS = {
    "on the right": ["xxx.", "x...", "xxxx"],
    "on the left": [".xxx", "...x", "xxxx"],
    "a sentence of padding": ["....", "xx..", "...."],
    "the last one of padding": ["xxxx", "xx..", "...."],
    "in the middle": ["x.x.", ".xx."],
    "one token": ["...x"],
}


def tokens(rows: "list[str]") -> torch.Tensor:
    return torch.tensor([[place == "x" for place in row] for row in rows])


def packing_of(is_token: torch.Tensor) -> Packing:
    packing = Packing.of(is_token)
    assert packing is not None
    return packing


@pytest.mark.parametrize("rows", TOKENS.values(), ids=TOKENS)
def test_tokens_and_their_gradient(rows: "list[str]") -> None:
    is_token = tokens(rows)
    packing = packing_of(is_token)
    x = torch.randn(*is_token.shape, 5, dtype=torch.float64, requires_grad=True)
    packed = packing.pack(x)
    assert torch.equal(packed, x[is_token].unsqueeze(0))
    unpacked = packing.unpack(packed)
    assert torch.equal(unpacked[is_token], x[is_token])
    weights = torch.randn_like(unpacked)
    (unpacked * weights).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, weights * is_token.unsqueeze(2))


def test_padding_stands_for_a_token_of_its_own_sentence() -> None:
    """So that a sentence of NaN leaves the others as they are."""
    is_token = tokens(["xx..", ".xx.", "x..."])
    packing = packing_of(is_token)
    assert packing.tokens_BT.tolist() == [[0, 1, 1, 1], [2, 2, 3, 3], [4, 4, 4, 4]]


@pytest.mark.parametrize(
    "is_token",
    [torch.ones(3, 4).bool(), torch.zeros(3, 4).bool(), torch.zeros(0, 4).bool(), torch.arange(64).view(8, 8).ge(1)],
    ids=["no padding", "nothing else", "no sentence", "one place of 64"],
)
def test_where_it_does_not_pay(is_token: torch.Tensor) -> None:
    assert Packing.of(is_token) is None
