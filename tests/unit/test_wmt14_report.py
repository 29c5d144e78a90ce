"""The report of a WMT14 run, from files as a training and its translations leave them."""

import json
from pathlib import Path

import pytest
import sacrebleu
import torch
from example_scripts import load

report = load("wmt14", "report")
REFERENCE = [
    "Das ist ein „gutes“ Haus-Boot .",
    "Der Hund sieht das alte Pferd am Fenster.",
    "Wir gehen heute nach Haus.",
]
AVERAGED = ["Das ist ein „gutes“ Haus-Boot .", "Der Hund sieht das Pferd am Fenster.", "Wir gehen nach Haus."]
LAST = ["Das ist ein gutes Haus .", "Der Hund sieht ein altes Pferd am Fenster.", "Wir gehen nach Haus."]
# A base model's training as the paper tells of it: 100,000 updates in 12 hours on 8 P100.
SECONDS, GPUS, UPDATES = 12 * 3600, 8, 100_000
SIZES = {"num_layers": 6, "d_model": 512, "d_ff": 2048, "num_heads": 8, "_name": "vaswani_base"}
VOCABULARY = 37_000


def generated(translations: "list[str]") -> str:
    """fairseq-generate's lines, which are not in the order of the text."""
    lines = [f"H-{n}\t-1\tpieces\nD-{n}\t-1.0\t{text}\n" for n, text in enumerate(translations)]
    return "".join(reversed(lines))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run, text = tmp_path / "base", tmp_path / "text"
    (run / "checkpoints").mkdir(parents=True)
    text.mkdir()
    for part in ("test", "valid"):
        (text / f"{part}.de").write_text("".join(f"{line}\n" for line in REFERENCE))
    (run / "test_averaged.txt").write_text(generated(AVERAGED))
    (run / "test_last.txt").write_text(generated(LAST))
    (run / "development_last.txt").write_text(generated(REFERENCE))
    speed = "Translated 3 sentences (30 tokens) in 0.1s (30.00 sentences/s, 300.50 tokens/s)"
    (run / "test_averaged.log").write_text(f"... | INFO | fairseq_cli.generate | {speed}\n")
    (run / "averaged").write_text("5\n")
    lines = []
    for number, (wps, ppl) in enumerate(((0, 9.0), (50_000, 6.0), (60_000, 5.0)), 1):
        values = {"epoch": 1, "wps": str(wps), "wpb": "25000", "num_updates": str(number)}
        lines.append(f"2026-01-01 | INFO | train_inner | {json.dumps(values)}\n")
        lines.append(f"2026-01-01 | INFO | valid | {json.dumps({'epoch': 1, 'valid_ppl': str(ppl)})}\n")
    (run / "train.log").write_text("other lines\n" + "".join(lines))
    plan = {
        "devices": {"workers": GPUS, "name": "Tesla P100-SXM2-16GB"},
        "precision": "float32",
        "update": {"source_tokens": 24_000.0, "target_tokens": 26_000.0, "pairs": 1000.0},
    }
    (run / "plan.json").write_text(json.dumps(plan))
    state = {
        "cfg": {"model": SIZES},
        "model": {"weight": torch.zeros(1)},
        "extra_state": {"previous_training_time": float(SECONDS)},
        "optimizer_history": [{"num_updates": UPDATES}],
    }
    torch.save(state, run / "checkpoints" / "checkpoint_last.pt")
    return run


def collect(run: Path, tflops: float = 0.0) -> "dict":
    return report.collect(run, run.parent / "text", "de", tflops, VOCABULARY)


def test_scores_of_each_translation(run: Path) -> None:
    result = collect(run)
    for found, translations in (
        (result, AVERAGED),
        (result["last_checkpoint"], LAST),
        (result["development"], REFERENCE),
    ):
        expected = sacrebleu.corpus_bleu(translations, [REFERENCE], force=True)
        assert found["sacrebleu"]["score"] == pytest.approx(expected.score)
        assert found["chrf"]["score"] == pytest.approx(sacrebleu.corpus_chrf(translations, [REFERENCE]).score)
        # Of the reference: 8, 9 and 6 words, one of them a compound of three parts.
        assert (found["tokenized"]["ref_len"], found["compound_split"]["ref_len"]) == (23, 25)
        assert found["compound_split_plain_punctuation"]["ref_len"] == 25
    assert result["development"]["sacrebleu"]["score"] == pytest.approx(100)
    assert result["development"]["perplexity"] == 5.0
    assert result["search_tokens_per_second"] == 300.5


def test_flops_of_the_papers_base_model(run: Path) -> None:
    training = collect(run)["training"]
    # Table 2: 3.3e18.
    assert training["flops"] == pytest.approx(3.2832e18)
    assert training["target_tokens_per_second"] == 50_000
    assert training["updates"] == UPDATES
    # By hand: pairs of 24 and 26 tokens; 6 layers of 8 x 64 wide attention, 2 x 2 x 512 x 2048 feed-forward.
    attention, feed_forward, width = 8 * 512 * 512, 4 * 512 * 2048, 512
    encoder = 6 * (attention + 4 * 24 * width + feed_forward)
    decoder = 6 * (attention + 4 * 26 * width + attention // 2 + 4 * 24 * width + feed_forward) + 2 * 512 * VOCABULARY
    memory = 6 * attention // 2
    expected = UPDATES * 3 * (24_000 * (encoder + memory) + 26_000 * decoder)
    assert training["model_flops"] == pytest.approx(expected)


def test_flops_need_a_number_for_other_gpus(run: Path) -> None:
    plan = json.loads((run / "plan.json").read_text())
    plan["devices"]["name"] = "Another GPU"
    (run / "plan.json").write_text(json.dumps(plan))
    result = collect(run)
    assert result["training"]["flops"] is None
    assert "FLOPs as Table 2 counts them: give TFLOPS, " in report.table(result)
    assert collect(run, 2.0)["training"]["flops"] == pytest.approx(SECONDS * GPUS * 2e12)


def test_table_has_every_score(run: Path) -> None:
    result = collect(run)
    table = report.table(result)
    for name in ("sacreBLEU", "chrF", "BLEU, tokenised", "compounds split", "plain punctuation", "perplexity"):
        assert name in table
    for scores in (result, result["last_checkpoint"], result["development"]):
        for key in report.NAMES:
            assert f"{scores[key]['score']:.2f}" in table
    assert "100,000 updates in 12.0 hours on 8 x Tesla P100-SXM2-16GB" in table
    assert "FLOPs as Table 2 counts them: 3.28e+18 (9.5 TFLOPS a GPU)" in table
