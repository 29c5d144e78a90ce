"""Prints a few sentences of a test set with the reference and our translation beside each other.

Usage: python samples.py SOURCE REFERENCE GENERATE_OUTPUT [COUNT]
"""

import sys
from pathlib import Path

_FEWEST_WORDS = 6


def lines(path: str) -> list[str]:
    return Path(path).read_bytes().decode("utf-8").split("\n")


def main() -> None:
    sources, references = lines(sys.argv[1]), lines(sys.argv[2])
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    ours: dict[int, str] = {}
    for line in lines(sys.argv[3]):
        if line.startswith("D-"):
            sentence, _, text = line[2:].split("\t", 2)
            ours.setdefault(int(sentence), text)
    # Whole sentences say more than single words; evenly spread over the test set, so always the same ones.
    chosen = [i for i in sorted(ours) if len(sources[i].split()) >= _FEWEST_WORDS] or sorted(ours)
    for i in chosen[len(chosen) // (2 * count) :: max(1, len(chosen) // count)][:count]:
        print(f"  source     {sources[i]}\n  reference  {references[i]}\n  ours       {ours[i]}\n")


if __name__ == "__main__":
    main()
