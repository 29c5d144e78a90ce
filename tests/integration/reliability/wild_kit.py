"""A very small model whose answer tells which sentence it was given, and the commands around it in this process."""

import contextlib
import io
import logging
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from in_process import call
from small_run import WORDS, make_run

from vaswani_plugin import cli
from vaswani_plugin.inference.loading import load_translator
from vaswani_plugin.inference.packaging import package

LIMIT = 10_000
"""Tokens with </s> that a model takes."""


def reply(sentence: str) -> str:
    """What the model has learned to answer: its sources' first word, translated. Any answer is short."""
    return WORDS[sentence.split()[0]]


@dataclass
class Done:
    """How a sub-command of vaswani ended."""

    status: int
    output: bytes
    errors: str

    def refusal(self, tool: str) -> str:
        """The one sentence that it ended with."""
        assert self.status == 1
        start = f"vaswani {tool}: "
        assert self.errors.startswith(start), self.errors
        assert self.errors.count("\n") == 1, self.errors
        return self.errors.removeprefix(start).rstrip("\n")


class Kit:
    """Files of the model, and the answers that it gives to one sentence at a time."""

    def __init__(self, folder: Path) -> None:
        make_run(folder, steps=100, translate=reply)
        package(folder, folder / "packaged")
        self.model, self.dictionary = folder / "joint.model", folder / "joint.dict.txt"
        self.packaged = folder / "packaged"
        self.checkpoint = self.packaged / "model.pt"
        self.translator = load_translator(self.packaged)
        self.segmentation = self.translator.bpe
        self._known: dict[str, str] = {}

    def answer(self, sentence: str) -> str:
        """Translation of ``sentence`` alone, its white space as it is; "" for what is too long."""
        if sentence not in self._known:
            pieces = self.segmentation.encode(sentence)
            tokens = self.translator.src_dict.encode_line(pieces, add_if_not_exist=False).long()
            (self._known[sentence],) = self.translator.decode_best([tokens]) if len(tokens) <= LIMIT else ("",)
        return self._known[sentence]

    def preprocess(self, text: Path, folder: Path, *split: str, status: int = 0) -> Any:
        """Binarises ``text.en`` and ``text.de``, which are pieces, to ``folder``."""
        prefixes = [word for name in split for word in (f"--{name}pref", text)]
        languages = ("-s", "en", "-t", "de", "--joined-dictionary", "--srcdict", self.dictionary)
        return call("fairseq-preprocess", *languages, "--destdir", folder, *prefixes, status=status)

    @property
    def segmented(self) -> "tuple[Any, ...]":
        """Flags with which fairseq's commands cut and join the pieces."""
        return ("--bpe", "sentencepiece", "--sentencepiece-model", self.model)


def vaswani(*arguments: Any, stdin: bytes = b"") -> Done:
    """A sub-command as its script runs it, but in this process."""
    output, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n") for _ in range(2))
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin))
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            status = cli.main([str(word) for word in arguments])
    finally:
        sys.stdin = before
        for name in ("fairseq", "vaswani_plugin"):
            logging.getLogger(name).setLevel(logging.NOTSET)
    for stream in (output, errors):
        stream.flush()
    written, told = (stream.buffer.getvalue() for stream in (output, errors))  # type: ignore[attr-defined]
    return Done(status, written, told.decode())
