"""vaswani export: CTranslate2's own program and a reading of the documented names give the model's numbers."""

import builtins
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import torch
from small_run import make_run, sentences
from toy_task import build, dictionary

from vaswani_plugin import cli
from vaswani_plugin.errors import UserError
from vaswani_plugin.inference.packaging import package
from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer

EOS = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A packaged model that has learned enough to be sure of most words: where it wavers, searches may differ."""
    parent = tmp_path_factory.mktemp("export")
    (parent / "run").mkdir()
    package(make_run(parent / "run", steps=450), parent / "model")
    return parent / "model"


def translator_of(spec: Any, directory: Path) -> Any:
    import ctranslate2

    spec.validate()
    spec.optimize()
    directory.mkdir()
    spec.save(str(directory))
    return ctranslate2.Translator(str(directory), compute_type="float32", inter_threads=1, intra_threads=1)


SHAPES: dict[str, dict[str, Any]] = {
    "as the base": {},
    "biases": {"attention_bias": True},
    "wide heads": {"d_k": 8, "d_v": 8},
    "narrow heads": {"d_k": 2, "d_v": 2, "attention_bias": True},
    "narrow keys": {"d_k": 2, "attention_bias": True},
    "narrow values": {"d_v": 2, "attention_bias": True},
    "keys and values of no common width": {"d_k": 3, "d_v": 7},
    "learned positions": {"learned_positions": True},
    "three matrices": {"share_embeddings": "none"},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_ctranslate2_gives_every_token_the_models_probability(shape: str, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    from vaswani_plugin.export.ctranslate2_model import transformer_spec

    model = build(**SHAPES[shape]).float()
    words = dictionary(11)
    translator = translator_of(transformer_spec(model, words.symbols, words.symbols), tmp_path / "model")
    sources = [[4 + (3 * i + j) % 7 for j in range(2 + 5 * i)] for i in range(5)]
    targets = [[4 + (2 * i + j) % 7 for j in range(3 + 7 * i)] for i in range(5)]
    pieces = [[[words[token] for token in line] for line in lines] for lines in (sources, targets)]
    for source, target, scored in zip(sources, targets, translator.score_batch(*pieces)):
        with torch.no_grad():
            logits, _ = model(torch.tensor([[*source, EOS]]), None, torch.tensor([[EOS, *target]]))
        expected = logits[0].log_softmax(-1).gather(1, torch.tensor([[*target, EOS]]).T)[:, 0]
        assert scored.log_probs == pytest.approx(expected.tolist(), abs=5e-6)


def test_ctranslate2_translates_alike(folder: Path, tmp_path: Path) -> None:
    """200 sentences, greedy and with a beam of 4 without length penalty: the same tokens, but for equal scores."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    exported = tmp_path / "deep" / "model.ct2"
    assert cli.main(["export", "ctranslate2", str(folder), str(exported)]) == 0
    assert [path.name for path in exported.parent.iterdir()] == ["model.ct2"]
    assert (exported / "sentencepiece.bpe.model").read_bytes() == (folder / "sentencepiece.bpe.model").read_bytes()
    ours = VaswaniTransformer.from_pretrained(folder, length_penalty_alpha=0.0)
    theirs = ctranslate2.Translator(str(exported), compute_type="float32", inter_threads=1, intra_threads=1)
    sources = [ours.encode(line) for line in sentences(200, seed=5)]
    for beam in (1, 4):
        best = [hypotheses[0] for hypotheses in ours.generate(sources, beam)]
        found = [[ours.tgt_dict[token] for token in hypothesis["tokens"][:-1]] for hypothesis in best]
        expected: list[list[str]] = []
        scores: list[float] = []
        for source in sources:
            pieces = [ours.src_dict[token] for token in source[:-1]]
            longest = len(pieces) + 50
            settings = {
                "beam_size": beam,
                "length_penalty": 0,
                "max_decoding_length": longest,
                "min_decoding_length": 0,
            }
            (result,) = theirs.translate_batch([pieces], return_scores=True, **settings)
            expected.append(result.hypotheses[0])
            scores.append(result.scores[0])
        assert len({tuple(line) for line in expected}) > 100
        same = [row for row in range(200) if found[row] == expected[row]]
        assert len(same) >= 198
        assert [float(best[row]["score"]) for row in same] == pytest.approx([scores[row] for row in same], abs=1e-4)


