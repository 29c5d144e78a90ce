"""The WMT14 recipes as a user runs them, from small archives with the official names to the table of scores."""

import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import sacrebleu
import torch
import wmt14_mirror
from archive_server import serving

EXAMPLES = Path(__file__).parents[2] / "examples"
VOCABULARY = 420
PREPARE = ["download", "text", "clean", "vocabulary", "encode", "binarise"]


@dataclass
class Recipe:
    pair: str
    work: Path
    mirror: str

    def command(self, script: str, *words: str, **environment: str) -> "tuple[list[str], dict[str, str]]":
        settings = {"WMT14_MIRROR": self.mirror, "WORK": str(self.work), "VENV": sys.prefix, "OMP_NUM_THREADS": "1"}
        settings |= {"VOCAB_SIZE": str(VOCABULARY), "ARCH": "vaswani_tiny", "MAX_UPDATE": "6", **environment}
        clean = {name: value for name, value in os.environ.items() if name not in ("WORLD_SIZE", "RANK")}
        return ["bash", str(EXAMPLES / self.pair / script), *words], {**clean, **settings}

    def run(self, script: str, *words: str, status: int = 0, **environment: str) -> "subprocess.CompletedProcess[str]":
        command, settings = self.command(script, *words, **environment)
        done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == status, done.stdout[-4000:] + done.stderr[-4000:]
        assert "Traceback" not in done.stderr
        return done

    def lines(self, name: str) -> "list[str]":
        content = (self.work / name).read_bytes().decode("utf-8", "surrogateescape")
        assert content.endswith("\n")
        return content[:-1].split("\n")


def steps(output: str) -> "dict[str, str]":
    """What each step said of itself, "done" for one that was skipped."""
    found = re.findall(r"^\w+: ([\w-]+): (done before|.* in all)$", output, re.MULTILINE)
    return {name: "done" if said == "done before" else "run" for name, said in found}


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wmt14_mirror.build(tmp_path_factory.mktemp("wmt 14") / "mirror")


@pytest.fixture(scope="module")
def german(mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return Recipe("wmt14_en_de", tmp_path_factory.mktemp("english german") / "work", str(mirror))


@pytest.fixture(scope="module")
def prepared(german: Recipe) -> str:
    return german.run("prepare.sh").stdout


@pytest.fixture(scope="module")
def trained(german: Recipe, prepared: str) -> "tuple[str, str]":
    """Four updates, and then six: what the two starts printed."""
    starts = [german.run("train.sh", "base", MAX_UPDATE=updates) for updates in ("4", "6")]
    return starts[0].stdout + starts[0].stderr, starts[1].stdout + starts[1].stderr


@pytest.fixture(scope="module")
def evaluated(german: Recipe, trained: "tuple[str, str]") -> str:
    return german.run("evaluate.sh", TFLOPS="0.5").stdout


def test_prepare_brings_every_pair_of_lines_to_its_place(german: Recipe, prepared: str) -> None:
    assert steps(prepared) == dict.fromkeys(PREPARE, "run")
    assert "check sums from its SHA256SUMS, in place of the built-in list" in prepared
    pairs = {name: wmt14_mirror.PAIRS[name] for name in ("europarl", "commoncrawl", "nc")}
    for name, corpus in zip(pairs, ("europarl-v7", "commoncrawl", "news-commentary-v9")):
        assert f"train: {pairs[name]} pairs of {corpus} (the official " in prepared
    sides = [wmt14_mirror.europarl("de"), wmt14_mirror.commoncrawl("de"), wmt14_mirror.news_commentary("de")]
    for index, language in enumerate(("en", "de")):
        whole = b"".join(side[index].removesuffix(b"\n") + b"\n" for side in sides)
        assert (german.work / "text" / f"train.{language}").read_bytes() == whole
    assert german.lines("text/valid.en"), german.lines("text/valid.de") == wmt14_mirror.news(12, "dev de", "de")
    english, other = wmt14_mirror.news(wmt14_mirror.TEST, "test de", "de")
    assert german.lines("text/test.en") == english
    assert german.lines("text/test.de") == other
    assert other[4].startswith("„")
    assert '& "more" <now>' in english[0]


def test_cleaning_is_counted(german: Recipe, prepared: str) -> None:
    total, removed = sum(wmt14_mirror.PAIRS[name] for name in ("europarl", "commoncrawl", "nc")), wmt14_mirror.REMOVED
    assert f"\n{total} pairs read\n" in prepared
    counts = [int(count) for count in re.findall(r"^ +(\d+) removed: ", prepared, re.MULTILINE)]
    assert counts == [removed["invalid_utf8"], removed["blank"], removed["too_long"], removed["ratio"]]
    kept = total - sum(removed.values())
    assert f" {kept} kept in " in prepared
    for language in ("en", "de"):
        assert len(german.lines(f"clean/train.{language}")) == len(german.lines(f"encoded/train.{language}")) == kept
    for remark in ("line separator U+2028: 264", "next line U+0085: 266", "lone carriage return (0x0D): 388"):
        assert remark in prepared
    # fairseq counts what was binarised.
    log = (german.work / "binary" / "preprocess.log").read_text()
    for part, count in (("train", kept), ("valid", wmt14_mirror.DEVELOPMENT), ("test", wmt14_mirror.TEST)):
        assert len(re.findall(rf"{part}\.(?:en|de): {count} sents, \d+ tokens, 0\.0% replaced", log)) == 2
    assert len(german.lines("vocabulary.dict.txt")) == VOCABULARY - 4


def test_text_keeps_its_quotation_marks_and_entities_in_pieces(german: Recipe, prepared: str) -> None:
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(german.work / "vocabulary.model"))
    decoded = [processor.decode(line.split(" ")) for line in german.lines("encoded/test.de")]
    assert decoded == german.lines("text/test.de")


