"""``vaswani describe``: everything countable about a named architecture, as a dictionary and as text."""

from dataclasses import asdict
from typing import Any

from vaswani_plugin.accounting.flops import PAPER_TOKENS_PER_UPDATE, RULE, forward_flops
from vaswani_plugin.accounting.memory import cache_bytes, update_bytes
from vaswani_plugin.accounting.parameters import PAPER_FIGURES, parameters_by_part
from vaswani_plugin.errors import UserError
from vaswani_plugin.generation.beam_search import SearchSettings
from vaswani_plugin.models.architectures import ARCHITECTURES
from vaswani_plugin.models.config import VaswaniTransformerConfig
from vaswani_plugin.tasks.vaswani_translation import VaswaniTranslationConfig


def config_of(architecture: str) -> VaswaniTransformerConfig:
    """The configuration of a named architecture; an unknown name is a ``ValueError`` that lists the known ones."""
    if architecture not in ARCHITECTURES:
        raise UserError(f"there is no architecture {architecture!r}; known are {', '.join(ARCHITECTURES)}")
    task = VaswaniTranslationConfig()
    return VaswaniTransformerConfig(
        **{
            "max_source_positions": task.max_source_positions,
            "max_target_positions": task.max_target_positions,
            **ARCHITECTURES[architecture],
        }
    )


def describe(architecture: str, vocabulary: int, length: int) -> dict[str, Any]:
    """Sizes, parameters, operations and memory; numbers of bytes and operations are whole.

    Args:
        vocabulary: pieces of the vocabulary that both languages share.
        length: tokens of source and target sentences, </s> counted.
    """
    for flag, value in (("--vocab", vocabulary), ("--length", length)):
        if value < 1:
            raise UserError(f"{flag} {value} must be at least 1")
    config = config_of(architecture)
    layer = config.layer_config()
    parts = parameters_by_part(config, vocabulary)
    paper = PAPER_FIGURES.get(architecture)
    flops = forward_flops(config, vocabulary, length, length)
    search = SearchSettings()
    memory = update_bytes(config, vocabulary, PAPER_TOKENS_PER_UPDATE, PAPER_TOKENS_PER_UPDATE)
    return {
        "architecture": architecture,
        "vocabulary": vocabulary,
        "length": length,
        "sizes": {
            "encoder_layers": config.num_layers,
            "decoder_layers": config.num_layers,
            **asdict(layer),
            "share_embeddings": str(config.share_embeddings),
            "learned_positions": config.learned_positions,
        },
        "parameters": {
            "total": sum(parts.values()),
            "parts": parts,
            "paper": None if paper is None else asdict(paper),
        },
        "flops": {
            "rule": RULE,
            "forward": asdict(flops),
            "update": {
                "source_tokens": PAPER_TOKENS_PER_UPDATE,
                "target_tokens": PAPER_TOKENS_PER_UPDATE,
                "total": flops.update(PAPER_TOKENS_PER_UPDATE, PAPER_TOKENS_PER_UPDATE),
            },
        },
        "cache": {"beam": search.beam, "bytes": cache_bytes(config, length, length, search.beam)},
        "update_memory": {**asdict(memory), "total": memory.total},
    }


def as_text(description: dict[str, Any]) -> str:
    """The dictionary of :func:`describe` for people."""
    sizes, parameters = description["sizes"], description["parameters"]
    flops, memory = description["flops"], description["update_memory"]
    forward, update, length = flops["forward"], flops["update"], description["length"]
    batch = f"update of {update['source_tokens']:,} + {update['target_tokens']:,} tokens"
    paper = PAPER_FIGURES.get(description["architecture"])
    lines = [
        f"{description['architecture']}, {description['vocabulary']:,} pieces, sentences of {length:,} tokens",
        "",
        f"sizes: N {sizes['encoder_layers']}+{sizes['decoder_layers']}, d_model {sizes['d_model']}, "
        f"d_ff {sizes['d_ff']}, h {sizes['num_heads']}, d_k {sizes['d_k']}, d_v {sizes['d_v']}, "
        f"P_drop {sizes['dropout']}, {'learned positions' if sizes['learned_positions'] else 'sinusoids'}",
        "",
        "parameters",
        *(_row(name, f"{count:,}") for name, count in parameters["parts"].items()),
        _row("in all", f"{parameters['total']:,}"),
        f"  the paper: {paper.as_text() if paper else 'has no such model'}",
        "",
        f"FLOPs ({flops['rule']})",
        _row("forward, encoder, a source token", f"{forward['encoder_per_source_token']:,}"),
        _row("forward, decoder, a target token", f"{forward['decoder_per_target_token']:,}"),
        _row("forward, pre-softmax, a target token", f"{forward['pre_softmax_per_target_token']:,}"),
        _row(batch, f"{update['total']:.3e}"),
        "",
        f"memory in float32 with fused attention, {batch} in one batch",
        _row("weights", _size(memory["weights"])),
        _row("gradients", _size(memory["gradients"])),
        _row("Adam's two moments", _size(memory["adam_moments"])),
        _row("activations kept for the backward pass", _size(memory["activations"])),
        _row("in all, without temporary memory", _size(memory["total"])),
        "",
        f"memory in float32, translating a sentence of {length:,} tokens into {length:,} with beam "
        f"{description['cache']['beam']}",
        _row("keys and values of all layers", _size(description["cache"]["bytes"])),
    ]
    return "\n".join(lines)


def _row(name: str, value: str) -> str:
    return f"  {name:<40}{value:>18}"


def _size(number: int) -> str:
    return f"{number / 2**30:,.2f} GiB" if number >= 2**30 else f"{number / 2**20:,.2f} MiB"
