"""The quickstart recipe as a user runs it, on a small text and with few updates."""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu

RECIPE = Path(__file__).parents[2] / "examples" / "quickstart" / "run.sh"
NOUNS = {"house": "Haus", "book": "Buch", "child": "Kind", "picture": "Bild", "horse": "Pferd", "window": "Fenster"}
ADJECTIVES = {"small": "kleine", "old": "alte", "red": "rote", "good": "gute", "long": "lange"}
VERBS = {"sees": "sieht", "finds": "findet", "likes": "mag", "draws": "malt"}
STEPS = ["text", "clean", "vocabulary", "encode", "binarise", "train", "average", "translate", "score", "report"]


def sentences(count, seed):
    draw = random.Random(seed)
    for _ in range(count):
        words = [draw.choice(list(kind.items())) for kind in (ADJECTIVES, NOUNS, VERBS, ADJECTIVES, NOUNS)]
        (a, b), (c, d), (e, f), (g, h), (i, j) = words
        yield f"the {a} {c} {e} the {g} {i}.", f"das {b} {d} {f} das {h} {j}."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A text whose parts are called as in Multi30k, in a folder with a space in its name."""
    folder = tmp_path_factory.mktemp("quick start")
    (folder / "data").mkdir()
    for part, count in (("train", 600), ("val", 40), ("test_2016", 30)):
        english, german = zip(*sentences(count, part), strict=True)
        (folder / "data" / f"{part}.en").write_text("".join(f"{line}\n" for line in english))
        (folder / "data" / f"{part}.de").write_text("".join(f"{line}\n" for line in german))
    return folder


INSTALLED = {**os.environ, "VENV": sys.prefix, "OMP_NUM_THREADS": "1"}


def run(folder, commands, **environment):
    settings = {"DATA": "data", "WORK": "work", "VOCAB_SIZE": "320", "MAX_UPDATE": "12"}
    return subprocess.run(
        ["bash", str(RECIPE)],
        cwd=folder,
        env={**commands, **settings, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def steps(output):
    """What each step said of itself: "done" for one that was skipped."""
    lines = [line.removeprefix("quickstart: ") for line in output.split("\n") if line.startswith("quickstart: ")]
    skipped = {line.partition(":")[0] for line in lines if line.endswith(": done before")}
    timed = {line.partition(":")[0] for line in lines if line.endswith(" in all") and line.partition(":")[0] in STEPS}
    return {name: "done" if name in skipped else "run" for name in STEPS if name in skipped | timed}


@pytest.fixture(scope="module")
def first(folder):
    """The first run takes the commands as they are installed; those after it, commands that start at once."""
    result = run(folder, INSTALLED)
    assert result.returncode == 0, result.stdout + result.stderr
    return result


def test_all_steps_run_and_end_in_a_score_of_the_raw_reference(folder, first):
    assert steps(first.stdout) == dict.fromkeys(STEPS, "run")
    score = json.loads((folder / "work" / "score.json").read_text())["sacrebleu"]
    # The same score from the D- lines by hand.
    generated = (folder / "work" / "generate.txt").read_text().split("\n")
    ours = {int(line[2:].split("\t")[0]): line.split("\t")[2] for line in generated if line.startswith("D-")}
    references = (folder / "data" / "test_2016.de").read_text().split("\n")[:-1]
    assert sorted(ours) == list(range(30))
    expected = sacrebleu.corpus_bleu([ours[i] for i in range(30)], [references], force=True)
    assert score["score"] == pytest.approx(expected.score)
    assert score["ref_len"] == expected.ref_len == 30 * 8
    assert f"BLEU {score['score']:.2f}" in first.stdout
    assert first.stdout.count("  reference  ") == first.stdout.count("  ours  ") == 5


def test_progress_is_shown_while_training(first):
    assert "update     12 of 12: validation perplexity " in first.stdout


def test_the_average_is_that_of_the_last_five(folder, first):
    line = next(line for line in first.stdout.split("\n") if "is the mean of" in line)
    assert line.partition(" is the mean of ")[2].startswith("5: ")
    assert (folder / "work" / "averaged.pt").is_file()


def test_the_report_is_of_this_run(folder, first):
    page = (folder / "work" / "report.html").read_text("utf-8")
    score = json.loads((folder / "work" / "score.json").read_text())["sacrebleu"]["score"]
    assert "Finished after 12 updates" in page
    assert f"<td>sacrebleu</td><td>{score:.2f}</td>" in page
    assert "20 of 30 sentences" in page
    assert 'id="attention-data"' in page


def test_a_second_run_skips_everything(commands_at_once, folder, first):
    result = run(folder, commands_at_once)
    assert result.returncode == 0, result.stderr
    assert steps(result.stdout) == dict.fromkeys(STEPS, "done")


def test_more_updates_go_on_from_the_last_checkpoint(commands_at_once, folder, first):
    result = run(folder, commands_at_once, MAX_UPDATE="14")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "going on from" in result.stdout
    assert "@ 12 updates" in result.stdout
    # The log covers both starts.
    assert len(re.findall(r"'max_update': 1[24],", (folder / "work" / "checkpoints" / "train.log").read_text())) == 2
    done = [name for name, state in steps(result.stdout).items() if state == "done"]
    assert done == ["text", "clean", "vocabulary", "encode", "binarise"]


def test_another_vocabulary_redoes_what_depends_on_it_and_keeps_the_old_checkpoints(commands_at_once, folder, first):
    result = run(folder, commands_at_once, VOCAB_SIZE="330", ARCH="no_such_architecture")
    assert result.returncode != 0
    assert steps(result.stdout) == {
        "text": "done",
        "clean": "done",
        **dict.fromkeys(["vocabulary", "encode", "binarise"], "run"),
    }
    log = folder / "work" / "logs" / "train.log"
    assert f"step 'train' failed (exit status 2); above is the end of {log}" in result.stderr
    assert "no_such_architecture" in result.stderr
    assert list((folder / "work" / "checkpoints.before").glob("checkpoint_*.pt"))


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"VOCAB_SIZE": "many"}, "VOCAB_SIZE=many is not a whole number of at least 1"),
        ({"MAX_UPDATE": "0"}, "MAX_UPDATE=0 is not a whole number of at least 1"),
        ({"DATA": "nowhere"}, "nowhere is not a folder"),
        ({"DATA": "."}, "there is no train.LANGUAGE (such as train.en and train.de)"),
        ({"VOCAB_SIZE": "100000"}, "vaswani vocabulary: --size 100000 is too large: this text supports at most "),
    ],
)
def test_mistakes_end_in_a_sentence(commands_at_once, folder, environment, message):
    result = run(folder, commands_at_once, WORK="mistakes", **environment)
    assert result.returncode == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_sides_of_unequal_length_stop_the_first_step(commands_at_once, folder, tmp_path):
    for file in (folder / "data").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "val.de").write_text("nur ein Satz.")
    result = run(tmp_path, commands_at_once, DATA=".")
    assert result.returncode == 1
    assert "val: 40 lines of en but 1 of de" in result.stderr
    assert steps(result.stdout) == {}


def test_two_runs_at_once_are_refused(commands_at_once, folder, first):
    with (folder / "work" / "lock").open("w") as lock:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
        result = run(folder, commands_at_once)
    assert result.returncode == 1
    assert "another run is at work in " in result.stderr
