"""Text to SentencePiece pieces and back, so that any line of text survives the whole way through fairseq.

fairseq splits an encoded line at white space and, with its own ``--bpe sentencepiece``, decodes by joining strings.
Both lose text: a piece that contains a no-break space is torn apart, and byte pieces such as ``<0xC2>`` stay in the
translation as they are. Here the decoder is SentencePiece's own, and ``decode(encode(line)) == line`` holds for
every line of a vocabulary made by ``vaswani vocabulary``.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import sentencepiece

from vaswani_plugin.errors import UserError

WORD_START = "\u2581"
_STAND_INS = range(0xE000, 0x110000)  # from the private-use area on: none of these is white space
_BYTE_PIECES = {byte: f"<0x{byte:02X}>" for byte in range(256)}


class Segmentation:
    """A SentencePiece model as fairseq's tools need it: strings of pieces separated by single spaces.

    Has the interface of fairseq's byte-pair encoders (``encode``, ``decode``, ``is_beginning_of_word``).
    """

    def __init__(self, model: str | Path) -> None:
        """Loads a model file; a file that is missing or no SentencePiece model is a ``ValueError``."""
        self.model = Path(model)
        if not self.model.is_file():
            raise UserError(f"{model}: there is no such SentencePiece model; `vaswani vocabulary` makes one")
        try:
            self.processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
            pieces = [self.processor.id_to_piece(index) for index in range(self.processor.get_piece_size())]
        except (RuntimeError, OSError, UnicodeDecodeError) as error:  # the last of text in a damaged one
            raise UserError(f"{model}: not a SentencePiece model; give the .model file, not the dictionary") from error
        self._has_bytes = any(self.processor.is_byte(index) for index in range(len(pieces)))
        self._alphabet = set().union(*pieces)

    def encode(self, line: str) -> str:
        """Pieces of one line of text, separated by single spaces; a blank line has none."""
        return self.encode_lines([line], threads=1)[0]

    def encode_lines(self, lines: list[str], threads: int = 0) -> list[str]:
        """Pieces of each line, in order, on ``threads`` threads (0: one for each core)."""
        encoded = self.processor.encode(lines, out_type=str, num_threads=threads or os.cpu_count() or 1)
        joined = [" ".join(pieces) for pieces in encoded]
        if self._has_bytes:
            # SentencePiece writes a space as U+2581, so the same character in the text would come back as a space.
            for index, line in enumerate(lines):
                if WORD_START in line:
                    joined[index] = self._encode_with_literal_mark(line)
        return joined

    def _encode_with_literal_mark(self, line: str) -> str:
        """Spells each U+2581 of the text in byte pieces, by way of a character that no piece and no text contains."""
        stand_in = next(self._unused_characters(line))
        pieces = self.processor.encode(line.replace(WORD_START, stand_in), out_type=str)
        return " ".join(pieces).replace(_spelt_in_bytes(stand_in), _spelt_in_bytes(WORD_START))

    def _unused_characters(self, line: str) -> Iterator[str]:
        return (chr(code) for code in _STAND_INS if chr(code) not in self._alphabet and chr(code) not in line)

    def decode(self, pieces: str) -> str:
        """The text of a line of pieces. Always one line: a model that spells a line feed in bytes gets a space."""
        return self.processor.decode_pieces(pieces.split()).replace("\n", " ")

    def is_beginning_of_word(self, piece: str) -> bool:
        """Whether a piece starts a word, which fairseq asks when it masks or counts whole words."""
        return piece.startswith(WORD_START) or piece in {"<s>", "<pad>", "</s>", "<unk>"}


def _spelt_in_bytes(character: str) -> str:
    return " ".join(_BYTE_PIECES[byte] for byte in character.encode("utf-8"))
