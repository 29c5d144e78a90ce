"""The recipe of Table 3 in small, with two rows and few updates."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import run, write_pairs

RECIPE = Path(__file__).parents[2] / "examples" / "ablations" / "run.sh"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table 3")
    (folder / "data").mkdir()
    for seed, (part, count) in enumerate((("train", 150), ("valid", 12), ("test", 10))):
        write_pairs(folder / "data", part, count, seed)
    return folder


@pytest.fixture(scope="module")
def recipe(folder: Path, commands_at_once: dict[str, str]) -> Callable[..., str]:
    small = {"DATA": "data", "WORK": "work", "VOCAB_SIZE": "280", "MAX_UPDATE": "4", "SEEDS": "1"}

    def start(rows: str, status: int = 0, **environment: str) -> str:
        settings = {**commands_at_once, **small, "ROWS": rows, **environment}
        output = run("bash", RECIPE, cwd=folder, status=status, **settings).output
        assert "Traceback" not in output
        return output

    return start


def states(output: str) -> dict[str, str]:
    """Of the steps of rows, whether they were run."""
    found = re.findall(r"^ablations: ((?:train|score)-[\w-]+): (done before|.* in all)$", output, re.MULTILINE)
    return {name: "done" if said == "done before" else "run" for name, said in found}


@pytest.fixture(scope="module")
def first(recipe: Callable[..., str]) -> str:
    return recipe("base")


@pytest.fixture(scope="module")
def second(recipe: Callable[..., str], first: str) -> str:
    return recipe("base B1")


def test_a_row_is_added_to_what_is_there(first: str, second: str) -> None:
    assert states(first) == {"train-base-seed1": "run", "score-base-seed1": "run"}
    assert states(second) == {
        "train-base-seed1": "done",
        "score-base-seed1": "done",
        "train-B1-seed1": "run",
        "score-B1-seed1": "run",
    }


def test_results_are_those_of_the_trainings(folder: Path, second: str) -> None:
    """Perplexity is what the training said last, BLEU what the translations of the development set come to."""
    import sacrebleu

    result = json.loads((folder / "work" / "score.json").read_text())
    assert [entry["row"] for entry in result["rows"]] == ["base", "B1"]
    assert (result["updates"], result["seeds"]) == (4, [1])
    for entry in result["rows"]:
        place = folder / "work" / "rows" / f"{entry['row']}-seed1"
        said = re.findall(r'"valid_ppl": "([\d.]+)"', (place / "checkpoints" / "train.log").read_text())
        assert entry["perplexity"]["mean"] == float(said[-1])
        generated = (place / "generate.txt").read_text().split("\n")
        ours = {int(line[2:].split("\t")[0]): line.split("\t")[2] for line in generated if line.startswith("D-")}
        references = (folder / "data" / "valid.de").read_text().split("\n")[:-1]
        expected = sacrebleu.corpus_bleu([ours[i] for i in range(12)], [references], force=True)
        assert entry["bleu"]["mean"] == pytest.approx(expected.score)
    table = (folder / "work" / "ablations.txt").read_text()
    assert table in second
    assert re.search(r"^B1 +d_k 2 .* \+0\.24 worse .* -0\.70 worse$", table, re.MULTILINE)
    assert (folder / "work" / "ablations.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_rows_differ_in_what_they_say(folder: Path, second: str) -> None:
    """d_k 2 instead of 8 in 9 attentions of 8 heads takes 2 x 64 x 8 x 6 weights from each."""
    from vaswani_plugin.checkpoints.reading import read_checkpoint

    counts = {}
    for name in ("base", "B1"):
        path = folder / "work" / "rows" / f"{name}-seed1" / "checkpoints" / "checkpoint_last.pt"
        weights = {tensor.data_ptr(): tensor.numel() for tensor in read_checkpoint(path)["model"].values()}
        counts[name] = sum(weights.values())
    assert counts["base"] - counts["B1"] == 9 * 2 * 64 * 8 * 6


@pytest.mark.parametrize(
    ("rows", "environment", "message"),
    [
        ("base F", {}, "ablations: ROWS has F, which is none of base A1"),
        ("A1", {}, "ablations: ROWS has no base"),
        ("base", {"SEEDS": "one"}, "SEED=one is not a whole number of at least 0"),
        ("base", {"SEEDS": ""}, "SEEDS is empty: give at least one"),
        ("base", {"DATA": "nowhere"}, "nowhere is not a folder"),
    ],
)
def test_mistakes_end_in_a_sentence(
    recipe: Callable[..., str], rows: str, environment: dict[str, str], message: str
) -> None:
    output = recipe(rows, status=1, WORK="mistakes", **environment)
    assert message in output
    assert len(output.strip().split("\n")) == 1