def test_prepare_again_does_nothing(german: Recipe, trained: "tuple[str, str]") -> None:
    assert steps(german.run("prepare.sh").stdout) == dict.fromkeys(PREPARE, "done")


def test_training_goes_on_and_tells_its_batches(german: Recipe, trained: "tuple[str, str]") -> None:
    first, second = trained
    plan = json.loads((german.work / "base" / "plan.json").read_text())
    tokens = {}
    for language in ("en", "de"):
        tokens[language] = sum(len(line.split(" ")) + 1 for line in german.lines(f"encoded/train.{language}"))
    kept = len(german.lines("clean/train.en"))
    # The text is smaller than an update of 25,000 tokens.
    said = f"an update sees {tokens['en']:,} source and {tokens['de']:,} target tokens in {kept} pairs, on average"
    assert said in first
    assert said in second
    assert plan["update"]["source_tokens"] == tokens["en"]
    logged = [
        json.loads(line.split(" | ")[3]) for line in german.lines("base/train.log") if " | train_inner | " in line
    ]
    assert [int(values["num_updates"]) for values in logged] == [1, 2, 3, 4, 5, 6]
    assert {int(values["wpb"]) for values in logged} == {tokens["de"]}
    assert "going on from" in second
    assert "@ 4 updates" in second
    names = {path.name for path in (german.work / "base" / "checkpoints").glob("checkpoint_*_*.pt")}
    assert names == {f"checkpoint_{n}_{n}.pt" for n in range(2, 7)}
    assert list((german.work / "base" / "tensorboard" / "train_inner").glob("events.*"))


