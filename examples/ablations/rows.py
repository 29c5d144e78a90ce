"""Table 3 of the paper, at a size for a CPU: each row changes what the paper's row changes, by the same ratio.

Usage: python rows.py [NAME...]     (prints NAME<TAB>fairseq-train's arguments of the rows, all of them by default)
"""

import sys
from dataclasses import dataclass

# The paper's base model halved in layers, an eighth in width: d_ff = 4 d_model and 8 heads as there.
BASE = {
    "--num-layers": "3",
    "--d-model": "64",
    "--d-ff": "256",
    "--num-heads": "8",
    "--dropout": "0.1",
    "--label-smoothing": "0.1",
}


@dataclass(frozen=True)
class Row:
    """``paper`` is what the paper changed; perplexity and BLEU are the paper's, of newstest2013."""

    name: str
    paper: str
    here: str
    changes: tuple[str, ...]
    perplexity: float
    bleu: float

    def arguments(self) -> list[str]:
        return [word for flag in BASE.items() for word in flag] + list(self.changes)


ROWS = (
    Row("base", "N 6, d 512, d_ff 2048, h 8", "N 3, d 64, d_ff 256, h 8", (), 4.92, 25.8),
    Row("A1", "h 1", "h 1", ("--num-heads", "1"), 5.29, 24.9),
    Row("A2", "h 4", "h 4", ("--num-heads", "4"), 5.00, 25.5),
    Row("A3", "h 16", "h 16", ("--num-heads", "16"), 4.91, 25.8),
    Row("A4", "h 32", "h 32", ("--num-heads", "32"), 5.01, 25.4),
    Row("B1", "d_k 16", "d_k 2", ("--d-k", "2"), 5.16, 25.1),
    Row("B2", "d_k 32", "d_k 4", ("--d-k", "4"), 5.01, 25.4),
    Row("C1", "N 2", "N 1", ("--num-layers", "1"), 6.11, 23.7),
    Row("C2", "N 4", "N 2", ("--num-layers", "2"), 5.19, 25.3),
    Row("C3", "N 8", "N 4", ("--num-layers", "4"), 4.88, 25.5),
    Row("C6", "d_ff 1024", "d_ff 128", ("--d-ff", "128"), 5.12, 25.4),
    Row("C7", "d_ff 4096", "d_ff 512", ("--d-ff", "512"), 4.75, 26.2),
    Row("D1", "dropout 0.0", "dropout 0.0", ("--dropout", "0.0"), 5.77, 24.6),
    Row("D2", "dropout 0.2", "dropout 0.2", ("--dropout", "0.2"), 4.95, 25.5),
    Row("D3", "smoothing 0.0", "smoothing 0.0", ("--label-smoothing", "0.0"), 4.67, 25.3),
    Row("D4", "smoothing 0.2", "smoothing 0.2", ("--label-smoothing", "0.2"), 5.47, 25.7),
    Row("E", "learned positions", "learned positions", ("--learned-positions",), 4.92, 25.7),
)


def chosen(names: list[str]) -> list[Row]:
    """The rows of these names in the paper's order; the base, which the others are compared with, must be one."""
    known = {row.name: row for row in ROWS}
    for name in names:
        if name not in known:
            sys.exit(f"ablations: ROWS has {name}, which is none of {' '.join(known)}")
    if names and "base" not in names:
        sys.exit("ablations: ROWS has no base, which every row is compared with: add it")
    return [row for row in ROWS if not names or row.name in names]


def main() -> None:
    for row in chosen(sys.argv[1:]):
        print(row.name, " ".join(row.arguments()), sep="\t")


if __name__ == "__main__":
    main()
