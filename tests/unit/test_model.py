"""The whole model: logits against the NumPy reference, padding, caches, tying, Table 3's sizes."""

import io
from argparse import Namespace
from typing import Any

import numpy as np
import pytest
import reference
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from omegaconf import OmegaConf
from stock_weights import numpy_layers
from toy_task import ToyTask, build, dictionary, parameters_on_meta_device

from vaswani_plugin.models.config import VaswaniTransformerConfig
from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer

PAD, EOS = 1, 2
SOURCE, TARGET = [5, 9, 4, 7, EOS], [EOS, 6, 8, 5]


def run(model: VaswaniTransformer, source: "list[list[int]]", target: "list[list[int]]") -> torch.Tensor:
    return model(torch.tensor(source), None, torch.tensor(target))[0]


def test_logits_are_the_papers() -> None:
    config = VaswaniTransformerConfig(d_model=12, num_heads=3).layer_config()
    model = build()
    expected = reference.logits(
        SOURCE,
        TARGET,
        model.encoder.embedding.weight.detach().numpy(),
        numpy_layers(model.encoder.stack, config),
        numpy_layers(model.decoder.stack, config),
    )
    np.testing.assert_allclose(run(model, [SOURCE], [TARGET])[0].detach().numpy(), expected, atol=1e-11)


@pytest.mark.parametrize("learned", [False, True])
def test_padding_on_either_side_changes_nothing(learned: bool) -> None:
    model = build(learned_positions=learned)
    alone = run(model, [SOURCE], [TARGET])[0]
    longer_source, longer_target = [5, 6, 7, 8, 9, 10, EOS], [EOS, 7, 7, 8, 9, 4]
    for left_source in (True, False):
        for left_target in (True, False):
            source = [PAD, PAD, *SOURCE] if left_source else [*SOURCE, PAD, PAD]
            target = [PAD, PAD, *TARGET] if left_target else [*TARGET, PAD, PAD]
            batch = run(model, [source, longer_source], [target, longer_target])
            mine = batch[0, 2:] if left_target else batch[0, :4]
            torch.testing.assert_close(mine, alone, atol=1e-12, rtol=0)
            torch.testing.assert_close(batch[1], run(model, [longer_source], [longer_target])[0], atol=1e-12, rtol=0)


def test_a_batch_of_nothing_but_padding_stays_finite() -> None:
    """fairseq's dummy batches and empty lines must not poison gradients."""
    model = build().train()
    logits = run(model, [[PAD] * 3, [*SOURCE[:2], EOS]], [[PAD] * 2, TARGET[:2]])
    logits.sum().backward()
    assert torch.isfinite(logits).all()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


@pytest.mark.parametrize("learned", [False, True])
def test_incremental_decoding_with_reordered_beams(learned: bool) -> None:
    """After every reordering each row must continue as the full pass over its own prefix would."""
    model = build(learned_positions=learned)
    source = torch.tensor([SOURCE, [PAD, PAD, 4, 4, EOS], [PAD, 8, 10, 6, EOS]])
    encoder_out = model.encoder(source)
    prefixes = torch.full((3, 1), EOS)
    state: dict[str, Any] = {}
    choose = torch.Generator().manual_seed(5)
    for _ in range(8):
        step, _ = model.decoder(prefixes, encoder_out, incremental_state=state)
        full, _ = model.decoder(prefixes, encoder_out)
        torch.testing.assert_close(step[:, 0], full[:, -1], atol=1e-11, rtol=0)
        order = torch.randint(0, 3, (3,), generator=choose)
        model.decoder.reorder_incremental_state_scripting(state, order)
        encoder_out = model.encoder.reorder_encoder_out(encoder_out, order)
        prefixes = torch.cat([prefixes[order], torch.randint(4, 11, (3, 1), generator=choose)], dim=1)


def test_attention_for_alignments_only_outside_training() -> None:
    model = build()
    _, extra = model(torch.tensor([[PAD, *SOURCE]]), None, torch.tensor([TARGET]))
    (attention,) = extra["attn"]
    assert attention.shape == (1, 4, 6)
    assert (attention[:, :, 0] == 0).all()
    torch.testing.assert_close(attention.sum(-1), torch.ones(1, 4, dtype=torch.float64))
    assert model.train()(torch.tensor([SOURCE]), None, torch.tensor([TARGET]))[1]["attn"] == []


