"""CTranslate2's model of the same network, through its public specification."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vaswani_plugin.errors import UserError
from vaswani_plugin.inference.loading import SEGMENTATION, open_model
from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer
from vaswani_plugin.modules import LayerConfig
from vaswani_plugin.modules.attention import CrossAttention, SelfAttention
from vaswani_plugin.modules.feed_forward import FeedForward
from vaswani_plugin.modules.positional_encoding import LearnedPositions, sinusoids
from vaswani_plugin.modules.sublayer import EPSILON
from vaswani_plugin.unfinished import unfinished


def export_ctranslate2(model_dir: Path, output: Path) -> None:
    """Writes a folder that ``ctranslate2.Translator`` loads, complete or not at all.

    Raises:
        ValueError: ctranslate2 is not installed, the folder is no packaged model, the model is another one than
            vaswani_transformer, or ``output`` is there already.
    """
    try:
        import ctranslate2  # noqa: F401
    except ImportError as error:
        raise UserError(
            f"ctranslate2 cannot be imported ({error}): install it with pip install 'vaswani-plugin[export]'"
        ) from error
    if os.path.lexists(output):
        raise UserError(f"{output} is there already: name a new folder, or remove it first")
    translator = open_model(model_dir)
    spec = transformer_spec(translator.models[0], translator.src_dict.symbols, translator.tgt_dict.symbols)
    if (model_dir / SEGMENTATION).is_file():
        spec.register_file(str(model_dir / SEGMENTATION))
    spec.validate()
    spec.optimize()
    with unfinished(output) as temporary:
        temporary.mkdir()
        spec.save(str(temporary))
        temporary.rename(output)


def transformer_spec(model: Any, source: Sequence[str], target: Sequence[str]) -> Any:
    """A ``ctranslate2.specs.TransformerSpec`` with the model's weights.

    Args:
        model: a ``VaswaniTransformer``; any other is a ``ValueError``.
        source, target: the tokens of the dictionaries, in the order of their ids.
    """
    from ctranslate2.specs import transformer_spec as specs

    if not isinstance(model, VaswaniTransformer):
        raise UserError(
            f"the model is a {type(model).__name__}, not a vaswani_transformer: ct2-fairseq-converter of CTranslate2 "
            "is for fairseq's own architectures"
        )
    sizes = model.cfg.layer_config()
    # CTranslate2 knows one width for queries, keys and values of a head: the narrower ones are filled up with zeros,
    # which change neither a product of query and key nor, with zeros in W_O too, a sum of values.
    width = max(sizes.d_k, sizes.d_v)
    shape = {"pre_norm": False, "head_dim": None if width * sizes.num_heads == sizes.d_model else width}
    encoder = specs.TransformerEncoderSpec(model.cfg.num_layers, sizes.num_heads, **shape)
    decoder = specs.TransformerDecoderSpec(model.cfg.num_layers, sizes.num_heads, **shape)
    spec = specs.TransformerSpec(encoder, decoder)
    # Left to itself it would take 1e-5.
    spec.config.layer_norm_epsilon = EPSILON
    # As fairseq: both sides know </s> alone, which ends the source and starts the target.
    spec.config.add_source_eos = True
    spec.config.decoder_start_token = spec.config.eos_token

    encoder.embeddings[0].weight = _array(model.encoder.embedding.weight)
    decoder.embeddings.weight = _array(model.decoder.embedding.weight)
    decoder.projection.weight = _array(model.decoder.output_embedding.weight)
    # Left to itself it would compute sinusoids of another layout and other wavelengths.
    encoder.position_encodings.encodings = _positions(model.encoder, sizes.d_model)
    decoder.position_encodings.encodings = _positions(model.decoder, sizes.d_model)
    for to, layer in zip(encoder.layer, model.encoder.stack.layers):
        _self_attention(to.self_attention, layer.self_attention, layer.after_self_attention.norm, sizes)
        _feed_forward(to.ffn, layer.feed_forward, layer.after_feed_forward.norm)
    for to, layer in zip(decoder.layer, model.decoder.stack.layers):
        _self_attention(to.self_attention, layer.self_attention, layer.after_self_attention.norm, sizes)
        _cross_attention(to.attention, layer.cross_attention, layer.after_cross_attention.norm, sizes)
        _feed_forward(to.ffn, layer.feed_forward, layer.after_feed_forward.norm)
    spec.register_source_vocabulary(list(source))
    spec.register_target_vocabulary(list(target))
    return spec


def _array(tensor: Tensor) -> Any:
    return tensor.detach().float().cpu().numpy()


def _positions(side: Any, d_model: int) -> Any:
    if isinstance(side.positions, LearnedPositions):
        return _array(side.positions.weight)
    return _array(sinusoids(side.max_length, d_model))


def _norm(to: Any, norm: nn.LayerNorm) -> None:
    to.gamma, to.beta = _array(norm.weight), _array(norm.bias)


def _feed_forward(to: Any, layer: FeedForward, norm: nn.LayerNorm) -> None:
    for linear, ours in ((to.linear_0, layer.inner), (to.linear_1, layer.outer)):
        linear.weight, linear.bias = _array(ours.weight), _array(ours.bias)
    _norm(to.layer_norm, norm)


def _self_attention(to: Any, layer: SelfAttention, norm: nn.LayerNorm, sizes: LayerConfig) -> None:
    _projections(to.linear[0], layer.query_key_value, [sizes.d_k, sizes.d_k, sizes.d_v], sizes)
    _output(to, layer.output, norm, sizes)


def _cross_attention(to: Any, layer: CrossAttention, norm: nn.LayerNorm, sizes: LayerConfig) -> None:
    _projections(to.linear[0], layer.query, [sizes.d_k], sizes)
    _projections(to.linear[1], layer.key_value, [sizes.d_k, sizes.d_v], sizes)
    _output(to, layer.output, norm, sizes)


def _projections(to: Any, linear: nn.Linear, widths: Sequence[int], sizes: LayerConfig) -> None:
    """Fused projections, each (h * its width, d_model), with every head filled up to the common width."""
    rows = [width * sizes.num_heads for width in widths]
    to.weight = _array(
        torch.cat([_filled(part, width, sizes) for part, width in zip(linear.weight.split(rows), widths)])
    )
    if linear.bias is not None:
        to.bias = _array(
            torch.cat([_filled(part, width, sizes) for part, width in zip(linear.bias.split(rows), widths)])
        )


def _output(to: Any, linear: nn.Linear, norm: nn.LayerNorm, sizes: LayerConfig) -> None:
    to.linear[-1].weight = _array(_filled(linear.weight.T, sizes.d_v, sizes).T.contiguous())
    if linear.bias is not None:
        to.linear[-1].bias = _array(linear.bias)
    _norm(to.layer_norm, norm)
    if sizes.d_k < sizes.d_v:
        to.queries_scale = np.float32(sizes.d_k**-0.5)


def _filled(rows: Tensor, width: int, sizes: LayerConfig) -> Tensor:
    """(h * width, ...) -> (h * the common width, ...), zeros at the end of each head."""
    heads = rows.unflatten(0, (sizes.num_heads, width))
    zeros = heads.new_zeros(sizes.num_heads, max(sizes.d_k, sizes.d_v) - width, *heads.shape[2:])
    return torch.cat([heads, zeros], dim=1).flatten(0, 1)
