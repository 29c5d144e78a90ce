"""Opening a trained model: a folder of ``vaswani package``, or checkpoint, dictionaries and vocabulary by name."""

import logging
import os
from pathlib import Path
from typing import Any

from fairseq import hub_utils

from vaswani_plugin.errors import UserError
from vaswani_plugin.inference.digests import check_digests
from vaswani_plugin.inference.translator import Translator
from vaswani_plugin.models.checkpoint_match import CheckpointMismatch
from vaswani_plugin.tasks.vaswani_translation import PAPER_SEARCH, VaswaniTranslationTask

WEIGHTS = "model.pt"
SEGMENTATION = "sentencepiece.bpe.model"
"""The names that fairseq's from_pretrained looks for in a model's folder."""


def open_model(folder: str | os.PathLike[str], **settings: Any) -> Translator:
    """A folder made by ``vaswani package``, quietly: for commands whose output is not fairseq's log.

    Args:
        settings: as of :func:`load_translator`.

    Raises:
        ValueError: the folder is missing, is no such folder, or its files do not go together.
    """
    silence_fairseq()
    return load_translator(folder, **settings)


def silence_fairseq() -> None:
    """No progress in the log of fairseq and of this package; warnings stay."""
    for package in ("fairseq", "vaswani_plugin"):
        logging.getLogger(package).setLevel(logging.WARNING)


def load_translator(
    model_dir: str | os.PathLike[str],
    checkpoint_file: str = WEIGHTS,
    data_name_or_path: str | os.PathLike[str] = ".",
    **settings: Any,
) -> Translator:
    """See :meth:`VaswaniTransformer.from_pretrained`."""
    folder = Path(model_dir)
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: give the folder of a model, such as `vaswani package` makes")
    for name in checkpoint_file.split(os.pathsep):
        if not (folder / name).is_file():
            raise UserError(
                f"{folder} has no {name}: name the checkpoint with checkpoint_file, or make a model's folder with "
                f"`vaswani package {folder} FOLDER`"
            )
    check_digests(folder)
    data = str(data_name_or_path)
    data_folder = folder / data if data.startswith(".") else Path(data)
    if not data_folder.is_dir():
        raise UserError(
            f"{data_folder} is not a folder: data_name_or_path is where fairseq-preprocess wrote dict.*.txt"
        )
    if settings.get("sentencepiece_model") is not None:
        settings = {"bpe": "sentencepiece", **settings}
    try:
        # A leading "." means the model's folder to fairseq; any other relative path is taken from the current one.
        loaded = hub_utils.from_pretrained(
            str(folder), checkpoint_file, str(data_folder.resolve()), archive_map={}, **{**PAPER_SEARCH, **settings}
        )
    except FileNotFoundError as error:
        raise UserError(
            f"{error.filename or error}: there is no such file; data_name_or_path is where fairseq-preprocess wrote "
            "dict.*.txt"
        ) from error
    except CheckpointMismatch as error:
        raise UserError(
            f"{folder / checkpoint_file} does not go with the dictionaries in {data_folder}: {error}"
        ) from error
    except RuntimeError as error:  # as torch tells it, of fairseq's own architectures
        if "Error(s) in loading state_dict" not in str(error):
            raise
        raise UserError(
            f"{folder / checkpoint_file} does not go with the dictionaries in {data_folder}: the sizes differ"
        ) from error
    except Exception as error:
        if "--share-embeddings" in str(error):  # the model needs one dictionary, and these are not the same
            raise UserError(
                f"{folder / checkpoint_file} does not go with the dictionaries in {data_folder}: {error}"
            ) from error
        if getattr(error, "is_user_error", False):  # a sentence of fairseq's own, as scripts/build_fairseq.py mends it
            raise UserError(str(error)) from error
        if "infer language pair" in str(error):
            raise UserError(
                f"{data_folder} does not tell the languages: give source_lang and target_lang, as in dict.en.txt"
            ) from error
        raise
    task = loaded["task"]
    if not isinstance(task, VaswaniTranslationTask):
        raise UserError(
            f"{folder / checkpoint_file} was trained with --task {loaded['args'].task._name}, not vaswani_translation: "
            "use fairseq's own from_pretrained for it"
        )
    # fairseq overwrites what a checkpoint has, and one of an earlier version has no such field.
    task.cfg.int8 = bool(settings.get("int8"))
    return Translator(loaded["args"], task, loaded["models"])