def test_every_parameter_gets_a_gradient() -> None:
    model = build(learned_positions=True).train()
    run(model, [SOURCE], [TARGET]).square().sum().backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []


class TestSharing:
    def test_all_is_one_tensor(self) -> None:
        model = build()
        assert model.encoder.embedding is model.decoder.embedding is model.decoder.output_embedding
        assert sum(parameter.shape == (11, 12) for parameter in model.parameters()) == 1

    def test_one_tensor_after_saving_and_loading(self) -> None:
        model = build()
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        state = torch.load(file, weights_only=True)
        shared = [value for value in state.values() if value.shape == (11, 12)]
        assert len(shared) == 3
        assert len({value.data_ptr() for value in shared}) == 1
        other = build()
        other.load_state_dict(state)
        assert other.encoder.embedding.weight is other.decoder.output_embedding.weight

    @pytest.mark.parametrize(("sharing", "matrices"), [("decoder", 2), ("none", 3)])
    def test_fewer(self, sharing: str, matrices: int) -> None:
        model = build(share_embeddings=sharing)
        assert sum(parameter.shape == (11, 12) for parameter in model.parameters()) == matrices
        assert (model.decoder.embedding is model.decoder.output_embedding) == (sharing == "decoder")

    def test_different_dictionaries_cannot_share_all(self) -> None:
        task = ToyTask(dictionary(11, "a"), dictionary(9, "b"))
        with pytest.raises(ValueError, match=r"has 11 entries and the target's 9.*--joined-dictionary.*decoder"):
            VaswaniTransformer.build_model({"d_model": 12, "num_heads": 3}, task)
        model = VaswaniTransformer.build_model({"d_model": 12, "num_heads": 3, "share_embeddings": "decoder"}, task)
        assert model.encoder.embedding.weight.shape == (11, 12)
        assert model.decoder.embedding.weight.shape == (9, 12)


BASE_BODY = 44_101_632
DELTAS = {
    "vaswani_base_h1": 0,
    "vaswani_base_h4": 0,
    "vaswani_base_h16": 0,
    "vaswani_base_h32": 0,
    "vaswani_base_dk16": -7_077_888,
    "vaswani_base_dk32": -4_718_592,
    "vaswani_base_n2": -29_401_088,
    "vaswani_base_n4": -14_700_544,
    "vaswani_base_n8": 14_700_544,
    "vaswani_base_ff1024": -12_595_200,
    "vaswani_base_ff4096": 25_190_400,
    "vaswani_base_dropout00": 0,
    "vaswani_base_dropout02": 0,
    "vaswani_base_learned_positions": 2 * 256 * 512,
}


def count(architecture: str, vocabulary_size: int = 1000, **config: Any) -> int:
    return sum(p.numel() for p in parameters_on_meta_device(architecture, vocabulary_size, **config).values())


@pytest.mark.parametrize(("architecture", "delta"), [("vaswani_base", 0), *DELTAS.items()])
def test_parameters_of_table_3(architecture: str, delta: int) -> None:
    assert count(architecture) == BASE_BODY + 1000 * 512 + delta


def test_parameters_of_other_widths() -> None:
    assert count("vaswani_base_d256") == 17_344_512 + 1000 * 256
    assert count("vaswani_base_d1024") == 125_927_424 + 1000 * 1024
    assert count("vaswani_big") == count("vaswani_big_en_fr") == 176_283_648 + 1000 * 1024
    assert count("vaswani_base", attention_bias=True) == 44_138_496 + 1000 * 512


