"""Counts from closed formulas against the real modules: parameters, operations, memory."""

import json
import re

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from toy_task import SMALL, ToyTask, dictionary, parameters_on_meta_device

from vaswani_plugin import cli
from vaswani_plugin.accounting.description import config_of
from vaswani_plugin.accounting.flops import forward_flops, training_flops
from vaswani_plugin.accounting.memory import activation_bytes, cache_bytes, update_bytes
from vaswani_plugin.accounting.parameters import PAPER_FIGURES, parameters_by_part
from vaswani_plugin.criterions.projected_loss import projected_smoothed_cross_entropy
from vaswani_plugin.generation.beam_search import BeamSearch, SearchSettings
from vaswani_plugin.models.architectures import ARCHITECTURES
from vaswani_plugin.models.config import VaswaniTransformerConfig
from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer
from vaswani_plugin.modules.cache import KeyValueCache

VOCABULARY = 23
PARTS = {
    "embeddings": r"(encoder|decoder)\.(output_)?embedding\.",
    "learned positions": r"(encoder|decoder)\.positions\.",
    "encoder self-attention": r"encoder\.stack\..*self_attention\.(?!norm)(query|key|value|output)",
    "encoder feed-forward": r"encoder\.stack\..*feed_forward\.(inner|outer)",
    "encoder LayerNorm": r"encoder\.stack\..*norm\.",
    "decoder self-attention": r"decoder\.stack\..*\.self_attention\.(query|key|value|output)",
    "decoder attention to the source": r"decoder\.stack\..*\.cross_attention\.(query|key|value|output)",
    "decoder feed-forward": r"decoder\.stack\..*feed_forward\.(inner|outer)",
    "decoder LayerNorm": r"decoder\.stack\..*norm\.",
}


def config(**changes):
    return VaswaniTransformerConfig(max_source_positions=64, max_target_positions=64, **{**SMALL, **changes})


def model_of(configuration):
    torch.manual_seed(1)
    fields = {name: getattr(configuration, name) for name in VaswaniTransformerConfig.__dataclass_fields__}
    return VaswaniTransformer.build_model(fields, ToyTask(dictionary(VOCABULARY)))


def counted(parameters):
    parts = {}
    for name, parameter in parameters.items():
        (part,) = [part for part, pattern in PARTS.items() if re.match(pattern, name)]
        parts[part] = parts.get(part, 0) + parameter.numel()
    return parts


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_parameters_by_part_of_every_architecture(architecture):
    expected = counted(parameters_on_meta_device(architecture, 37_000))
    assert parameters_by_part(config_of(architecture), 37_000) == expected


@pytest.mark.parametrize(
    "changes",
    [{"share_embeddings": "decoder"}, {"share_embeddings": "none"}, {"attention_bias": True}, {"d_k": 5, "d_v": 7}],
)
def test_parameters_with_other_settings(changes):
    configuration = config(**changes)
    assert parameters_by_part(configuration, VOCABULARY) == counted(dict(model_of(configuration).named_parameters()))


def test_parameters_round_to_the_papers_at_the_vocabulary_that_fits_it():
    """With 40,960 pieces, the released code's, and its attention biases every row but big is Table 3's."""
    rounded = {}
    for architecture in PAPER_FIGURES:
        configuration = config_of(architecture)
        configuration.attention_bias = True
        rounded[architecture] = round(sum(parameters_by_part(configuration, 40_960).values()) / 1e6)
    printed = {name: figure.millions for name, figure in PAPER_FIGURES.items() if figure.millions}
    assert len(printed) == 11
    assert {name: rounded[name] for name in printed if name != "vaswani_big"} == {
        name: millions for name, millions in printed.items() if name != "vaswani_big"
    }
    assert (rounded["vaswani_big"], printed["vaswani_big"]) == (218, 213)


def batch(sentences=3, source=7, target=5):
    torch.manual_seed(2)
    return torch.randint(4, VOCABULARY, (sentences, source)), torch.randint(4, VOCABULARY, (sentences, target))


def features(model, source, target):
    lengths = torch.full((source.size(0),), source.size(1))
    return model(source, lengths, target, features_only=True)[0].flatten(0, 1)


@pytest.mark.parametrize("changes", [{}, {"d_k": 5, "d_v": 7}, {"share_embeddings": "none", "num_layers": 1}])
def test_operations_of_forward_and_backward(changes):
    configuration = config(**changes)
    model = model_of(configuration).train()
    source, target = batch()
    expected = forward_flops(configuration, VOCABULARY, source_length=7, target_length=5)
    # torch counts every product of this kernel; those of the fused ones it does not know on all devices.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as forward:
        features(model, source, target)
    assert forward.get_total_flops() == (
        source.numel() * expected.encoder_per_source_token + target.numel() * expected.decoder_per_target_token
    )
    # The loss adds a product to a matrix in place, which torch does not count of itself.
    in_place = {torch.ops.aten.addmm_: lambda total, a, b, **_: 2 * a[0] * a[1] * b[1]}
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False, custom_mapping=in_place) as update:
        output = features(model, source, target)
        gold = target.flatten()
        loss, _, _ = projected_smoothed_cross_entropy(output, model.pre_softmax_matrix, gold, gold.ne(1), 0.1)
        loss.backward()
    assert update.get_total_flops() == expected.update(source.numel(), target.numel())


