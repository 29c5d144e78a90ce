"""Attention maps: the weights against the paper in NumPy, their labels, and the pictures."""

import re
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
import reference
import torch
from stock_weights import numpy_attention, numpy_layers
from toy_task import build

from vaswani_plugin.figures.attention_maps import KINDS, LONGEST, AttentionMaps, attention_maps
from vaswani_plugin.figures.drawing import draw_layer, draw_maps, load_figure_class, save
from vaswani_plugin.models.config import VaswaniTransformerConfig

EOS, UNK = 2, 3
SOURCE, TARGET = [5, 9, 4, 7, EOS], [6, 8, 5, EOS]
CONFIG = VaswaniTransformerConfig(d_model=12, num_heads=3).layer_config()


def heads_of(queries: reference.Array, memory: reference.Array, module, causal: bool = False) -> list[reference.Array]:
    weights = numpy_attention(module, CONFIG)
    legal = np.tril(np.ones((len(queries), len(memory)), dtype=bool)) if causal else None
    return [
        reference.attention(queries @ w_q, memory @ w_k, memory @ w_v, legal)[1]
        for w_q, w_k, w_v in zip(weights.w_q, weights.w_k, weights.w_v)
    ]


def weights_by_the_paper(model, source: list[int], shifted: list[int]) -> dict[str, list[list[reference.Array]]]:
    """Layer by layer from the reference's own activations: layer n reads the one before."""
    matrix = model.encoder.embedding.weight.detach().numpy()
    x, y = reference.embed(source, matrix), reference.embed(shifted, matrix)
    layers = numpy_layers(model.encoder.stack, CONFIG)
    found: dict[str, list[list[reference.Array]]] = {kind: [] for kind in KINDS}
    for number, layer in enumerate(model.encoder.stack.layers):
        inputs = reference.encoder(x, layers[:number])
        found["encoder"].append(heads_of(inputs, inputs, layer.self_attention))
    memory = reference.encoder(x, layers)
    layers = numpy_layers(model.decoder.stack, CONFIG)
    for number, layer in enumerate(model.decoder.stack.layers):
        inputs = reference.decoder(y, memory, layers[:number])
        found["decoder"].append(heads_of(inputs, inputs, layer.self_attention, causal=True))
        attended = reference.multi_head(inputs, inputs, layers[number].self_attention, causal=True)
        normed = reference.add_and_norm(inputs, attended, layers[number].norms[0])
        found["cross"].append(heads_of(normed, memory, layer.cross_attention))
    return found


@pytest.fixture(scope="module")
def maps() -> AttentionMaps:
    return attention_maps(build(), SOURCE, TARGET)


def test_weights_are_the_papers_for_every_layer_and_head(maps: AttentionMaps) -> None:
    expected = weights_by_the_paper(build(), SOURCE, [EOS, *TARGET[:-1]])
    shapes = {"encoder": (2, 3, 5, 5), "decoder": (2, 3, 4, 4), "cross": (2, 3, 4, 5)}
    for kind in KINDS:
        assert maps.weights[kind].shape == shapes[kind]
        np.testing.assert_allclose(maps.weights[kind], np.array(expected[kind]), atol=1e-7)


def test_rows_sum_to_one_and_the_future_is_exactly_zero(maps: AttentionMaps) -> None:
    for kind in KINDS:
        np.testing.assert_allclose(maps.weights[kind].sum(-1), 1.0, atol=1e-6)
    future = np.triu(np.ones((4, 4), dtype=bool), 1)
    assert (maps.weights["decoder"][..., future] == 0.0).all()
    assert (maps.weights["decoder"][..., ~future] > 0.0).all()


def test_labels_are_the_pieces(maps: AttentionMaps) -> None:
    """Ids from 4 on are w0, w1, ...; a decoder row is what is written, a column what has been read before it."""
    assert maps.rows("encoder") == maps.columns("encoder") == maps.columns("cross") == ("w1", "w5", "w0", "w3", "</s>")
    assert maps.rows("decoder") == maps.rows("cross") == ("w2", "w4", "w1", "</s>")
    assert maps.columns("decoder") == ("</s>", "w2", "w4", "w1")


def test_the_model_is_left_as_it_was() -> None:
    model = build().train()
    attention_maps(model, SOURCE, TARGET)
    assert model.training
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_half_precision_weights_give_maps_too() -> None:
    maps = attention_maps(build().to(torch.bfloat16), SOURCE, TARGET)
    assert maps.weights["cross"].dtype == np.float32
    np.testing.assert_allclose(maps.weights["cross"].sum(-1), 1.0, atol=0.02)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ([EOS], TARGET, "the source sentence is empty"),
        (SOURCE, [EOS], "the target sentence is empty"),
        ([UNK, UNK, EOS], TARGET, "no piece of the source sentence is in the model's dictionary"),
        ([5] * LONGEST + [EOS], TARGET, f"the source sentence has {LONGEST + 1} pieces with its </s>, more than the "),
    ],
)
def test_sentences_without_a_picture(source: list[int], target: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        attention_maps(build(), source, target)


def labelled(*pieces: str) -> AttentionMaps:
    """Maps of one layer and five heads whose head n looks n pieces back."""
    count = len(pieces)
    weights = np.stack([np.roll(np.eye(count, dtype=np.float32), -head, axis=1) for head in range(5)])[None]
    return AttentionMaps(pieces, pieces, dict.fromkeys(KINDS, weights))


def test_a_layer_is_drawn_with_every_head_and_label() -> None:
    maps = labelled("▁the", "$x$", "<0xC3>", "</s>")
    figure = draw_layer(maps, "encoder", 0)
    panels = [axis for axis in figure.axes if axis.get_title().startswith("head ")]
    assert [axis.get_title() for axis in panels] == [f"head {head}" for head in range(1, 6)]
    for head, axis in enumerate(panels):
        np.testing.assert_array_equal(axis.images[0].get_array(), maps.weights["encoder"][0, head])
        assert axis.images[0].get_clim() == (0.0, 1.0)
    # Labels stand once for a row of heads on its left, and once for a column of heads below it.
    assert [label.get_text() for label in panels[0].get_yticklabels()] == list(maps.source)
    assert [label.get_text() for label in panels[1].get_yticklabels() if label.get_text()] == []
    assert [label.get_text() for label in panels[4].get_xticklabels()] == list(maps.source)
    assert [label.get_text() for label in panels[0].get_xticklabels() if label.get_text()] == []


def test_files_are_png_and_svg_with_the_text_as_text(tmp_path: Path) -> None:
    maps = labelled("▁the", "$x$", "大学", "</s>")  # a script that the pictures' font lacks
    paths = list(draw_maps(maps, tmp_path))
    assert [path.name for path in paths] == [f"{kind}-layer1.{end}" for kind in KINDS for end in ("png", "svg")]
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    header = paths[0].read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", header[16:24])
    assert 300 < height < width < 2000
    svg = paths[1].read_text("utf-8")
    for label in ("▁the", "$x$", "大学", "&lt;/s&gt;", "head 5"):
        assert f">{label}</text>" in svg
    again = tmp_path / "again.svg"
    save(draw_layer(maps, "encoder", 0), again)
    assert "<dc:date>" not in again.read_text("utf-8")


def test_without_matplotlib_a_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ValueError, match=r"pip install 'vaswani-plugin\[figures\]'"):
        load_figure_class()
