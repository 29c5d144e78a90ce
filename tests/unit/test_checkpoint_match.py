"""Weights that are not the model's: each kind is refused in a sentence with both sides; what goes together loads."""

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from toy_task import SMALL, ToyTask, build, dictionary

from vaswani_plugin.checkpoints.averaging import average_checkpoints
from vaswani_plugin.models.checkpoint_match import CheckpointMismatch, fingerprint
from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer


def saved(**config: Any) -> Any:
    """The weights of a model as they come out of a file."""
    file = io.BytesIO()
    torch.save(build(**config).state_dict(), file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize(
    ("theirs", "ours", "sentence"),
    [
        (
            {"d_model": 24, "d_ff": 30},
            {},
            "the checkpoint has --d-model 24, --d-ff 30, this run --d-model 12, --d-ff 20: give the checkpoint's",
        ),
        ({}, {"num_layers": 3}, "has --num-layers 2, this run --num-layers 3: "),
        ({}, {"num_layers": 1}, "has --num-layers 2, this run --num-layers 1: "),
        ({"num_heads": 2}, {}, "has --num-heads 2, this run --num-heads 3: "),
        ({}, {"d_k": 5}, "has --d-k d_model / heads, this run --d-k 5: "),
        ({"d_v": 5}, {"d_v": 7}, "has --d-v 5, this run --d-v 7: "),
        ({"attention_bias": True}, {}, "has --attention-bias True, this run --attention-bias False: "),
        (
            {"learned_positions": True},
            {"learned_positions": True, "max_target_positions": 70},
            "has --max-target-positions 64, this run --max-target-positions 70: ",
        ),
        ({}, {"learned_positions": True}, "has --learned-positions False, --max-source-positions unlimited,"),
        ({"share_embeddings": "none"}, {}, "has --share-embeddings none, this run --share-embeddings all: "),
        ({"share_embeddings": "decoder"}, {}, "has --share-embeddings decoder, this run --share-embeddings all: "),
        (
            {"vocabulary_size": 13},
            {},
            "has dictionaries of 13 and 13 entries, this run dictionaries of 11 and 11 entries: binarise with its",
        ),
        (
            {"vocabulary_size": 13, "d_ff": 30},
            {},
            "has --d-ff 30, dictionaries of 13 and 13 entries, this run --d-ff 20, dictionaries of 11 and 11 entries: "
            "give the checkpoint's values, binarise with its dictionary",
        ),
    ],
)
def test_a_difference_is_named_with_both_sides(theirs: Any, ours: Any, sentence: str) -> None:
    with pytest.raises(CheckpointMismatch) as refusal:
        build(**ours).load_state_dict(saved(**theirs))
    assert sentence in str(refusal.value)
    assert isinstance(refusal.value, ValueError)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("side", ["source", "target"])
def test_another_dictionary_of_the_same_size(side: str) -> None:
    """Its embeddings would go to the wrong words without a word."""
    one, other = dictionary(11), dictionary(11, "v")
    sizes = {**SMALL, "share_embeddings": "none", "max_source_positions": 64, "max_target_positions": 64}
    before = VaswaniTransformer.build_model(sizes, ToyTask(one, one))
    pair = (other, one) if side == "source" else (one, other)
    after = VaswaniTransformer.build_model(sizes, ToyTask(*pair))
    with pytest.raises(CheckpointMismatch, match="of 11 and 11 entries, this run dictionaries of 11 and 11 other entr"):
        after.load_state_dict(before.state_dict())


def test_counts_and_flags_are_no_part_of_a_dictionary() -> None:
    counted = dictionary(11)
    counted.count[5] = 1000
    assert fingerprint(counted) == fingerprint(dictionary(11))
    assert fingerprint(dictionary(12)) != fingerprint(dictionary(11))


@pytest.mark.parametrize(("theirs", "ours"), [("all", "decoder"), ("all", "none"), ("decoder", "none")])
def test_shared_matrices_may_go_on_as_several(theirs: str, ours: str) -> None:
    weights, model = saved(share_embeddings=theirs), build(share_embeddings=ours)
    model.load_state_dict(weights)
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, weights[name]), name
    model.load_state_dict(saved(share_embeddings=ours))  # now that its matrices are equal, it is still of several


def test_weights_without_notes_are_held_to_their_shapes() -> None:
    """A plain dictionary, as other tools write."""
    plain = dict(saved())
    build().load_state_dict(plain)
    build(num_heads=2).load_state_dict(plain)
    with pytest.raises(CheckpointMismatch, match="--d-ff 20, this run --d-ff 21"):
        build(d_ff=21).load_state_dict(plain)


def test_the_notes_survive_averaging(tmp_path: Path) -> None:
    paths = []
    for number in range(2):
        paths.append(tmp_path / f"{number}.pt")
        torch.save({"model": saved(), "optimizer_history": [{"num_updates": number}]}, paths[-1])
    average_checkpoints(paths, tmp_path / "mean.pt")
    mean = torch.load(tmp_path / "mean.pt", weights_only=True)["model"]
    build().load_state_dict(mean)
    with pytest.raises(CheckpointMismatch, match="--num-heads 3, this run --num-heads 2"):
        build(num_heads=2).load_state_dict(mean)


def test_another_kind_of_model() -> None:
    with pytest.raises(CheckpointMismatch, match=r"no encoder\.embedding\.weight, which .* such as encoder\.version: "):
        build().load_state_dict({"encoder.version": torch.tensor([3.0])})
    with pytest.raises(CheckpointMismatch, match="weights such as none"):
        build().load_state_dict({})
