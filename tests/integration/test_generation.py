"""Trained checkpoints through the real fairseq-generate, -interactive, -validate and vaswani average."""

import math
import re
from pathlib import Path

import in_process
import pytest
import torch
from conftest import PLUGIN, Corpus, Run, run
from in_process import refusal


def hypotheses(output: str) -> "dict[int, list[tuple[float, str, list[float]]]]":
    """Sentence -> (score, text, scores of the tokens) of each hypothesis, best first, natural logarithms."""
    found: dict[int, list[tuple[float, str, list[float]]]] = {}
    for line in output.split("\n"):
        if match := re.match(r"H-(\d+)\t(\S+)\t(.*)", line):
            found.setdefault(int(match[1]), []).append((float(match[2]) * math.log(2), match[3], []))
        elif match := re.match(r"P-(\d+)\t(.*)", line):
            found[int(match[1])][-1][2].extend(float(x) * math.log(2) for x in match[2].split())
    return found


def penalty(length: int, alpha: float) -> float:
    return ((5 + length) / 6) ** alpha


@pytest.mark.parametrize("alpha", [0.6, 0.0, 1.5])
def test_scores_are_the_papers(corpus: Corpus, trained: Run, alpha: float) -> None:
    """score = log p / ((5 + n) / 6)^alpha, n counting </s>; alpha 0.6 and beam 4 without being asked for."""
    flags = [] if alpha == 0.6 else ["--length-penalty-alpha", alpha]
    output = corpus.generate(trained.last, "--nbest", 4, *flags).output
    found = hypotheses(output)
    assert len(found) == 15
    assert "with beam=4" in output
    for best in found.values():
        assert len(best) == 4
        for score, text, tokens in best:
            assert len(tokens) == len(text.split()) + 1
            assert score == pytest.approx(sum(tokens) / penalty(len(tokens), alpha), abs=2e-3)
        assert [score for score, _, _ in best] == sorted((score for score, _, _ in best), reverse=True)


def test_output_is_at_most_fifty_longer_than_the_input(corpus: Corpus, tmp_path: Path) -> None:
    """An untrained model seldom ends by itself."""
    corpus.train(tmp_path, updates=1)
    sources = (corpus.raw / "test.en").read_text().split("\n")
    for number, best in hypotheses(corpus.generate(tmp_path / "checkpoint_last.pt").output).items():
        assert len(best[0][1].split()) <= len(sources[number].split()) + 1 + 50


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--lenpen", 0.6], "--lenpen 0.6 is the exponent of fairseq's length penalty"),
        (["--unnormalized"], "--unnormalized has no effect"),
    ],
)
def test_flags_of_the_other_score_are_refused(
    corpus: Corpus, trained: Run, flags: "list[object]", sentence: str
) -> None:
    assert sentence in corpus.generate(trained.last, *flags, status=1).last_line


def test_ensemble_alignment_and_scoring_of_references(corpus: Corpus, trained: Run) -> None:
    pair = f"{trained.last}:{next(trained.directory.glob('checkpoint_*_50.pt'))}"
    aligned = corpus.generate(pair, "--print-alignment").output
    for number, best in hypotheses(aligned).items():
        (line,) = re.findall(rf"^A-{number}\t(.*)$", aligned, re.MULTILINE)
        targets = [int(link.split("-")[1]) for link in line.split()]
        assert targets == list(range(len(best[0][1].split())))
    scored = hypotheses(corpus.generate(trained.last, "--score-reference").output)
    references = (corpus.raw / "test.de").read_text().split("\n")
    assert {number: best[0][1] for number, best in scored.items()} == dict(enumerate(references[:15]))


@pytest.mark.parametrize(
    "flags",
    [["--sampling", "--sampling-topk", 5, "--seed", 1], ["--prefix-size", 2], ["--diverse-beam-groups", 2]],
)
def test_fairseqs_search_under_the_papers_score(corpus: Corpus, trained: Run, flags: "list[object]") -> None:
    output = corpus.generate(trained.last, "--nbest", 4, *flags).output
    assert f"{flags[0]}: fairseq's search is used" in output
    found = hypotheses(output)
    assert len(found) == 15
    if flags[0] == "--diverse-beam-groups":
        return  # its scores contain the diversity term
    for best in found.values():
        for score, _, tokens in best:
            assert score == pytest.approx(sum(tokens) / penalty(len(tokens), 0.6), abs=2e-3)


def test_mixed_precision_scores_nearly_alike_and_translates(corpus: Corpus, trained: Run) -> None:
    scoring = ("--score-reference",)
    exact, near, translated = (
        hypotheses(in_process.generate(corpus.binary, trained.last, *flags).output)
        for flags in (scoring, ("--mixed-precision", *scoring), ("--mixed-precision",))
    )
    assert exact.keys() == near.keys() == translated.keys()
    pairs = [pair for number in exact for pair in zip(exact[number][0][2], near[number][0][2])]
    assert 0 < max(abs(one - other) for one, other in pairs) < 0.1
    # A search with near ties may take another way; where it ends alike, its score is nearly the same.
    found = hypotheses(in_process.generate(corpus.binary, trained.last).output)
    alike = [n for n in found if found[n][0][1] == translated[n][0][1]]
    assert len(alike) >= 10
    assert [translated[n][0][0] for n in alike] == pytest.approx([found[n][0][0] for n in alike], abs=0.1)


