"""One folder with everything that translating needs, under the names that fairseq's from_pretrained looks for."""

import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Optional

import sentencepiece
import torch
from fairseq.data import Dictionary
from fairseq.data.data_utils import infer_language_pair

import vaswani_plugin
from vaswani_plugin.checkpoints.reading import num_updates, read_checkpoint
from vaswani_plugin.data.segmentation import WORD_START, Segmentation
from vaswani_plugin.errors import UserError
from vaswani_plugin.inference.digests import SETTINGS, digests
from vaswani_plugin.inference.loading import SEGMENTATION, WEIGHTS, load_translator, silence_fairseq
from vaswani_plugin.unfinished import unfinished

_CHECKPOINTS = ("averaged.pt", "checkpoint_best.pt", "checkpoint_last.pt")
_FILLER = re.compile(r"madeupword\d{4}")  # fairseq-preprocess --padding-factor


def package(
    run: Path,
    output: Path,
    checkpoint: Optional[str] = None,
    data: Optional[str] = None,
    sentencepiece_model: Optional[str] = None,
) -> dict[str, Any]:
    """Writes the folder ``output``, complete or not at all; returns what went into it, which is also its model.json.

    Args:
        run: where the checkpoints are, or their folder's parent.
        checkpoint, data, sentencepiece_model: the file of weights, the folder of the dictionaries, the vocabulary;
            each is searched for where it is not given.

    Raises:
        ValueError: something is missing, is not unique or does not fit the rest; the sentence says what to give.
        OSError: a file that cannot be read or written.
    """
    if not run.is_dir():
        raise UserError(f"{run} is not a folder: give the folder of a training's checkpoints")
    if os.path.lexists(output):
        raise UserError(f"{output} is there already: name a new folder, or remove it first")
    silence_fairseq()
    weights = Path(checkpoint) if checkpoint is not None else _find_checkpoint(run)
    state = read_checkpoint(weights)
    config = state.get("cfg")
    if not isinstance(config, dict) or not isinstance(config.get("task"), dict):
        raise UserError(f"{weights} holds no fairseq configuration: give a checkpoint of a training with this plugin")
    if config["task"].get("_name") != "vaswani_translation":
        raise UserError(f"{weights} was trained with --task {config['task'].get('_name')}, not vaswani_translation")
    folder, languages = _find_dictionaries(run, data, config["task"])
    dictionaries = [Dictionary.load(str(folder / f"dict.{language}.txt")) for language in languages]
    # Before anything is written: whether weights and dictionaries go together.
    source_lang, target_lang = languages
    load_translator(
        weights.parent, weights.name, folder.resolve(), source_lang=source_lang, target_lang=target_lang, bpe=None
    )
    segmentation = _find_segmentation(run, folder, sentencepiece_model, config, dictionaries)

    contents = {
        "vaswani_plugin": vaswani_plugin.__version__,
        "checkpoint": str(weights),
        "num_updates": num_updates(state),
        "averaged": (state.get("extra_state") or {}).get("averaged"),
        "data": str(folder),
        "sentencepiece_model": None if segmentation is None else str(segmentation),
        "source_lang": source_lang,
        "target_lang": target_lang,
        "model": _plain(config["model"]),
        "task": _plain(config["task"]),
    }
    # from_pretrained overwrites the path of the data, and of a model under fairseq's own name.
    config["task"].update(data=".", source_lang=source_lang, target_lang=target_lang)
    config["bpe"] = None
    if segmentation is not None:
        config["bpe"] = {"_name": "sentencepiece", "sentencepiece_model": SEGMENTATION}
    without_optimizer = {name: value for name, value in state.items() if name != "last_optimizer_state"}
    with unfinished(output) as temporary:
        temporary.mkdir()
        torch.save(without_optimizer, temporary / WEIGHTS)
        for language in sorted(set(languages)):
            shutil.copyfile(folder / f"dict.{language}.txt", temporary / f"dict.{language}.txt")
        if segmentation is not None:
            shutil.copyfile(segmentation, temporary / SEGMENTATION)
        contents["sha256"] = digests(
            temporary, sorted(path.name for path in temporary.iterdir() if path.name != WEIGHTS)
        )
        (temporary / SETTINGS).write_text(json.dumps(contents, indent=2, ensure_ascii=False) + "\n", "utf-8")
        temporary.rename(output)
    return contents


