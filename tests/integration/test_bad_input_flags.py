"""Flags without a meaning: a sentence that names the flag and what to give, before anything is written."""

from pathlib import Path
from typing import Any

import pytest
from conftest import Corpus, Run
from in_process import call, generate, refusal, train


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--dropout", 2], "--dropout 2.0 must be at least 0 and below 1"),
        (["--label-smoothing", 1.5], "--label-smoothing 1.5 must be at least 0 and below 1 (the paper: 0.1)"),
        (["--num-heads", 0], "--num-heads 0 must be at least 1"),
        (
            ["--d-model", 15],
            "--d-model 15 is not divisible by --num-heads 2: change one of them, or give both --d-k and --d-v",
        ),
        (["--warmup-updates", 0], "--warmup-updates 0 must be at least 1: the schedule divides by it"),
        (["--lr-factor", 0], "--lr-factor 0.0 must be a positive number (the paper: 1)"),
        (["--lr", 0.1], "--lr 0.1 has no effect on --lr-scheduler vaswani_inverse_sqrt, whose peak rate 0.025"),
        (["--update-freq", 0], "--update-freq 0 must be at least 1"),
        (["--adam-betas", "__import__('os').mkdir('x')"], "--adam-betas __import__('os').mkdir('x') must be two"),
        (["--eval-bleu", "--eval-bleu-args", "{"], "--eval-bleu-args '{' is not a JSON object such as"),
        (["--eval-bleu", "--eval-bleu-args", '{"beam": 0}'], "--beam 0 must be at least 1"),
        (["--max-source-positions", 1], "no sentences are left, because the data is empty or every sentence is longer"),
        (
            ["--learned-positions", "--max-target-positions", 5],
            "sentence 4 of valid has 6 and 6 tokens with </s>, more",
        ),
        (["--restore-file", "no.pt"], "--restore-file no.pt: there is no such checkpoint"),
        (["--finetune-from-model", "no.pt"], "--finetune-from-model no.pt: there is no such checkpoint"),
        (["--valid-subset", "dev"], "Dataset not found: dev ("),
        (["--source-lang", "xx", "--target-lang", "de"], "there is no file "),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_training(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: "list[Any]", sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refusal(train(corpus.binary, "save", *flags, status=1), "fairseq-train").startswith(sentence)
    assert not list(tmp_path.rglob("*.pt"))
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--beam", 0], "--beam 0 must be at least 1"),
        (["--beam", 100_000], "--beam 100000 is larger than the target dictionary, which has 24 entries"),
        (["--nbest", 5], "--nbest 5 needs a --beam of at least that, but --beam is 4"),
        (["--max-len-b", -5], "--max-len-b -5 must be at least 0"),
        (["--sampling"], "--sampling draws --beam 4 translations; give the same number with --nbest"),
        (["--constraints"], "--constraints come after a tab in the lines that fairseq-interactive reads"),
        (["--replace-unk"], "--replace-unk needs the text itself; use --dataset-impl raw"),
        (["--bpe", "sentencepiece"], "--bpe sentencepiece needs --sentencepiece-model"),
        (["--post-process", "x"], "--post-process x is not known"),
        (["--model-overrides", "x"], "--model-overrides 'x' is not a dictionary such as"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_generation(corpus: Corpus, trained: Run, flags: "list[Any]", sentence: str) -> None:
    done = generate(corpus.binary, trained.last, *flags, status=1)
    assert refusal(done, "fairseq-generate").startswith(sentence)
    assert "\nH-" not in done.output


def test_nan_is_no_number_whatever_the_flag(corpus: Corpus, tmp_path: Path) -> None:
    done = train(corpus.binary, tmp_path / "save", "--weight-decay", "nan", status=1)
    assert refusal(done, "fairseq-train") == "--weight-decay nan is not a number; give one"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"clip_norm": float("nan")}, "--clip-norm nan is not a number; give one"),
        ({"lr": [0.1, float("nan")]}, "--lr nan is not a number; give one"),
        ({"max_tokens": 0}, "--max-tokens 0 must be at least 1"),
        ({"max_tokens_valid": -1}, "--max-tokens-valid -1 must be at least 1"),
        ({"batch_size": 0}, "--batch-size 0 must be at least 1"),
        ({"update_freq": [1, 0]}, "--update-freq 0 must be at least 1"),
        ({"num_workers": -1}, "--num-workers -1 must be at least 0"),
        ({"workers": 0}, "--workers 0 must be at least 1"),
        ({"seed": 2**32}, "--seed 4294967296 must be at most 4294967295"),
        ({"model_overrides": "[1]"}, "--model-overrides '[1]' is not a dictionary such as \"{'dropout': 0.1}\""),
    ],
)
def test_numbers_of_any_command(settings: "dict[str, Any]", sentence: str) -> None:
    from fairseq.flag_values import check_values
    from fairseq.user_error import UserError

    with pytest.raises(UserError) as caught:
        check_values({"max_epoch": float("inf"), "batch_size_valid": None, "cpu": True, **settings})
    assert str(caught.value) == sentence


@pytest.mark.parametrize("betas", ["(0.9)", "0.9", "(1.5, 2)", "(0.9, 'x')", "(0.9, 0.98, 1)", "import os", "(-1, 0)"])
def test_betas_that_adam_cannot_use(betas: str) -> None:
    from fairseq.flag_values import adam_betas
    from fairseq.user_error import UserError

    assert adam_betas("(0.9, 0.98)") == adam_betas([0.9, 0.98]) == (0.9, 0.98)
    with pytest.raises(UserError, match="must be two numbers of at least 0 and below 1"):
        adam_betas(betas)


def test_an_odd_width_and_the_largest_beam_are_fine(corpus: Corpus, trained: Run, tmp_path: Path) -> None:
    """One head of width 15 (8 sines, 7 cosines) trains; a beam as large as the dictionary finds every sentence."""
    train(corpus.binary, tmp_path, "--d-model", 15, "--num-heads", 1)
    assert generate(corpus.binary, tmp_path / "checkpoint_last.pt", "--beam", 24).output.count("\nH-") == 15


def test_data_that_is_not_there(corpus: Corpus, trained: Run, tmp_path: Path) -> None:
    for data, sentence in (
        (tmp_path / "none", f"there is no file {tmp_path / 'none'}"),
        (tmp_path, f"{tmp_path} has no binarised data that tells the languages; give the folder that "),
    ):
        assert refusal(train(data, tmp_path / "save", status=1), "fairseq-train").startswith(sentence)
        assert refusal(generate(data, trained.last, status=1), "fairseq-generate").startswith(sentence)


def test_choices_of_interactive(corpus: Corpus, trained: Run, tmp_path: Path) -> None:
    flags = ("--path", trained.last, "--task", "translation", "--cpu")
    for source, sentence in (
        (tmp_path / "none", f"there is no file {tmp_path / 'none'}"),
        (tmp_path, "Is a directory"),
    ):
        done = call("fairseq-interactive", corpus.binary, *flags, "--input", source, status=1)
        assert sentence in refusal(done, "fairseq-interactive")
