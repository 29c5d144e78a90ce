"""Copies of the plugin's weights in the forms that the independent implementations want."""

import numpy as np
import reference
import torch
from torch import nn

from vaswani_plugin.modules import CrossAttention, Decoder, Encoder, LayerConfig, SelfAttention
from vaswani_plugin.modules.decoder import DecoderLayer
from vaswani_plugin.modules.encoder import EncoderLayer


def randomize(module: nn.Module, seed: int = 0) -> None:
    """Every parameter random, gains and biases too, so that none can be forgotten unnoticed."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            centre = 1.0 if name.endswith("norm.weight") else 0.0
            parameter.copy_(centre + 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))


def query_key_value(attention: "SelfAttention | CrossAttention", config: LayerConfig) -> list[torch.Tensor]:
    """W_Q, W_K, W_V as (h * width, d_model), whatever is fused."""
    keys, values = config.num_heads * config.d_k, config.num_heads * config.d_v
    if isinstance(attention, SelfAttention):
        return list(attention.query_key_value.weight.detach().split([keys, keys, values]))
    k, v = attention.key_value.weight.detach().split([keys, values])
    return [attention.query.weight.detach(), k, v]


def numpy_attention(attention: "SelfAttention | CrossAttention", config: LayerConfig) -> reference.AttentionWeights:
    q, k, v = (
        np.stack([head.numpy().T for head in weight.chunk(config.num_heads)])
        for weight in query_key_value(attention, config)
    )
    return reference.AttentionWeights(q, k, v, attention.output.weight.detach().numpy().T)


def numpy_layer(layer: "EncoderLayer | DecoderLayer", config: LayerConfig) -> reference.LayerWeights:
    def norm(of: nn.Module) -> reference.NormWeights:
        return reference.NormWeights(of.norm.weight.detach().numpy(), of.norm.bias.detach().numpy())

    cross = None
    norms = [norm(layer.after_self_attention), norm(layer.after_feed_forward)]
    if isinstance(layer, DecoderLayer):
        cross = numpy_attention(layer.cross_attention, config)
        norms.insert(1, norm(layer.after_cross_attention))
    inner, outer = layer.feed_forward.inner, layer.feed_forward.outer
    return reference.LayerWeights(
        numpy_attention(layer.self_attention, config),
        cross,
        reference.FeedForwardWeights(
            inner.weight.detach().numpy().T,
            inner.bias.detach().numpy(),
            outer.weight.detach().numpy().T,
            outer.bias.detach().numpy(),
        ),
        norms,
    )


def numpy_layers(stack: "Encoder | Decoder", config: LayerConfig) -> list[reference.LayerWeights]:
    return [numpy_layer(layer, config) for layer in stack.layers]


def torch_transformer(encoder: Encoder, decoder: Decoder, config: LayerConfig) -> nn.Transformer:
    """torch.nn.Transformer (post-norm, ReLU) with the same weights; its attention biases are zero."""
    n = len(encoder.layers)
    stock = nn.Transformer(
        config.d_model, config.num_heads, n, n, config.d_ff, dropout=0.0, layer_norm_eps=1e-6, batch_first=True
    ).double()
    # nn.Transformer ends each stack with a LayerNorm that the paper does not have.
    stock.encoder.norm, stock.decoder.norm = None, None
    with torch.no_grad():
        for mine, theirs in [*zip(encoder.layers, stock.encoder.layers), *zip(decoder.layers, stock.decoder.layers)]:
            pairs = [(mine.self_attention, theirs.self_attn)]
            norms = [(mine.after_self_attention, theirs.norm1), (mine.after_feed_forward, theirs.norm2)]
            if isinstance(mine, DecoderLayer):
                pairs.append((mine.cross_attention, theirs.multihead_attn))
                norms = [norms[0], (mine.after_cross_attention, theirs.norm2), (norms[1][0], theirs.norm3)]
            for attention, stock_attention in pairs:
                stock_attention.in_proj_weight.copy_(torch.cat(query_key_value(attention, config)))
                stock_attention.in_proj_bias.zero_()
                stock_attention.out_proj.weight.copy_(attention.output.weight)
                stock_attention.out_proj.bias.zero_()
            for norm, stock_norm in norms:
                stock_norm.load_state_dict(norm.norm.state_dict())
            theirs.linear1.load_state_dict(mine.feed_forward.inner.state_dict())
            theirs.linear2.load_state_dict(mine.feed_forward.outer.state_dict())
    return stock