def _plain(part: Any) -> dict[str, Any]:
    """What JSON can hold of a part of the configuration."""
    values = part if isinstance(part, dict) else vars(part)
    return {name: value for name, value in values.items() if isinstance(value, str | int | float | None)}


def _find_checkpoint(run: Path) -> Path:
    for name in _CHECKPOINTS:
        for folder in (run, run / "checkpoints"):
            if (folder / name).is_file():
                return folder / name
    raise UserError(
        f"{run} has none of {', '.join(_CHECKPOINTS)}, nor has {run / 'checkpoints'}: give --checkpoint FILE"
    )


def _find_dictionaries(run: Path, given: Optional[str], task: dict[str, Any]) -> tuple[Path, tuple[str, str]]:
    recorded = Path(str(task.get("data") or ".").split(os.pathsep)[0])
    folders = [Path(given)] if given is not None else [recorded, run / recorded.name, run]
    for folder in folders:
        languages = _languages(folder, task)
        if languages is not None:
            return folder, languages
    raise UserError(
        f"{' and '.join(dict.fromkeys(map(str, folders)))}: no dict.*.txt of a language pair there; give "
        "--data DIR, the folder that fairseq-preprocess wrote"
    )


def _languages(folder: Path, task: dict[str, Any]) -> Optional[tuple[str, str]]:
    if not folder.is_dir():
        return None
    source, target = task.get("source_lang"), task.get("target_lang")
    if source is None or target is None:
        source, target = infer_language_pair(str(folder))
    if source is None or target is None:
        return None
    found = all((folder / f"dict.{language}.txt").is_file() for language in (source, target))
    return (source, target) if found else None


def _find_segmentation(
    run: Path, data: Path, given: Optional[str], config: dict[str, Any], dictionaries: Sequence[Dictionary]
) -> Optional[Path]:
    """The SentencePiece model that the dictionaries were made from; None where they hold no pieces."""
    symbols = {symbol for dictionary in dictionaries for symbol in dictionary.symbols[dictionary.nspecial :]}
    symbols = {symbol for symbol in symbols if not _FILLER.fullmatch(symbol)}
    if given is not None:
        if foreign := _foreign_symbol(Path(given), symbols):
            raise UserError(
                f"{given} has no piece {foreign!r}, which is in the dictionary of {data}: give the model that the "
                "training text was encoded with"
            )
        return Path(given)
    if not any(symbol.startswith(WORD_START) for symbol in symbols):
        return None
    fitting = [path for path in _models_around(run, data, config) if _foreign_symbol(path, symbols) is None]
    different = {path.read_bytes(): path for path in reversed(fitting)}
    if len(different) != 1:
        found = " and ".join(sorted(map(str, different.values()))) or "none"
        raise UserError(
            f"SentencePiece models that fit the dictionary in {data}, beside it or in {run}: {found}; give "
            "--sentencepiece-model FILE, the model that the training text was encoded with"
        )
    return next(iter(different.values()))


def _models_around(run: Path, data: Path, config: dict[str, Any]) -> Iterator[Path]:
    recorded = (config.get("bpe") or {}).get("sentencepiece_model")
    if recorded and Path(recorded).is_file():
        yield Path(recorded)
    for folder in dict.fromkeys((run, run.resolve().parent, data, data.resolve().parent)):
        yield from sorted(path for path in folder.glob("*.model") if path.is_file())


def _foreign_symbol(model: Path, symbols: set[str]) -> Optional[str]:
    """Something in the dictionary that is no piece of the model; a file that is no such model has none of them."""
    try:
        processor: sentencepiece.SentencePieceProcessor = Segmentation(model).processor
    except UserError:
        return min(symbols)
    pieces = {processor.id_to_piece(index) for index in range(processor.get_piece_size())}
    return min(symbols - pieces, default=None)