def test_evaluation_scores_the_mean_and_the_last_checkpoint(german: Recipe, evaluated: str) -> None:
    score = json.loads((german.work / "score.json").read_text())

    def by_hand(name: str, reference: str) -> "sacrebleu.BLEUScore":
        lines = [line.split("\t") for line in german.lines(f"base/{name}.txt") if line.startswith("D-")]
        ours = {int(words[0][2:]): words[2] for words in lines}
        references = german.lines(reference)
        return sacrebleu.corpus_bleu([ours[i] for i in range(len(references))], [references], force=True)

    for found, name, reference in (
        (score, "test_averaged", "text/test.de"),
        (score["last_checkpoint"], "test_last", "text/test.de"),
        (score["development"], "development_last", "text/valid.de"),
    ):
        expected = by_hand(name, reference)
        assert found["sacrebleu"]["score"] == pytest.approx(expected.score)
        assert (found["sacrebleu"]["hyp_len"], found["sacrebleu"]["ref_len"]) == (expected.sys_len, expected.ref_len)
    last = [line for line in german.lines("base/train.log") if " | valid | " in line][-1]
    assert score["development"]["perplexity"] == float(json.loads(last.split(" | ")[3])["valid_ppl"])

    training = score["training"]
    state = torch.load(german.work / "base" / "checkpoints" / "checkpoint_last.pt", weights_only=True)
    assert training["updates"] == state["optimizer_history"][-1]["num_updates"] == 6
    # Table 2: time, times devices, times sustained FLOPS.
    assert training["flops"] == pytest.approx(state["extra_state"]["previous_training_time"] * 1 * 0.5e12)
    averaged = torch.load(german.work / "base" / "averaged.pt", weights_only=True)
    assert [source["num_updates"] for source in averaged["extra_state"]["averaged"]] == [2, 3, 4, 5, 6]
    assert score["averaged_checkpoints"] == 5
    table = evaluated[evaluated.index("newstest2014") :]
    assert f"signature: {score['sacrebleu']['signature']}" in table
    assert re.search(r"mean of 5 +last alone +last alone\n +sacreBLEU +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d\n", table)
    assert f"{score['development']['perplexity']:.2f}" in table


def test_french_from_a_server_after_an_interruption(mirror: Path, tmp_path: Path) -> None:
    """Years' folders, an interruption in the middle of a file, UN's and giga-fren's layouts, a lone CR in a line."""
    years = wmt14_mirror.build(tmp_path / "years", years=True)
    files = {str(path.relative_to(years)): path.read_bytes() for path in years.rglob("*") if path.is_file()}
    with serving(files) as server:
        recipe = Recipe("wmt14_en_fr", tmp_path / "work", server.address)
        server.stands_still_after = 2000
        command, settings = recipe.command("prepare.sh")
        part = recipe.work / "archives" / "wmt13" / "training-parallel-europarl-v7.tgz.part"
        with subprocess.Popen(
            command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        ) as process:
            for _ in range(600):
                if part.exists():
                    break
                time.sleep(0.05)
            os.killpg(process.pid, signal.SIGINT)
            output = process.communicate(timeout=60)[0]
        assert process.returncode == 130, output
        assert "interrupted; run it again to go on from here" in output
        assert "Traceback" not in output
        server.stands_still_after = None
        server.goes_on.set()
        left = part.stat().st_size
        done = recipe.run("prepare.sh")
        assert steps(done.stdout) == dict.fromkeys(PREPARE, "run")
        europarl = [wanted for path, wanted in server.requests if path.endswith("europarl-v7.tgz")]
        assert europarl[-1] == (f"bytes={left}-" if left else None)
    total = sum(wmt14_mirror.PAIRS.values()) - sum(wmt14_mirror.REMOVED.values())
    assert len(recipe.lines("clean/train.fr")) == len(recipe.lines("encoded/train.en")) == total
    log = (recipe.work / "binary" / "preprocess.log").read_text()
    assert len(re.findall(rf"train\.(?:en|fr): {total} sents, \d+ tokens, 0\.0% replaced", log)) == 2
    giga = [english for english, _ in wmt14_mirror.sentences(wmt14_mirror.PAIRS["giga"], "giga", "fr")]
    assert recipe.lines("text/train.en")[-len(giga) :] == giga


