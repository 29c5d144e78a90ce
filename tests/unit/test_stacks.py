"""Encoder and decoder stacks against the NumPy reference and torch.nn.Transformer, and their masks."""

import numpy as np
import pytest
import reference
import torch
from stock_weights import numpy_layers, randomize, torch_transformer

from vaswani_plugin.modules import AddAndNorm, Decoder, Encoder, FeedForward, LayerConfig
from vaswani_plugin.modules.cache import LayerCache

FREE = LayerConfig(d_model=12, d_ff=20, num_heads=3, d_k=5, d_v=2)
SQUARE = LayerConfig(d_model=12, d_ff=20, num_heads=2, d_k=6, d_v=6)


def stacks(config: LayerConfig, num_layers: int = 2) -> tuple[Encoder, Decoder]:
    encoder, decoder = Encoder(num_layers, config).double().eval(), Decoder(num_layers, config).double().eval()
    randomize(encoder, 1)
    randomize(decoder, 2)
    return encoder, decoder


def inputs(batch: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return tuple(torch.randn(batch, n, 12, generator=generator, dtype=torch.float64) for n in (7, 5))


def test_stacks_are_the_papers() -> None:
    encoder, decoder = stacks(FREE)
    x, y = inputs()
    memory = encoder(x)
    result, _ = decoder(y, memory)
    expected_memory = reference.encoder(x[0].numpy(), numpy_layers(encoder, FREE))
    np.testing.assert_allclose(memory[0].detach().numpy(), expected_memory, atol=1e-11)
    expected = reference.decoder(y[0].numpy(), expected_memory, numpy_layers(decoder, FREE))
    np.testing.assert_allclose(result[0].detach().numpy(), expected, atol=1e-11)


def test_stacks_are_torch_transformers_with_the_same_weights() -> None:
    encoder, decoder = stacks(SQUARE)
    stock = torch_transformer(encoder, decoder, SQUARE).train()  # training mode: dropout is 0, and no fast path
    x, y = inputs(batch=3)
    padding = torch.tensor([[False] * 7, [False] * 4 + [True] * 3, [False] * 6 + [True]])
    causal = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
    expected = stock(x, y, tgt_mask=causal, src_key_padding_mask=padding, memory_key_padding_mask=padding)
    mask = ~padding[:, None, None, :]
    result, _ = decoder(y, encoder(x, mask), memory_mask=mask)
    torch.testing.assert_close(result, expected, atol=1e-10, rtol=0)


def test_gradients_are_torch_transformers() -> None:
    encoder, decoder = stacks(SQUARE)
    stock = torch_transformer(encoder, decoder, SQUARE).train()
    x, y = inputs(batch=2)
    target = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    (decoder(y, encoder(x))[0] * target).sum().backward()
    causal = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
    (stock(x, y, tgt_mask=causal) * target).sum().backward()
    for mine, theirs in zip(encoder.layers, stock.encoder.layers):
        torch.testing.assert_close(
            mine.self_attention.query_key_value.weight.grad, theirs.self_attn.in_proj_weight.grad
        )
        torch.testing.assert_close(mine.feed_forward.inner.bias.grad, theirs.linear1.bias.grad)
    for mine, theirs in zip(decoder.layers, stock.decoder.layers):
        torch.testing.assert_close(mine.cross_attention.output.weight.grad, theirs.multihead_attn.out_proj.weight.grad)
        torch.testing.assert_close(mine.after_feed_forward.norm.weight.grad, theirs.norm3.weight.grad)


def test_dropout_comes_before_the_residual_sum() -> None:
    """A dropped output leaves LayerNorm(x); nothing of x itself is dropped."""
    module = AddAndNorm(4, dropout=0.5).train()
    x, y = torch.tensor([[[1.0, 2.0, 3.0, 6.0]]]).expand(1, 2000, 4), torch.full((1, 2000, 4), 100.0)
    inside = []
    module.norm.register_forward_pre_hook(lambda _, args: inside.append(args[0]))
    module(x, y)
    change = inside[0] - x
    assert set(change.unique().tolist()) == {0.0, 200.0}
    assert 0.45 < (change == 0).float().mean() < 0.55


def test_layer_norm_formula() -> None:
    """x = (1, 2, 3, 6) + 0: mean 3, biased variance 3.5, epsilon 1e-6 under the root."""
    module = AddAndNorm(4, dropout=0.0).double()
    x = torch.tensor([[[1.0, 2.0, 3.0, 6.0]]], dtype=torch.float64)
    expected = torch.tensor([[[-2.0, -1.0, 0.0, 3.0]]], dtype=torch.float64) / (3.5 + 1e-6) ** 0.5
    torch.testing.assert_close(module(x, torch.zeros_like(x)), expected, atol=1e-14, rtol=0)
    tiny = x * 1e-3  # here epsilon shows: without it the result would be the same as above
    torch.testing.assert_close(
        module(tiny, torch.zeros_like(x)),
        torch.tensor([[[-2.0, -1.0, 0.0, 3.0]]], dtype=torch.float64) / (3.5 + 1.0) ** 0.5,
        atol=1e-14,
        rtol=0,
    )


def test_feed_forward_formula_and_initial_interval() -> None:
    module = FeedForward(512, 2048)
    for layer in (module.inner, module.outer):
        assert layer.weight.abs().max().item() == pytest.approx(0.0484123, rel=1e-3)
        assert (layer.bias == 0).all()
    small = FeedForward(2, 3).double()
    with torch.no_grad():
        small.inner.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]))
        small.inner.bias.copy_(torch.tensor([0.0, -5.0, 10.0]))
        small.outer.weight.copy_(torch.tensor([[1.0, 1.0, 1.0], [2.0, 0.0, 1.0]]))
        small.outer.bias.copy_(torch.tensor([0.5, 0.0]))
    # inner: 2, 3 - 5 -> 0, 10 - 5 = 5
    assert small(torch.tensor([[[2.0, 3.0]]], dtype=torch.float64)).tolist() == [[[7.5, 9.0]]]


