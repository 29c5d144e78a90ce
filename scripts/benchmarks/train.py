"""One update: forward, loss, backward, Adam, through fairseq's own trainer."""

from typing import Any

import torch
from fairseq import tasks
from fairseq.trainer import Trainer
from torch.nn import functional

from benchmarks.batches import batch
from benchmarks.flags import configuration, plugin_flags, stock_flags
from benchmarks.peers import SIZES, Turn


def plugin(task: dict[str, Any]) -> Turn:
    mixed = ["--mixed-precision"] if task["precision"] == "mixed" else []
    return _turn(task, plugin_flags(SIZES[task["size"]]) + mixed)


def stock(task: dict[str, Any]) -> Turn:
    return _turn(task, stock_flags(SIZES[task["size"]]))


def stock_bf16(task: dict[str, Any]) -> Turn:
    return _turn(task, [*stock_flags(SIZES[task["size"]]), "--bf16"])


def _turn(task: dict[str, Any], flags: list[str]) -> Turn:
    size = SIZES[task["size"]]
    tokens = task["tokens"] or size.train_tokens
    cfg = configuration(size, flags, tokens)
    set_up = tasks.setup_task(cfg.task)
    trainer = Trainer(cfg, set_up, set_up.build_model(cfg.model), set_up.build_criterion(cfg.criterion))
    sample = batch(size, set_up.target_dictionary, tokens, task["same_length"])

    def run() -> None:
        trainer.train_step([sample])

    return Turn(run, "update", {"target_tokens": sample["ntokens"]}, about={"tokens": sample["ntokens"]})


def torch_transformer(task: dict[str, Any]) -> Turn:
    """Forward and backward of torch's own modules with torch's own loss; no optimiser."""
    size = SIZES[task["size"]]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layers = size.num_layers
    model = torch.nn.Transformer(
        size.d_model, size.num_heads, layers, layers, size.d_ff, size.dropout, batch_first=True
    ).to(device)
    embedding = torch.nn.Embedding(size.vocabulary, size.d_model, device=device)
    dictionary = tasks.setup_task(configuration(size, stock_flags(size)).task).target_dictionary
    sample = batch(size, dictionary, task["tokens"] or size.train_tokens, task["same_length"])
    source, shifted, target = (
        tensor.to(device)
        for tensor in (sample["net_input"]["src_tokens"], sample["net_input"]["prev_output_tokens"], sample["target"])
    )
    pad = dictionary.pad()
    causal = torch.ones(target.size(1), target.size(1), dtype=torch.bool, device=device).triu(1)

    def run() -> None:
        output = model(
            embedding(source),
            embedding(shifted),
            tgt_mask=causal,
            src_key_padding_mask=source.eq(pad),
            memory_key_padding_mask=source.eq(pad),
            tgt_is_causal=True,
        )
        logits = functional.linear(output, embedding.weight)
        loss = functional.cross_entropy(
            logits.flatten(0, 1), target.flatten(), ignore_index=pad, reduction="sum", label_smoothing=0.1
        )
        loss.backward()

    return Turn(run, "update", {"target_tokens": sample["ntokens"]})