def test_ctranslate2_takes_the_longest_sentence(folder: Path, tmp_path: Path) -> None:
    """Positions are exported up to the model's limit, not up to the training's."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    exported = tmp_path / "model.ct2"
    assert cli.main(["export", "ctranslate2", str(folder), str(exported)]) == 0
    theirs = ctranslate2.Translator(str(exported), compute_type="float32", inter_threads=1, intra_threads=1)
    ours = VaswaniTransformer.from_pretrained(folder)
    source = ["▁house"] * 1500
    (scored,) = theirs.score_batch([source], [["▁Haus", "▁im"]], max_input_length=0)
    ids = torch.tensor([[*(ours.src_dict.index(piece) for piece in source), EOS]])
    target = [ours.tgt_dict.index("▁Haus"), ours.tgt_dict.index("▁im")]
    with torch.no_grad():
        logits, _ = ours.models[0](ids, None, torch.tensor([[EOS, *target]]))
    expected = logits[0].log_softmax(-1).gather(1, torch.tensor([[*target, EOS]]).T)[:, 0]
    assert scored.log_probs == pytest.approx(expected.tolist(), abs=1e-4)


def test_another_model_is_no_ctranslate2_export() -> None:
    pytest.importorskip("ctranslate2")
    from vaswani_plugin.export.ctranslate2_model import transformer_spec

    with pytest.raises(UserError, match="the model is a Linear, not a vaswani_transformer: ct2-fairseq-converter"):
        transformer_spec(torch.nn.Linear(1, 1), [], [])


def heads(matrix: Any, count: int) -> Any:
    """(h * width, d_model), as torch keeps it -> (h, d_model, width), as the paper writes it."""
    return matrix.reshape(count, -1, matrix.shape[1]).transpose(0, 2, 1)


def layer(tensors: dict[str, Any], prefix: str, config: dict[str, Any], cross: bool) -> reference.LayerWeights:
    """One layer by the table of docs/export.md."""
    h, d = config["num_heads"], config["d_model"]

    def attention(name: str) -> reference.AttentionWeights:
        at = f"{prefix}.{name}"
        if f"{at}.query_key_value.weight" in tensors:
            q, k, v = tensors[f"{at}.query_key_value.weight"].reshape(3, d, d)
        else:
            q = tensors[f"{at}.query.weight"]
            k, v = tensors[f"{at}.key_value.weight"].reshape(2, d, d)
        return reference.AttentionWeights(heads(q, h), heads(k, h), heads(v, h), tensors[f"{at}.output.weight"].T)

    at = f"{prefix}.feed_forward"
    names = ["self_attention", *(["cross_attention"] if cross else []), "feed_forward"]
    return reference.LayerWeights(
        attention("self_attention"),
        attention("cross_attention") if cross else None,
        reference.FeedForwardWeights(
            tensors[f"{at}.inner.weight"].T,
            tensors[f"{at}.inner.bias"],
            tensors[f"{at}.outer.weight"].T,
            tensors[f"{at}.outer.bias"],
        ),
        [
            reference.NormWeights(tensors[f"{prefix}.after_{n}.norm.weight"], tensors[f"{prefix}.after_{n}.norm.bias"])
            for n in names
        ],
    )


def test_safetensors_names_are_the_papers_matrices(folder: Path, tmp_path: Path) -> None:
    """Read with NumPy and put into the paper's formulas, the file gives the model's logits."""
    safetensors = pytest.importorskip("safetensors")
    path = tmp_path / "model.safetensors"
    assert cli.main(["export", "safetensors", str(folder), str(path)]) == 0
    with safetensors.safe_open(path, framework="numpy") as file:
        tensors = {name: file.get_tensor(name).astype(np.float64) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata()
    config, tied = json.loads(metadata["config"]), json.loads(metadata["tied"])
    assert tied == {
        "decoder.embedding.weight": "encoder.embedding.weight",
        "decoder.output_embedding.weight": "encoder.embedding.weight",
    }
    translator = VaswaniTransformer.from_pretrained(folder)
    model = translator.models[0]
    assert {*tensors, *tied} == set(model.state_dict())
    source = translator.encode("the small house stands").tolist()
    shifted = [EOS, *translator.encode("das kleine Haus").tolist()[:-1]]
    found = reference.logits(
        source,
        shifted,
        tensors["encoder.embedding.weight"],
        [layer(tensors, f"encoder.stack.layers.{n}", config, False) for n in range(config["num_layers"])],
        [layer(tensors, f"decoder.stack.layers.{n}", config, True) for n in range(config["num_layers"])],
    )
    with torch.no_grad():
        expected, _ = model(torch.tensor([source]), None, torch.tensor([shifted]))
    np.testing.assert_allclose(found, expected[0].numpy(), atol=1e-4)


@pytest.mark.parametrize("target", ["ctranslate2", "safetensors"])
def test_a_missing_package_is_told(target: str, folder: Path, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    original = builtins.__import__

    def without(name: str, *rest: Any, **settings: Any) -> Any:
        if name.split(".")[0] == target:
            raise ModuleNotFoundError(f"No module named {target!r}")
        return original(name, *rest, **settings)

    monkeypatch.setattr(builtins, "__import__", without)
    assert cli.main(["export", target, str(folder), str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert error.startswith(
        f"vaswani export: {target} cannot be imported (No module named {target!r}): install it with"
    )
    assert "pip install 'vaswani-plugin[export]'" in error
    assert error.count("\n") == 1
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("target", ["ctranslate2", "safetensors"])
def test_a_folder_that_is_no_model_is_told(target: str, tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip(target)
    (tmp_path / "folder").mkdir()
    assert cli.main(["export", target, str(tmp_path / "folder"), str(tmp_path / "out")]) == 1
    assert "has no model.pt" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["folder"]


def test_an_output_that_is_there_is_left_alone(folder: Path, tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("ctranslate2")
    (tmp_path / "out").mkdir()
    assert cli.main(["export", "ctranslate2", str(folder), str(tmp_path / "out")]) == 1
    assert "out is there already: name a new folder, or remove it first" in capsys.readouterr().err
