"""Whole models with 8-bit weights: what is replaced, what is refused, how near the results stay."""

import copy
import math
from argparse import Namespace
from typing import Any

import pytest
import torch
from toy_task import build, dictionary
from trained_toy import bleu, found, sources, trained_model

from vaswani_plugin.generation import int8_weights
from vaswani_plugin.generation.int8_weights import use_int8_weights
from vaswani_plugin.modules.int8_linear import Int8Linear, Int8Projection
from vaswani_plugin.modules.linear import Linear
from vaswani_plugin.tasks.vaswani_translation import VaswaniTranslationConfig, VaswaniTranslationTask

WORDS = dictionary(9)
SOURCE, TARGET = torch.tensor([[5, 8, 4, 6, 2]]), torch.tensor([[2, 6, 8, 5]])


def task(**config: Any) -> VaswaniTranslationTask:
    return VaswaniTranslationTask(VaswaniTranslationConfig(**config), WORDS, WORDS)


@pytest.mark.parametrize("sharing", ["all", "decoder", "none"])
@torch.no_grad()
def test_every_product_with_a_matrix_is_replaced_once(sharing: str) -> None:
    model = build(9, d_model=24, share_embeddings=sharing, attention_bias=True).float()
    exact = model(SOURCE, None, TARGET)[0]
    inputs = [model.encoder.embedding.weight.clone(), model.decoder.embedding.weight.clone()]
    for _ in range(2):
        task(int8=True).build_generator([model], Namespace())
    assert not any(isinstance(module, Linear) for module in model.modules())
    # Per encoder layer 2 + 2, per decoder layer 2 + 3 + 2.
    assert sum(isinstance(module, Int8Linear) for module in model.modules()) == 2 * 4 + 2 * 7 + 1
    assert isinstance(model.decoder.output_embedding, Int8Projection)
    assert torch.equal(model.encoder.embedding.weight, inputs[0])
    assert torch.equal(model.decoder.embedding.weight, inputs[1])
    near = model(SOURCE, None, TARGET)[0]
    assert not torch.equal(near, exact)
    assert (near - exact).norm() < 0.1 * exact.norm()


def test_trained_weights_have_the_bleu_of_float32() -> None:
    model = trained_model()
    chosen = sources(128, 8)
    exact = found(model, chosen)
    use_int8_weights([model], mixed_precision=False)
    near = found(model, chosen)
    assert [best[0][0] for best in near] != [best[0][0] for best in exact]
    assert bleu(chosen, near) == pytest.approx(bleu(chosen, exact), abs=1.0)
    differences = [abs(one[0][0] - other[0][0]) for one, other in zip(near, exact)]
    assert sum(differences) / len(differences) < 0.03
    # A row of numbers is rounded alone, so that a sentence has the same result among others.
    for source, outputs in zip(chosen[:20], near):
        assert found(model, [source])[0][0][1] == outputs[0][1]


def test_not_a_number_stays_one() -> None:
    """The search refuses it; integers alone could not tell."""
    for place in ("encoder.stack.layers.0.feed_forward.inner.weight", "decoder.output_embedding.weight"):
        model = build(9).float()
        model.get_parameter(place).data[4, 0] = math.nan
        search = task(int8=True).build_generator([model], Namespace())
        with pytest.raises(ValueError, match="not a number: a weight of the checkpoint is NaN"):
            search.generate([model], {"net_input": {"src_tokens": SOURCE, "src_lengths": torch.tensor([5])}})


def stock_model() -> Any:
    return torch.nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("model", "mixed_precision", "sentence"),
    [
        (build(9).float(), True, "--int8 and --mixed-precision are two precisions of the same products: give one"),
        (stock_model(), False, "--int8 is for this plugin's models, not for a Linear: leave it out"),
        (build(9).float().to("meta"), False, "--int8 is for translating on a CPU: give --cpu too"),
        (build(9).half(), False, "--int8 begins with float32 weights: leave out --fp16"),
    ],
)
def test_refused(model: Any, mixed_precision: bool, sentence: str) -> None:
    before = copy.deepcopy(model)
    with pytest.raises(ValueError, match=sentence):
        use_int8_weights([model], mixed_precision)
    assert str(model) == str(before)


def test_refused_without_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(int8_weights, "available", lambda: False)
    with pytest.raises(ValueError, match=r"--int8 needs an operator that torch \S+ lacks here: leave it out"):
        use_int8_weights([build(9).float()], mixed_precision=False)


def test_refused_where_losses_are_computed() -> None:
    with pytest.raises(ValueError, match="--int8 is for translating: leave it out of fairseq-train"):
        task(int8=True).build_criterion(Namespace(_name="vaswani_label_smoothing"))
