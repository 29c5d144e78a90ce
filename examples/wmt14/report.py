"""Collects what a training and its translations came to: score.json, and a table for people.

Usage: python report.py RUN TEXT TARGET_LANGUAGE --vocabulary SIZE --output score.json [--tflops N]
       python report.py --show score.json
"""

import argparse
import contextlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

# Sustained single-precision TFLOPS: the paper's, section 6.1, footnote 5.
PAPER_TFLOPS = {"K80": 2.8, "K40": 3.7, "M40": 6.0, "P100": 9.5}
_STATISTICS = re.compile(r"\| INFO \| (train_inner|valid) \| (\{.*\})\s*$")
_SPEED = re.compile(
    r"Translated [\d,]+ sentences \([\d,]+ tokens\) in [\d.]+s \([\d.]+ sentences/s, ([\d.]+) tokens/s\)"
)


def scores(hypothesis: Path, reference: Path, language: str) -> dict[str, Any]:
    """What ``vaswani score --json`` says."""
    from vaswani_plugin.cli import main

    said = io.StringIO()
    arguments = ["score", "--hypothesis", hypothesis, "--reference", reference, "--target-lang", language, "--json"]
    with contextlib.redirect_stdout(said):
        status = main([str(argument) for argument in arguments])
    if status:
        sys.exit(status)
    return json.loads(said.getvalue())


def statistics(log: Path, kind: str) -> list[dict[str, float]]:
    """The values that fairseq logged as JSON, at least one, of all starts of a training."""
    lines = log.read_bytes().decode("utf-8", "replace").split("\n")
    found = [json.loads(match[2]) for line in lines if (match := _STATISTICS.search(line)) and match[1] == kind]
    if not found:
        sys.exit(f"wmt14: {log} has no statistics of kind {kind}")
    return [{key: float(value) for key, value in values.items()} for values in found]


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def training(run: Path, tflops: float, vocabulary: int) -> dict[str, Any]:
    """Updates, tokens, time and FLOPs as Table 2 counts them: time x GPUs x sustained FLOPS of one."""
    from vaswani_plugin.checkpoints.reading import num_updates, read_checkpoint

    plan = json.loads((run / "plan.json").read_text("utf-8"))
    state = read_checkpoint(run / "checkpoints" / "checkpoint_last.pt", weights=False)
    seconds = float(state["extra_state"]["previous_training_time"])
    logged = statistics(run / "train.log", "train_inner")
    name, workers = plan["devices"]["name"], plan["devices"]["workers"]
    if not tflops:
        tflops = next((value for gpu, value in PAPER_TFLOPS.items() if gpu in name), 0.0)
    return {
        "updates": num_updates(state),
        "seconds": seconds,
        "devices": workers,
        "device": name,
        "precision": plan["precision"],
        "source_tokens_per_update": plan["update"]["source_tokens"],
        "target_tokens_per_update": median([values["wpb"] for values in logged]),
        "target_tokens_per_second": median([values["wps"] for values in logged]),
        "sustained_tflops": tflops or None,
        "flops": seconds * workers * tflops * 1e12 if tflops else None,
        "model_flops": counted_flops(state, plan["update"], vocabulary),
    }


def counted_flops(state: dict[str, Any], update: dict[str, float], vocabulary: int) -> int:
    """Operations of all updates by the sizes of the model, whatever the machine: 2 for each multiply-add."""
    from vaswani_plugin.accounting.flops import forward_flops
    from vaswani_plugin.checkpoints.reading import num_updates
    from vaswani_plugin.models.config import VaswaniTransformerConfig

    sizes = state["cfg"]["model"]
    names = [name for name in VaswaniTransformerConfig.__dataclass_fields__ if name in sizes and name != "_name"]
    config = VaswaniTransformerConfig(**{name: sizes[name] for name in names})
    source, target = round(update["source_tokens"]), round(update["target_tokens"])
    lengths = (round(tokens / update["pairs"]) for tokens in (source, target))
    return num_updates(state) * forward_flops(config, vocabulary, *lengths).update(source, target)


def speed(log: Path) -> float:
    match = _SPEED.search(log.read_text("utf-8", "replace"))
    return float(match[1]) if match else 0.0


def collect(run: Path, text: Path, language: str, tflops: float, vocabulary: int) -> dict[str, Any]:
    reference = text / f"test.{language}"
    last = scores(run / "test_last.txt", reference, language)
    return {
        **scores(run / "test_averaged.txt", reference, language),
        "averaged_checkpoints": int((run / "averaged").read_text()),
        "last_checkpoint": last,
        "development": {
            **scores(run / "development_last.txt", text / f"valid.{language}", language),
            # Training ends with a look at the development set; 2 to the power of the loss without its smoothing.
            "perplexity": statistics(run / "train.log", "valid")[-1]["valid_ppl"],
        },
        "training": training(run, tflops, vocabulary),
        "search_tokens_per_second": speed(run / "test_averaged.log"),
    }


NAMES = {
    "sacrebleu": "sacreBLEU",
    "chrf": "chrF",
    "tokenized": "BLEU, tokenised",
    "compound_split": "BLEU, tokenised, compounds split",
    "compound_split_plain_punctuation": "the same with plain punctuation",
}


def table(result: dict[str, Any]) -> str:
    """Scores of the mean and of the last checkpoint side by side, then what they cost."""
    last, development, run = result["last_checkpoint"], result["development"], result["training"]
    mean = f"mean of {result['averaged_checkpoints']}"
    rows = [
        f"{'':<36}{'newstest2014':>24}{'newstest2013':>14}",
        f"{'':<36}{mean:>12}{'last alone':>12}{'last alone':>14}",
    ]
    for key, name in NAMES.items():
        if key in result:
            valid = f"{development[key]['score']:>14.2f}" if key in development else ""
            rows.append(f"{name:<36}{result[key]['score']:>12.2f}{last[key]['score']:>12.2f}{valid}".rstrip())
    rows.append(f"{'perplexity':<60}{development['perplexity']:>14.2f}")
    rows.append(f"signature: {result['sacrebleu']['signature']}")
    seconds = run["seconds"]
    time = f"{seconds / 3600:,.1f} hours" if seconds >= 3600 else f"{seconds:,.0f} s"
    rows.append(
        f"training: {run['updates']:,} updates in {time} on {run['devices']} x {run['device']}, "
        f"{run['target_tokens_per_second']:,.0f} target tokens a second, "
        f"{run['target_tokens_per_update']:,.0f} an update"
    )
    if run["flops"]:
        rows.append(f"FLOPs as Table 2 counts them: {run['flops']:.2e} ({run['sustained_tflops']:g} TFLOPS a GPU)")
    else:
        rows.append("FLOPs as Table 2 counts them: give TFLOPS, the sustained single-precision TFLOPS of one device")
    rows.append(f"FLOPs of the model's own matrix products: {run['model_flops']:.2e}")
    rows.append(f"search: {result['search_tokens_per_second']:,.0f} tokens a second")
    return "\n".join(f"  {row}" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("text", type=Path, nargs="?")
    parser.add_argument("language", nargs="?")
    parser.add_argument("--tflops", type=float, default=0.0)
    parser.add_argument("--vocabulary", type=int, default=0)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--show", type=Path)
    options = parser.parse_args()
    if options.show:
        print(table(json.loads(options.show.read_text("utf-8"))))
        return
    result = collect(options.run, options.text, options.language, options.tflops, options.vocabulary)
    temporary = options.output.with_name(f"{options.output.name}.tmp")
    temporary.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", "utf-8")
    temporary.replace(options.output)


if __name__ == "__main__":
    main()