def test_a_later_token_changes_nothing_before_it() -> None:
    """Causality to the last bit, in float32, on the kernel that training uses."""
    encoder, decoder = (stack.float() for stack in stacks(FREE))
    x, y = (tensor.float() for tensor in inputs())
    memory = encoder(x)
    before, _ = decoder(y, memory)
    for changed in range(1, 5):
        other = y.clone()
        other[:, changed] += 10.0
        after, _ = decoder(other, memory)
        difference = (after - before).abs().amax(dim=(0, 2))
        assert (difference[:changed] == 0.0).all()
        assert (difference[changed:] > 0.0).all()


def test_without_positions_the_encoder_is_permutation_equivariant() -> None:
    encoder, _ = stacks(FREE)
    x, _ = inputs()
    order = torch.tensor([3, 0, 6, 2, 5, 1, 4])
    torch.testing.assert_close(encoder(x[:, order]), encoder(x)[:, order], atol=1e-12, rtol=0)


def test_cached_steps_equal_the_full_pass_at_every_step() -> None:
    encoder, decoder = stacks(FREE)
    x, y = inputs(batch=3)
    mask = torch.tensor([[True] * 7, [True] * 5 + [False] * 2, [False] * 3 + [True] * 4])[:, None, None, :]
    memory = encoder(x, mask)
    full, _ = decoder(y, memory, memory_mask=mask)
    caches = [LayerCache(), LayerCache()]
    for step in range(5):
        result, _ = decoder(y[:, step : step + 1], memory, memory_mask=mask, caches=caches)
        torch.testing.assert_close(result[:, 0], full[:, step], atol=1e-12, rtol=0)


def test_last_layers_attention_weights() -> None:
    encoder, decoder = stacks(FREE)
    x, y = inputs(batch=2)
    mask = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])[:, None, None, :]
    _, weights = decoder(y, encoder(x, mask), memory_mask=mask, need_weights=True)
    assert weights.shape == (2, 3, 5, 7)
    assert (weights[1, :, :, 4:] == 0.0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 5, dtype=torch.float64))
