"""Lines that a program which cuts text into lines, words or pieces may stumble over."""

import random

_WORDS = "w1 w2 w3"

FIXED = [
    b"",
    b" ",
    b"    ",
    b"\t",
    b" \t \t",
    b"\r",
    b"\x0b\x0c",
    "\u00a0".encode(),
    "\u2028".encode(),
    "\u2029\u0085".encode(),
    "\u200b".encode(),
    "\ufeff".encode(),
    b"\0",
    b"\0\0\0 w1",
    b"w1 w2\r",
    b"w1\rw2",
    b"\r\rw1",
    b"w1\tw2\tw3",
    b"w1\x0bw2\x0cw3",
    b"w1\x1cw2\x1dw3\x1ew4",
    "w1\u2028w2".encode(),
    "w1\u2029w2\u0085w3".encode(),
    "\ufeffw1 w2".encode(),
    "w1\u00a0w2".encode(),
    bytes(range(1, 10)) + bytes(range(11, 32)),
    b"\x1b[31mw1\x1b[0m\x07\x08\x7f",
    b"\xff",
    b"w1 \xff\xfe w2",
    b"\xc3",
    b"\xed\xa0\x80 w1",
    b"\xf4\x90\x80\x80",
    b"\xc0\xaf",
    "w1".encode("utf-16"),
    "\u05e9\u05dc\u05d5\u05dd \u200f\u202e w1 \u202c".encode(),
    "\u0645\u0631\u062d\u0628\u0627".encode(),
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 w1".encode(),
    "\U0001f1e9\U0001f1ea\U0001f44d\U0001f3fd".encode(),
    ("e\u0301" + "\u0300" * 50).encode(),
    "Z\u0351\u036b\u0343\u036a\u0302a\u0334l\u0358g\u0321o\u034e".encode(),
    "\u6f22\u5b57 \u304b\u306a".encode(),
    "\ufffd \uffff \U0010ffff \ue000".encode(),
    b"w1@@ w2",
    b"@@ @@",
    "\u2581w1 \u2581 \u2581\u2581".encode(),
    b"<unk> w1 <unk>",
    b"</s>",
    b"w1 </s> w2",
    b"<pad>",
    b"<pad> w1 <pad>",
    b"<s> w1 </s>",
    b"<0x0A> <0x41>",
    b"madeupword0000 #fairseq:overwrite",
    b"0 1 2 3.14 -7 1e309 NaN inf",
    b"S-0\tw1",
    b"H-0\t-0.5\tw1 w2",
    b"D-7\t0\t",
    b"'\"`$(ls) && ; | > \\ \\n %s {} {0} ${HOME}",
    b"--beam 5",
    b"<html>&amp;&lt;&#10;",
    b"w1 " * 3000,
    b"w1" * 50_000,
    b"x " * 50_000,
    "\U0001f600".encode() * 3000,
    b"w19 " * 300,
]
"""A blank line is one that is blank to Python's str.strip; nothing here contains the one line end, LF."""

_ALPHABET = [
    *"ab w1w2 .,\t\r\0",
    "\u2028",
    "\u0085",
    "\ufeff",
    "\u202e",
    "\U0001f469",
    "\u200d",
    "\u0301",
    "\u2581",
    "w3 ",
]


def strange_lines(count: int = 200, seed: int = 0) -> "list[bytes]":
    """The fixed lines among random ones of odd characters and of any bytes, in an order that the seed decides."""
    choose = random.Random(seed)
    lines = [*FIXED]
    while len(lines) < count:
        if choose.random() < 0.3:
            lines.append(choose.randbytes(choose.randint(1, 40)).replace(b"\n", b""))
        else:
            lines.append("".join(choose.choices(_ALPHABET, k=choose.randint(1, 40))).encode())
    choose.shuffle(lines)
    return lines


def is_blank(line: bytes) -> bool:
    return not line.decode("utf-8", "replace").strip()
