"""The WMT14 recipes as a user runs them, from small archives with the official names to the table of scores."""

import fcntl
import json
import os
import re
import shlex
from pathlib import Path

import pytest
import sacrebleu
import torch
import wmt14_mirror
from wmt14_recipe import PREPARE, VOCABULARY, Recipe, steps


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wmt14_mirror.build(tmp_path_factory.mktemp("wmt 14") / "mirror")


@pytest.fixture(scope="module")
def german(mirror: Path, commands_at_once: "dict[str, str]", tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    work = tmp_path_factory.mktemp("english german") / "work"
    return Recipe("wmt14_en_de", work, str(mirror), commands_at_once)


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


def test_two_runs_at_once_are_refused(german: Recipe, prepared: str) -> None:
    with (german.work / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for script, *words in (("prepare.sh",), ("train.sh", "base"), ("evaluate.sh", "base")):
            assert "another run is at work in " in german.run(script, *words, status=1).stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_the_whole_training_is_not_begun_on_a_cpu(german: Recipe, prepared: str) -> None:
    refused = german.run("train.sh", "big", status=1, ARCH="", MAX_UPDATE="").stderr
    assert "there is no GPU here, and 300000 updates of vaswani_big would take a CPU weeks" in refused


def test_weights_and_biases_on_request(german: Recipe, prepared: str) -> None:
    plain, logged = (
        shlex.split(german.run("train.sh", "base", "--dry-run", WANDB_PROJECT=project).stdout)
        for project in ("", "paper runs")
    )
    assert "--tensorboard-logdir" in plain
    assert logged == [*plain, "--wandb-project", "paper runs"]


def test_slurm_starts_a_torchrun_on_each_machine(german: Recipe, prepared: str, tmp_path: Path) -> None:
    scontrol = tmp_path / "scontrol"
    scontrol.write_text('#!/bin/sh\n[ "$1 $2 $3" = "show hostnames node[7-8]" ] && printf "node7\\nnode8\\n"\n')
    scontrol.chmod(0o755)
    slurm = {"SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_NUM_TASKS": "2", "SLURM_NODEID": "1"}
    slurm |= {"SLURM_STEP_NODELIST": "node[7-8]", "PATH": f"{tmp_path}{os.pathsep}{german.environment['PATH']}"}
    words = shlex.split(german.run("train.sh", "base", "--dry-run", **slurm).stdout)
    devices = str(max(torch.cuda.device_count(), 1))
    options = ["--nnodes", "2", "--node_rank", "1", "--nproc_per_node", devices, "--master_addr", "node7"]
    assert words[: len(options) + 3] == ["torchrun", *options, "--master_port", "29500"]
    assert words[len(options) + 3].endswith("/fairseq-train")
    two_a_node = {**slurm, "SLURM_STEP_NUM_TASKS": "4"}
    refused = german.run("train.sh", "base", "--dry-run", status=1, **two_a_node).stderr
    assert "SLURM has started 4 tasks on 2 nodes: start one on each, with srun --ntasks-per-node 1" in refused