def flags(architecture: str, **given: Any) -> dict[str, Any]:
    """The configuration that fairseq makes of --arch and what the user typed, the second call included."""
    args = Namespace(**given)
    ARCH_CONFIG_REGISTRY[architecture](args)
    defaults = OmegaConf.to_container(OmegaConf.structured(VaswaniTransformerConfig), resolve=False)
    config = OmegaConf.create({**defaults, **vars(args)})
    before = OmegaConf.to_container(config, resolve=False)
    ARCH_CONFIG_REGISTRY[architecture](config)
    assert OmegaConf.to_container(config, resolve=False) == before
    return before


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [
        # num_layers, d_model, d_ff, num_heads, d_k, d_v, dropout as Table 3 prints them
        ("vaswani_base", (6, 512, 2048, 8, 64, 64, 0.1)),
        ("vaswani_base_h1", (6, 512, 2048, 1, 512, 512, 0.1)),
        ("vaswani_base_h4", (6, 512, 2048, 4, 128, 128, 0.1)),
        ("vaswani_base_h16", (6, 512, 2048, 16, 32, 32, 0.1)),
        ("vaswani_base_h32", (6, 512, 2048, 32, 16, 16, 0.1)),
        ("vaswani_base_dk16", (6, 512, 2048, 8, 16, 64, 0.1)),
        ("vaswani_base_dk32", (6, 512, 2048, 8, 32, 64, 0.1)),
        ("vaswani_base_n2", (2, 512, 2048, 8, 64, 64, 0.1)),
        ("vaswani_base_n4", (4, 512, 2048, 8, 64, 64, 0.1)),
        ("vaswani_base_n8", (8, 512, 2048, 8, 64, 64, 0.1)),
        ("vaswani_base_d256", (6, 256, 2048, 8, 32, 32, 0.1)),
        ("vaswani_base_d1024", (6, 1024, 2048, 8, 128, 128, 0.1)),
        ("vaswani_base_ff1024", (6, 512, 1024, 8, 64, 64, 0.1)),
        ("vaswani_base_ff4096", (6, 512, 4096, 8, 64, 64, 0.1)),
        ("vaswani_base_dropout00", (6, 512, 2048, 8, 64, 64, 0.0)),
        ("vaswani_base_dropout02", (6, 512, 2048, 8, 64, 64, 0.2)),
        ("vaswani_base_learned_positions", (6, 512, 2048, 8, 64, 64, 0.1)),
        ("vaswani_big", (6, 1024, 4096, 16, 64, 64, 0.3)),
        ("vaswani_big_en_fr", (6, 1024, 4096, 16, 64, 64, 0.1)),
        ("vaswani_tiny", (4, 128, 256, 4, 32, 32, 0.3)),
    ],
)
def test_architectures_are_the_rows_of_table_3(architecture: str, expected: "tuple[float, ...]") -> None:
    made = flags(architecture)
    config = VaswaniTransformerConfig(**{k: v for k, v in made.items() if not k.startswith(("_", "max_"))})
    layer = config.layer_config()
    sizes = (config.num_layers, layer.d_model, layer.d_ff, layer.num_heads, layer.d_k, layer.d_v, layer.dropout)
    assert sizes == expected
    assert (layer.attention_dropout, layer.activation_dropout, layer.attention_bias) == (0.0, 0.0, False)
    assert config.learned_positions == architecture.endswith("learned_positions")
    assert config.share_embeddings == "all"
    assert ARCH_MODEL_REGISTRY[architecture] is VaswaniTransformer


def test_an_explicit_flag_wins_over_the_architecture() -> None:
    assert flags("vaswani_big", dropout=0.1)["dropout"] == 0.1
    assert flags("vaswani_big", d_model=512)["d_model"] == 512
    assert flags("vaswani_big", d_model=512)["d_ff"] == 4096


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"d_model": 10, "num_heads": 3}, "--d-model 10 is not divisible by --num-heads 3"),
        ({"num_layers": 0}, "--num-layers 0 must be at least 1"),
        ({"d_k": -1}, "--d-k -1 must be at least 1"),
        ({"dropout": 1.0}, r"--dropout 1\.0 must be at least 0 and below 1"),
        ({"attention_dropout": -0.1}, r"--attention-dropout -0\.1"),
    ],
)
def test_impossible_sizes(config: "dict[str, Any]", message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VaswaniTransformerConfig(**config).layer_config()


def test_odd_width_with_free_heads() -> None:
    model = build(d_model=7, num_heads=2, d_k=3, d_v=2)
    assert run(model, [SOURCE], [TARGET]).shape == (1, 4, 11)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_follows_double(dtype: torch.dtype) -> None:
    model = build()
    expected = run(model, [SOURCE], [TARGET])
    rounded = run(model.to(dtype), [SOURCE], [TARGET])
    assert rounded.dtype == dtype
    torch.testing.assert_close(rounded.double(), expected, atol=0.3, rtol=0.1)
