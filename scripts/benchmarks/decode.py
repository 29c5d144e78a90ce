"""Beam search with beam 4 through the same generators as fairseq-generate; every output as long as its source.

The weights are untrained, so the length is imposed: what is measured is the work of a step, not when a peer stops.
"""

import tempfile
from typing import Any

import torch
from fairseq import tasks
from fairseq.dataclass.configs import GenerationConfig

from benchmarks.batches import batch
from benchmarks.flags import configuration, plugin_flags, stock_flags
from benchmarks.peers import SIZES, Turn

BEAM = 4
SENTENCES = 64
_PRECISIONS = {"float32": [], "mixed": ["--mixed-precision"], "int8": ["--int8"]}


def plugin(task: dict[str, Any]) -> Turn:
    return _turn(task, plugin_flags(SIZES[task["size"]]) + _PRECISIONS[task["precision"]])


def stock(task: dict[str, Any]) -> Turn:
    return _turn(task, stock_flags(SIZES[task["size"]]))


def _turn(task: dict[str, Any], flags: list[str]) -> Turn:
    size = SIZES[task["size"]]
    cfg = configuration(size, flags)
    set_up = tasks.setup_task(cfg.task)
    torch.manual_seed(1)
    model = set_up.build_model(cfg.model)
    model.prepare_for_inference_(cfg)
    sample = batch(size, set_up.target_dictionary, SENTENCES * (size.length + 1), same_length=True)
    if torch.cuda.is_available():
        from fairseq.utils import move_to_cuda

        model.cuda()
        sample = move_to_cuda(sample)
    length = {"max_len_a": 0, "max_len_b": size.length, "min_len": size.length}
    generator = set_up.build_generator([model], GenerationConfig(beam=BEAM, **length))

    def run() -> None:
        outputs = set_up.inference_step(generator, [model], sample)
        assert all(len(hypotheses[0]["tokens"]) == size.length + 1 for hypotheses in outputs)

    return Turn(run, "batch", {"sentences": SENTENCES, "tokens": SENTENCES * size.length})


def ctranslate2_float32(task: dict[str, Any]) -> Turn:
    return _ctranslate2(task, "float32")


def ctranslate2_int8(task: dict[str, Any]) -> Turn:
    return _ctranslate2(task, "int8")


def _ctranslate2(task: dict[str, Any], precision: str) -> Turn:
    """The plugin's untrained model in CTranslate2's form."""
    import ctranslate2

    from vaswani_plugin.export.ctranslate2_model import transformer_spec

    size = SIZES[task["size"]]
    cfg = configuration(size, plugin_flags(size))
    set_up = tasks.setup_task(cfg.task)
    torch.manual_seed(1)
    symbols = set_up.source_dictionary.symbols
    spec = transformer_spec(set_up.build_model(cfg.model), symbols, symbols)
    spec.validate()
    folder = tempfile.mkdtemp(prefix="vaswani-benchmark-")
    spec.save(folder)
    threads = {"inter_threads": 1, "intra_threads": torch.get_num_threads()}
    translator = ctranslate2.Translator(folder, device="cpu", compute_type=precision, **threads)
    sample = batch(size, set_up.target_dictionary, SENTENCES * (size.length + 1), same_length=True)
    sources = [[symbols[token] for token in row[:-1]] for row in sample["net_input"]["src_tokens"].tolist()]

    def run() -> None:
        outputs = translator.translate_batch(
            sources,
            beam_size=BEAM,
            max_batch_size=SENTENCES,
            min_decoding_length=size.length,
            max_decoding_length=size.length,
        )
        assert all(len(output.hypotheses[0]) == size.length for output in outputs)

    return Turn(run, "batch", {"sentences": SENTENCES, "tokens": SENTENCES * size.length})