def test_int8_scores_nearly_alike_and_translates_alike_in_any_batch(corpus: Corpus, trained: Run) -> None:
    scoring = ("--score-reference", "--batch-size", 5)
    exact, near, whole, single = (
        hypotheses(in_process.generate(corpus.binary, trained.last, *flags).output)
        for flags in (scoring, ("--int8", *scoring), ("--int8",), ("--int8", "--batch-size", 1))
    )
    assert exact.keys() == near.keys() == whole.keys() == single.keys()
    pairs = [pair for number in exact for pair in zip(exact[number][0][2], near[number][0][2])]
    differences = [abs(one - other) for one, other in pairs]
    assert 0 < sum(differences) / len(differences) < 0.05
    assert {n: best[0][1] for n, best in single.items()} == {n: best[0][1] for n, best in whole.items()}
    assert [best[0][0] for best in single.values()] == pytest.approx([whole[n][0][0] for n in single], abs=1e-3)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--mixed-precision"], "--int8 and --mixed-precision are two precisions of the same products: give one of"),
        (["--fp16"], "--int8 begins with float32 weights: leave out --fp16 and --bf16"),
    ],
)
def test_int8_and_another_precision(corpus: Corpus, trained: Run, flags: "list[str]", sentence: str) -> None:
    done = in_process.generate(corpus.binary, trained.last, "--int8", *flags, status=1)
    assert refusal(done, "fairseq-generate").startswith(sentence)


def test_int8_is_not_for_training(corpus: Corpus, tmp_path: Path) -> None:
    done = in_process.train(corpus.binary, tmp_path, "--int8", status=1)
    assert refusal(done, "fairseq-train") == (
        "--int8 is for translating: leave it out of fairseq-train and fairseq-validate"
    )


def test_average_is_the_mean_and_loads_everywhere(corpus: Corpus, trained: Run, tmp_path: Path) -> None:
    averaged = tmp_path / "averaged.pt"
    run("vaswani", "average", trained.directory, "--last", 3, "--output", averaged)
    states = [
        torch.load(path, weights_only=True)["model"]
        for update in (100, 150, 200)
        for path in trained.directory.glob(f"*_{update}.pt")
    ]
    assert len(states) == 3
    result = torch.load(averaged, weights_only=True)["model"]
    for name, value in result.items():
        torch.testing.assert_close(value, sum(state[name].double() for state in states).div(3).float())
    tied = {result[name].data_ptr() for name in result if name.endswith("embedding.weight")}
    assert len(tied) == 1
    assert len(hypotheses(corpus.generate(averaged).output)) == 15
    validated = run(
        *("fairseq-validate", corpus.binary, "--user-dir", PLUGIN, "--task", "vaswani_translation", "--cpu"),
        *("--path", averaged, "--valid-subset", "valid", "--max-tokens", 200),
    ).output
    assert "nll_loss" in validated
    corpus.train(tmp_path / "tuned", "--finetune-from-model", averaged, updates=1)
    corpus.train(tmp_path / "restored", "--restore-file", averaged, "--reset-optimizer", updates=1)


def test_interactive_answers_every_line(corpus: Corpus, trained: Run) -> None:
    lines = ["w1 w2 w3", "", "unknown words here", "w4 " * 120]
    output = run(
        *("fairseq-interactive", corpus.binary, "--user-dir", PLUGIN, "--task", "vaswani_translation", "--cpu"),
        *("--path", trained.last, "--buffer-size", 4, "--batch-size", 2),
        stdin="".join(line + "\n" for line in lines),
    ).output
    assert sorted(hypotheses(output)) == [0, 1, 2, 3]


def test_training_validates_with_the_papers_search(corpus: Corpus, trained: Run, tmp_path: Path) -> None:
    """--eval-bleu searches as fairseq-generate does: the same BLEU on the same checkpoint."""
    flags = ("--eval-bleu", "--finetune-from-model", trained.last, "--lr-factor", 1e-12)
    log = corpus.train(tmp_path, *flags, "--valid-subset", "test", updates=1).output
    during = float(re.search(r"\| bleu ([\d.]+)", log).group(1))
    after = corpus.generate(trained.last, "--scoring", "sacrebleu").output
    assert during == pytest.approx(
        float(re.search(r"BLEU = ([\d.]+)", after.replace("BLEU4", "BLEU")).group(1)), abs=0.01
    )
    # Its checkpoint keeps the counts of BLEU as arrays, which the safe loader has to know.
    corpus.generate(tmp_path / "checkpoint_last.pt")
    assert "@ 1 updates" in corpus.train(tmp_path, "--eval-bleu", "--lr-factor", 1e-12, updates=2).output
