"""The Multi30k recipe as a user runs it, on a small text and with few updates."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import sacrebleu
from conftest import run, write_pairs

RECIPE = Path(__file__).parents[2] / "examples" / "multi30k" / "run.sh"
STEPS = ["text", "vocabulary", "encode", "binarise", "train", "average", "translate", "score", "report"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The names of Multi30k, half of them compressed. An epoch is a few updates of two batches."""
    folder = tmp_path_factory.mktemp("multi 30k")
    (folder / "tok").mkdir()
    for seed, (part, count) in enumerate((("train", 180), ("val", 12), ("test_2016_flickr", 10))):
        write_pairs(folder / "tok", f"{part}.lc.norm.tok", count, seed)
    for file in (folder / "tok").glob("*.de"):
        Path(f"{file}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    return folder


@pytest.fixture(scope="module")
def recipe(folder: Path, commands_at_once: dict[str, str]) -> Callable[..., str]:
    small = {"DATA": "tok", "WORK": "work", "VOCAB_SIZE": "280", "MAX_UPDATE": "9", "MAX_TOKENS": "700"}

    def start(status: int = 0, where: Path = folder, **environment: str) -> str:
        settings = {**commands_at_once, **small, **environment}
        output = run("bash", RECIPE, cwd=where, status=status, **settings).output
        assert "Traceback" not in output
        return output

    return start


@pytest.fixture(scope="module")
def first(recipe: Callable[..., str]) -> str:
    return recipe()


def test_the_score_is_bleu_of_the_words_as_they_are(folder: Path, first: str) -> None:
    """sacreBLEU without tokenisation, on lower-cased text, from the D- lines by hand."""
    score = json.loads((folder / "work" / "score.json").read_text())["tokenized"]
    generated = (folder / "work" / "generate.txt").read_text().split("\n")
    ours = {int(line[2:].split("\t")[0]): line.split("\t")[2].lower() for line in generated if line.startswith("D-")}
    packed = folder / "tok" / "test_2016_flickr.lc.norm.tok.de.gz"
    references = gzip.decompress(packed.read_bytes()).decode().split("\n")[:-1]
    expected = sacrebleu.corpus_bleu([ours[i] for i in range(10)], [references], tokenize="none", force=True)
    assert score["score"] == pytest.approx(expected.score)
    assert score["ref_len"] == sum(len(line.split()) for line in references)
    assert f"BLEU, tokenised and lower-cased, {score['score']:.2f}  (" in first
    # The published number belongs to its test set.
    assert "41.02" not in first
    assert (folder / "work" / "report.html").is_file()


def test_the_report_reads_the_log_of_all_starts(folder: Path, first: str) -> None:
    from vaswani_plugin.report.run_folder import find_run
    from vaswani_plugin.report.training_log import read_training_log

    log = find_run(folder / "work").log
    assert log == folder / "work" / "checkpoints" / "train.log"
    assert read_training_log(log).updates == 9


def test_the_setting_is_the_published_one(folder: Path, first: str) -> None:
    import torch

    from vaswani_plugin.checkpoints.reading import read_checkpoint

    configuration = read_checkpoint(folder / "work" / "checkpoints" / "checkpoint_last.pt")["cfg"]
    model = configuration["model"]
    sizes = [model[name] for name in ("num_layers", "d_model", "d_ff", "num_heads", "dropout", "share_embeddings")]
    assert sizes == [4, 128, 256, 4, 0.3, "all"]
    peak = configuration["lr_scheduler"]["lr_factor"] / (128 * configuration["lr_scheduler"]["warmup_updates"]) ** 0.5
    assert peak == pytest.approx(0.005, rel=1e-4)
    assert configuration["lr_scheduler"]["warmup_updates"] == 2000
    assert configuration["optimizer"]["adam_betas"] == "(0.9,0.98)"
    assert (configuration["optimizer"]["adam_eps"], configuration["optimization"]["clip_norm"]) == (1e-8, 25.0)
    assert configuration["criterion"]["label_smoothing"] == 0.1
    assert configuration["checkpoint"]["patience"] == 10
    # Two batches an update, whatever the number of devices.
    devices = configuration["distributed_training"]["distributed_world_size"]
    assert devices * configuration["optimization"]["update_freq"][0] == 2
    assert devices == (2 if torch.cuda.device_count() >= 2 else 1)


def test_the_average_is_that_of_all_epochs_when_they_are_few(folder: Path, first: str) -> None:
    epochs = sorted(path.name for path in (folder / "work" / "checkpoints").glob("checkpoint[0-9]*.pt"))
    assert 1 < len(epochs) < 10
    line = re.search(r"is the mean of (\d+): (.*)", first)
    assert line is not None
    assert int(line[1]) == len(epochs) == len(line[2].split(", "))


def test_a_second_run_skips_everything(recipe: Callable[..., str], first: str) -> None:
    output = recipe()
    assert re.findall(r"multi30k: (\w+): done before", output) == STEPS


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"DATA": ""}, "DATA is not set: give the folder with train.lc.norm.tok.en and its like"),
        ({"DATA": "nowhere"}, "nowhere is not a folder"),
        ({"DATA": "."}, "train.lc.norm.tok.en"),
        ({"MAX_UPDATE": "0"}, "MAX_UPDATE=0 is not a whole number of at least 1"),
        ({"PRECISION": "int8"}, "PRECISION=int8 is none of float32, bfloat16 and float16"),
    ],
)
def test_mistakes_end_in_a_sentence(
    folder: Path, recipe: Callable[..., str], environment: dict[str, str], message: str
) -> None:
    output = recipe(status=1, **{"WORK": "mistakes", **environment})
    assert message in output
    # Before the environment is looked at.
    assert len(output.strip().split("\n")) == 1
    assert not (folder / "mistakes").exists()


def test_sides_of_unequal_length_stop_the_first_step(folder: Path, recipe: Callable[..., str], tmp_path: Path) -> None:
    for file in (folder / "tok").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "val.lc.norm.tok.de.gz").write_bytes(gzip.compress(b"w1"))
    output = recipe(status=1, where=tmp_path, DATA=".")
    assert "val.lc.norm.tok: 12 lines of en but 1 of de" in output
