"""The same model, loss and optimiser in the flags of fairseq-train, for the plugin and for stock fairseq."""

import tempfile
from pathlib import Path
from typing import Any

import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

import vaswani_plugin
from benchmarks.peers import Size


def configuration(size: Size, flags: list[str], max_tokens: int = 4096) -> Any:
    """What fairseq-train makes of the flags."""
    arguments = [
        _data_folder(size),
        "-s",
        "en",
        "-t",
        "de",
        "--max-tokens",
        str(max_tokens),
        "--seed",
        "1",
        "--no-save",
    ]
    arguments += ["--optimizer", "adam", "--adam-betas", "(0.9,0.98)", "--adam-eps", "1e-9"]
    arguments += ["--label-smoothing", "0.1", "--warmup-updates", "4000", *flags]
    if not torch.cuda.is_available():
        arguments.append("--cpu")
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), arguments))


def plugin_flags(size: Size) -> list[str]:
    flags = ["--user-dir", str(Path(vaswani_plugin.__file__).parent), "--task", "vaswani_translation"]
    flags += ["--arch", size.arch, "--dropout", str(size.dropout)]
    return [*flags, "--criterion", "vaswani_label_smoothing", "--lr-scheduler", "vaswani_inverse_sqrt"]


def stock_flags(size: Size) -> list[str]:
    flags = ["--arch", "transformer", "--share-all-embeddings", "--dropout", str(size.dropout)]
    for side in ("encoder", "decoder"):
        flags += [f"--{side}-layers", str(size.num_layers), f"--{side}-embed-dim", str(size.d_model)]
        flags += [f"--{side}-ffn-embed-dim", str(size.d_ff), f"--{side}-attention-heads", str(size.num_heads)]
    return [*flags, "--criterion", "label_smoothed_cross_entropy", "--lr", "5e-4", "--lr-scheduler", "inverse_sqrt"]


def _data_folder(size: Size) -> str:
    """Such as fairseq's tasks read at their start: two dictionaries of ``size.vocabulary`` types."""
    folder = Path(tempfile.mkdtemp(prefix="vaswani-benchmark-"))
    words = "".join(f"w{n} 1\n" for n in range(size.vocabulary - 4))
    for language in ("en", "de"):
        (folder / f"dict.{language}.txt").write_text(words, "utf-8")
    return str(folder)