def test_operations_of_the_papers_training():
    """Base: 6 per weight and token, by hand, and attention's 12 N h (d_k + d_v) length for its three kinds."""
    d_model, vocabulary, length = 512, 37_000, 30
    weights = 6 * (4 * d_model**2 + 2 * d_model * 2048) + 6 * (8 * d_model**2 + 2 * d_model * 2048)
    per_pair_of_tokens = 6 * (weights + vocabulary * d_model) + 3 * 6 * (2 * 2 * 8 * 64) * length * 3
    assert training_flops(config_of("vaswani_base"), vocabulary, 100_000) == 100_000 * 25_000 * per_pair_of_tokens


@pytest.mark.parametrize(
    "changes",
    [
        {"dropout": 0.1},
        {"dropout": 0.0, "d_k": 5, "d_v": 5},
        {"dropout": 0.1, "num_layers": 3, "d_ff": 64, "activation_dropout": 0.1},
    ],
)
def test_activations_are_what_autograd_keeps(changes):
    configuration = config(**{"d_model": 24, "num_heads": 4, **changes})
    model = model_of(configuration).train()
    # As long as in training, so that what is kept per sentence or per model does not count.
    source, target = batch(sentences=8, source=64, target=48)
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if tensor.is_floating_point() or tensor.dtype == torch.bool:
            kept[storage.data_ptr()] = tensor, storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = features(model, source, target)
    assert output.requires_grad
    measured = sum(size for place, (_, size) in kept.items() if place not in weights)
    assert activation_bytes(configuration, source.numel(), target.numel()) == pytest.approx(measured, rel=0.02)


def test_weights_gradients_and_moments_are_what_training_holds():
    configuration = config()
    model = model_of(configuration)
    optimizer = torch.optim.Adam(model.parameters())
    source, target = batch()
    features(model, source, target).sum().backward()
    optimizer.step()

    def size(tensors):
        return sum(tensor.nbytes for tensor in tensors)

    memory = update_bytes(configuration, VOCABULARY, 10, 10)
    moments = [state[name] for state in optimizer.state.values() for name in ("exp_avg", "exp_avg_sq")]
    assert memory.weights == size(model.parameters())
    assert memory.gradients == size(parameter.grad for parameter in model.parameters())
    assert memory.adam_moments == size(moments)
    assert memory.total == 4 * memory.weights + memory.activations


def test_cache_is_what_beam_search_keeps(monkeypatch):
    configuration = config(d_k=5, d_v=7)
    model = model_of(configuration)
    caches = []

    class Watched(KeyValueCache):
        def __init__(self):
            super().__init__()
            caches.append(self)

    monkeypatch.setattr("vaswani_plugin.modules.cache.LayerCache.__init__", lambda cache: watch(cache, Watched))
    settings = SearchSettings(beam=4, max_len_a=0, max_len_b=5, min_len=5)
    source = torch.tensor([[5, 6, 7, 2]])
    search = BeamSearch([model], model.decoder.dictionary, settings)
    search.generate([model], {"net_input": {"src_tokens": source, "src_lengths": torch.tensor([4])}})
    held = sum(tensor.nbytes for cache in caches for tensor in cache.stored())
    # Six steps: five tokens and </s>.
    assert held == cache_bytes(configuration, source_length=4, target_length=6, beam=4)


def watch(cache, kind):
    cache.target, cache.memory = kind(), kind()


def test_json_of_the_base_model(capsys):
    assert cli.main(["describe", "vaswani_base", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["parameters"]["total"] == 44_101_632 + 37_000 * 512 == sum(result["parameters"]["parts"].values())
    assert result["parameters"]["paper"] == {"row": "Table 3, base", "millions": 65}
    assert result["sizes"]["encoder_layers"] == 6
    # 6 layers, 8 heads of 64 + 64 numbers of 4 bytes, 30 source positions and 4 times 30 target positions
    assert result["cache"] == {"beam": 4, "bytes": 6 * 8 * 128 * 4 * 150}
    assert result["update_memory"]["adam_moments"] == 8 * result["parameters"]["total"]
    assert result["flops"]["forward"]["pre_softmax_per_target_token"] == 2 * 37_000 * 512


def test_text_of_every_architecture(capsys):
    for architecture in ARCHITECTURES:
        assert cli.main(["describe", architecture, "--vocab", "1000", "--length", "10"]) == 0
        text = capsys.readouterr().out
        total = sum(parameters_by_part(config_of(architecture), 1000).values())
        assert f"{total:,}\n" in text
        figure = PAPER_FIGURES.get(architecture)
        assert (figure.row if figure else "the paper: has no such model") in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["vaswani_huge"], "there is no architecture 'vaswani_huge'; known are vaswani_base, vaswani_base_h1, "),
        (["vaswani_base", "--vocab", "0"], "--vocab 0 must be at least 1"),
        (["vaswani_base", "--length", "-3"], "--length -3 must be at least 1"),
    ],
)
def test_what_cannot_be_described(arguments, message, capsys):
    assert cli.main(["describe", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"vaswani describe: {message}")
    assert error.count("\n") == 1
