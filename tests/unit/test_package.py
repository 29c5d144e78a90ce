"""vaswani package: what it finds, what it writes, what it refuses."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from small_run import make_run

from vaswani_plugin import cli
from vaswani_plugin.checkpoints.averaging import average_checkpoints
from vaswani_plugin.checkpoints.reading import read_checkpoint
from vaswani_plugin.data.vocabulary import make_vocabulary
from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("run"))


@pytest.fixture
def run(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy to spoil; the training's data lies where the checkpoint says."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(original, tmp_path / "run"))


def package(*arguments: Any) -> int:
    return cli.main(["package", *map(str, arguments)])


def refusal(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    assert package(*arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("vaswani package: ")
    assert error.count("\n") == 1
    return error


def test_the_folder_is_complete_and_stands_alone(run: Path, tmp_path: Path, capsys: Any) -> None:
    before = VaswaniTransformer.from_pretrained(
        run / "checkpoints", "checkpoint_last.pt", run / "binary", sentencepiece_model=str(run / "joint.model")
    )
    assert package(run, tmp_path / "new" / "model", "--json") == 0
    contents = json.loads(capsys.readouterr().out)
    assert contents["checkpoint"] == str(run / "checkpoints" / "checkpoint_last.pt")
    assert (contents["source_lang"], contents["target_lang"]) == ("en", "de")
    shutil.rmtree(run)
    folder = (tmp_path / "new" / "model").rename(tmp_path / "moved")
    assert list((tmp_path / "new").iterdir()) == []
    names = ["dict.de.txt", "dict.en.txt", "model.json", "model.pt", "sentencepiece.bpe.model"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert json.loads((folder / "model.json").read_text()) == contents
    assert contents["model"]["d_model"] == 32

    after = VaswaniTransformer.from_pretrained(folder)
    source = "the small house now stands in a garden"
    assert after.encode(source).tolist() == before.encode(source).tolist()
    (expected, *_), (found, *_) = (model.generate(model.encode(source)) for model in (before, after))
    assert found["tokens"].tolist() == expected["tokens"].tolist()
    assert float(found["score"]) == float(expected["score"])


def test_weights_are_without_the_optimiser_and_safe(run: Path, tmp_path: Path) -> None:
    assert package(run, "model") == 0
    original = read_checkpoint(run / "checkpoints" / "checkpoint_last.pt")
    packaged = torch.load("model/model.pt", weights_only=True)
    assert "last_optimizer_state" in original
    assert "last_optimizer_state" not in packaged
    assert packaged["model"].keys() == original["model"].keys()
    assert all(torch.equal(packaged["model"][name], weight) for name, weight in original["model"].items())
    tied = {packaged["model"][name].data_ptr() for name in packaged["model"] if name.endswith("embedding.weight")}
    assert len(tied) == 1


def test_averaged_weights_come_before_the_best_and_the_last(run: Path, capsys: Any) -> None:
    last = run / "checkpoints" / "checkpoint_last.pt"
    shutil.copy(last, run / "checkpoints" / "checkpoint_best.pt")
    assert package(run, "one") == 0
    assert "weights of run/checkpoints/checkpoint_best.pt" in capsys.readouterr().out.replace(str(run), "run")
    average_checkpoints([last], run / "averaged.pt")
    assert package(run, "two") == 0
    assert "weights of run/averaged.pt (0 updates)" in capsys.readouterr().out.replace(str(run), "run")
    assert json.loads(Path("two/model.json").read_text())["averaged"][0]["file"] == "checkpoint_last.pt"
    assert package(run, "three", "--checkpoint", last) == 0
    assert f"weights of {last}" in capsys.readouterr().out


def test_a_moved_run_is_searched_for_data_and_vocabulary(run: Path, original: Path, capsys: Any) -> None:
    hidden = original.rename(original.with_name("hidden"))
    try:
        assert package(run / "checkpoints", "model", "--data", run / "binary") == 0
        assert f"SentencePiece model {run / 'joint.model'}" in capsys.readouterr().out
        assert package(run, "again") == 0
        assert f"dictionaries of {run / 'binary'}" in capsys.readouterr().out
    finally:
        hidden.rename(original)


def test_vocabularies_that_do_not_fit(run: Path, capsys: Any) -> None:
    # Another model of the same text lies beside the right one: only one has the dictionary's pieces.
    make_vocabulary([run / "train.en"], 320, run / "another")
    assert package(run, "model") == 0
    found = Path("model/sentencepiece.bpe.model").read_bytes()
    assert found == (run / "joint.model").read_bytes()
    assert "has no piece" in refusal(capsys, run, "x", "--sentencepiece-model", run / "another.model")
    Path("elsewhere").mkdir()
    joint = (run / "joint.model").rename("elsewhere/joint.model")
    message = refusal(capsys, run, "x", "--data", run / "binary")
    assert f"beside it or in {run}: none; give --sentencepiece-model FILE" in message
    assert package(run, "x", "--data", run / "binary", "--sentencepiece-model", joint) == 0


def test_a_dictionary_of_words_needs_no_vocabulary(run: Path, capsys: Any) -> None:
    for dictionary in (run / "binary").glob("dict.*.txt"):
        dictionary.write_text(dictionary.read_text("utf-8").replace("▁", "_"), "utf-8")
    state = torch.load(run / "checkpoints" / "checkpoint_last.pt", weights_only=True)
    state["model"] = dict(state["model"])  # which forgets the dictionary
    torch.save(state, run / "checkpoints" / "checkpoint_last.pt")
    assert package(run, "model", "--data", run / "binary") == 0
    assert "sentences are split at spaces" in capsys.readouterr().out
    model = VaswaniTransformer.from_pretrained("model")
    assert model.encode("_house _garden")[:-1].ne(model.src_dict.unk()).all()
    assert "has no piece that the model's dictionary knows" in model.refusal(model.encode("Haus Garten"))


def test_what_is_missing_is_told(run: Path, capsys: Any) -> None:
    assert "nowhere is not a folder" in refusal(capsys, "nowhere", "x")
    Path("taken").mkdir()
    assert "taken is there already: name a new folder, or remove it first" in refusal(capsys, run, "taken")
    Path("empty").mkdir()
    message = refusal(capsys, "empty", "x")
    assert "empty has none of averaged.pt, checkpoint_best.pt, checkpoint_last.pt" in message
    assert "give --checkpoint FILE" in message
    assert "no.pt: No such file or directory" in refusal(capsys, run, "x", "--checkpoint", "no.pt")
    assert "give --data DIR" in refusal(capsys, run, "x", "--data", "empty")
    assert "is not a whole checkpoint" in refusal(capsys, run, "x", "--checkpoint", run / "joint.model")
    torch.save({"model": {"weight": torch.zeros(1)}}, "bare.pt")
    assert "bare.pt holds no fairseq configuration" in refusal(capsys, run, "x", "--checkpoint", "bare.pt")
    small = run / "binary" / "dict.en.txt"
    small.write_bytes(small.read_bytes().split(b"\n", 5)[-1])
    assert "385" in refusal(capsys, run, "x", "--data", run / "binary")
    assert not any(path.name.startswith("x") for path in Path().iterdir())


def test_a_failure_while_writing_leaves_nothing(run: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", "model.pt")

    monkeypatch.setattr("vaswani_plugin.inference.packaging.torch.save", full)
    assert "x could not be written (No space left on device): make room on the disk" in refusal(capsys, run, "x")
    assert [path.name for path in Path().iterdir()] == ["run"]
