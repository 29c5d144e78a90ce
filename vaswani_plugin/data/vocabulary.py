"""A SentencePiece vocabulary and the fairseq dictionary that goes with it, id for id.

Byte-pair merges with byte fallback and without normalisation: every text can be written in the pieces, nothing
becomes ``<unk>``, and decoding gives the text back unchanged. Ids 0 to 3 are fairseq's ``<s> <pad> </s> <unk>``.
"""

import io
import itertools
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import sentencepiece

from vaswani_plugin.data.progress import Progress
from vaswani_plugin.data.text_files import (
    STANDARD_STREAM,
    blocks_of_lines,
    decode_line,
    open_binary,
    raw_lines,
    replacing,
)
from vaswani_plugin.errors import UserError

SPECIAL_PIECES = ("<s>", "<pad>", "</s>", "<unk>")
# All text up to this size is used; of a larger text, lines drawn evenly from the whole of it.
SAMPLE_BYTES = 300_000_000
# Characters rarer than one in ten thousand, all together, are left to the byte pieces.
CHARACTER_COVERAGE = 0.9999
# SentencePiece counts positions inside a word in 16 bits.
_LONGEST_LINE = 16_000

# SentencePiece's trainer means unknown characters by it, and leaves out every line with one of them.
_TRAINERS_OWN = "\u2585"
# Text that looks like a special or byte piece must never grow into an ordinary piece of the same name.
_PIECE_LOOKALIKE = re.compile(r"<(?=/?s>|pad>|unk>|0x[0-9A-F]{2}>)")
_WHITE_SPACE = re.compile(r"\s")
_SMALLEST_SIZE = re.compile(r"required_chars\D*\d+ vs (\d+)")


def make_vocabulary(files: Sequence[str | Path], size: int, prefix: str | Path) -> dict[str, int]:
    """Learns ``size`` pieces from text files and writes ``PREFIX.model`` and ``PREFIX.dict.txt``.

    Returns counts for the user: ``size``, ``characters`` (single-character pieces), ``lines`` and ``bytes`` used.
    A text that does not support the size is a ``ValueError`` that names the sizes possible.
    """
    if STANDARD_STREAM in map(str, files):
        raise UserError("a vocabulary is learned from files, not from standard input: name the files")
    if not 1 <= size < 2**31:
        raise UserError(f"--size {size} is no number of pieces; the paper's are 37000 and 32000")
    total = sum(_text_bytes(path) for path in files)
    sample = _Sample(files, min(1.0, SAMPLE_BYTES / max(total, 1)))
    model = _train(sample, size)
    dictionary = fairseq_dictionary(model)
    with replacing(f"{prefix}.model", f"{prefix}.dict.txt") as (model_file, dictionary_file):
        model_file.write(model)
        dictionary_file.write(dictionary.encode("utf-8"))
    pieces = [line.rsplit(" ", 1)[0] for line in dictionary.split("\n")[:-1]]
    characters = sum(len(piece) == 1 for piece in pieces)
    return {"size": size, "characters": characters, "lines": sample.lines, "bytes": sample.bytes}


def fairseq_dictionary(model: bytes) -> str:
    """fairseq's dictionary text (``PIECE COUNT`` lines) for a SentencePiece model, with equal ids on both sides.

    fairseq puts its four special symbols first by itself, so those are left out, by their type and not by their line
    number. The counts only descend: they keep the order should a tool sort by them. A model whose ids cannot be
    the same, or with a piece that fairseq could not read back, is a ``ValueError``.
    """
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    size = processor.get_piece_size()
    specials = [i for i in range(size) if processor.is_control(i) or processor.is_unknown(i)]
    names = tuple(processor.id_to_piece(i) for i in specials)
    if specials != list(range(len(SPECIAL_PIECES))) or names != SPECIAL_PIECES:
        raise UserError(
            f"the SentencePiece model has the special pieces {' '.join(names)} at ids {specials}, but fairseq needs "
            f"{' '.join(SPECIAL_PIECES)} at 0 to 3; make the model with `vaswani vocabulary`"
        )
    pieces = [processor.id_to_piece(i) for i in range(len(SPECIAL_PIECES), size)]
    for index, piece in enumerate(pieces, len(SPECIAL_PIECES)):
        if _WHITE_SPACE.search(piece) or piece in SPECIAL_PIECES:
            raise UserError(f"piece {index} of the SentencePiece model is {piece!r}, which fairseq cannot read back")
    return "".join(f"{piece} {size - index}\n" for index, piece in enumerate(pieces, len(SPECIAL_PIECES)))


class _Sample:
    """The lines to learn from, in pieces short enough for SentencePiece, with counts of what was taken."""

    def __init__(self, files: Sequence[str | Path], share: float) -> None:
        self.files, self.share = files, share
        self.lines = self.bytes = 0

    def __iter__(self) -> Iterator[str]:
        draw = random.Random(0).random
        with Progress("vocabulary: reading") as progress:
            for path in self.files:
                for number, line in enumerate(raw_lines(path), 1):
                    progress.advance()
                    if self.share < 1 and draw() >= self.share:
                        continue
                    yield from self._prepare(line, path, number)

    def _prepare(self, line: bytes, path: str | Path, number: int) -> Iterator[str]:
        text = decode_line(line, path, number)
        self.lines += 1
        self.bytes += len(line) + 1
        # White space other than a space stays out of the pieces (fairseq would split there) and is spelt in bytes.
        text = _WHITE_SPACE.sub(" ", text.replace("\0", "").replace(_TRAINERS_OWN, " "))
        text = _PIECE_LOOKALIKE.sub("< ", text)
        for start in range(0, len(text), _LONGEST_LINE):
            yield text[start : start + _LONGEST_LINE]


def _train(sample: _Sample, size: int) -> bytes:
    """Runs SentencePiece's trainer and turns its complaints into sentences about ``--size`` and the text."""
    written = io.BytesIO()
    bos, pad, eos, unk = SPECIAL_PIECES
    lines = iter(sample)
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise UserError(f"{', '.join(map(str, sample.files))}: no text to learn a vocabulary from, only blank lines")
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=itertools.chain([first], lines),
            model_writer=written,
            model_type="bpe",
            vocab_size=size,
            # Without the limit a text that is too small gives fewer pieces, and their number is worth telling.
            hard_vocab_limit=False,
            byte_fallback=True,
            character_coverage=CHARACTER_COVERAGE,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            max_sentence_length=4 * _LONGEST_LINE,
            bos_id=0,
            pad_id=1,
            eos_id=2,
            unk_id=3,
            bos_piece=bos,
            pad_piece=pad,
            eos_piece=eos,
            unk_piece=unk,
            minloglevel=2,
        )
    except RuntimeError as error:
        if too_small := _SMALLEST_SIZE.search(str(error)):
            raise UserError(
                f"--size {size} is too small: this text needs at least {too_small[1]} pieces "
                "(4 special ones, 256 bytes and one for each common character)"
            ) from error
        raise UserError(f"SentencePiece could not learn {size} pieces from this text: {error}") from error
    model = written.getvalue()
    largest = sentencepiece.SentencePieceProcessor(model_proto=model).get_piece_size()
    if largest < size:
        raise UserError(f"--size {size} is too large: this text supports at most {largest} pieces")
    return model


def _text_bytes(path: str | Path) -> int:
    """Size of the text, unpacked."""
    with open_binary(path) as stream:
        return sum(len(line) + 1 for block in blocks_of_lines(stream) for line in block)