def test_a_wrong_archive_stops_prepare_and_the_right_one_goes_on(mirror: Path, tmp_path: Path) -> None:
    copy = tmp_path / "mirror"
    shutil.copytree(mirror, copy)
    whole = (copy / "dev.tgz").read_bytes()
    (copy / "dev.tgz").write_bytes(whole[: len(whole) // 2])
    recipe = Recipe("wmt14_en_de", tmp_path / "work", str(copy))
    refused = recipe.run("prepare.sh", status=1)
    found = re.search(r"wmt14: .*/dev.tgz has the sha256 sum (\w{64}), but (\w{64}) is expected: ", refused.stderr)
    assert found
    assert found[1] != found[2]
    # The sum now fits the truncated file, which cannot be unpacked.
    wmt14_mirror.write_sums(copy)
    refused = recipe.run("prepare.sh", status=1)
    assert re.search(r"wmt14: .*/dev.tgz is damaged or cut off", refused.stderr)
    assert steps(refused.stdout) == {"download": "run"}
    assert not (recipe.work / "text" / "train.en").exists()


def test_two_runs_at_once_are_refused(german: Recipe, prepared: str) -> None:
    with (german.work / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for script, *words in (("prepare.sh",), ("train.sh", "base"), ("evaluate.sh", "base")):
            assert "another run is at work in " in german.run(script, *words, status=1).stderr


@pytest.mark.parametrize(
    ("script", "words", "environment", "message"),
    [
        ("prepare.sh", [], {"VOCAB_SIZE": "many"}, "VOCAB_SIZE=many is not a whole number of at least 1"),
        ("prepare.sh", [], {"WMT14_MIRROR": "/no/such"}, "WMT14_MIRROR=/no/such is neither a folder nor an address"),
        ("train.sh", [], {}, "usage: train.sh base|big [--dry-run]"),
        ("train.sh", ["huge"], {}, "'huge' is neither base nor big, the two models of the paper"),
        ("train.sh", ["base"], {}, "prepare.sh has not been run to its end in "),
        ("train.sh", ["base"], {"NNODES": "2"}, "NNODES=2 needs MASTER_ADDR"),
        ("evaluate.sh", [], {}, "train.sh has not been run to its end in "),
    ],
)
def test_mistakes_end_in_a_sentence(
    tmp_path: Path, script: str, words: "list[str]", environment: "dict[str, str]", message: str
) -> None:
    recipe = Recipe("wmt14_en_de", tmp_path / "work", "")
    assert message in recipe.run(script, *words, status=1, **environment).stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_the_whole_training_is_not_begun_on_a_cpu(german: Recipe, prepared: str) -> None:
    refused = german.run("train.sh", "big", status=1, ARCH="", MAX_UPDATE="").stderr
    assert "there is no GPU here, and 300000 updates of vaswani_big would take a CPU weeks" in refused


def test_slurm_starts_a_torchrun_on_each_machine(german: Recipe, prepared: str, tmp_path: Path) -> None:
    scontrol = tmp_path / "scontrol"
    scontrol.write_text('#!/bin/sh\n[ "$1 $2 $3" = "show hostnames node[7-8]" ] && printf "node7\\nnode8\\n"\n')
    scontrol.chmod(0o755)
    slurm = {"SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_NUM_TASKS": "2", "SLURM_NODEID": "1"}
    slurm |= {"SLURM_STEP_NODELIST": "node[7-8]", "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    words = shlex.split(german.run("train.sh", "base", "--dry-run", **slurm).stdout)
    devices = str(max(torch.cuda.device_count(), 1))
    options = ["--nnodes", "2", "--node_rank", "1", "--nproc_per_node", devices, "--master_addr", "node7"]
    assert words[: len(options) + 3] == ["torchrun", *options, "--master_port", "29500"]
    assert words[len(options) + 3].endswith("/fairseq-train")
    two_a_node = {**slurm, "SLURM_STEP_NUM_TASKS": "4"}
    refused = german.run("train.sh", "base", "--dry-run", status=1, **two_a_node).stderr
    assert "SLURM has started 4 tasks on 2 nodes: start one on each, with srun --ntasks-per-node 1" in refused
