"""Table 3 in small: the rows' ratios, and how changes are compared with the paper's."""

from pathlib import Path

import pytest
from example_scripts import load

from vaswani_plugin.models.architectures import ARCHITECTURES

EXAMPLE = Path(__file__).parents[2] / "examples" / "ablations"


@pytest.fixture(scope="module")
def example():
    return load("ablations", "rows"), load("ablations", "results")


def test_rows_change_what_the_paper_changes_by_the_same_ratio(example) -> None:
    """The plugin's named architectures are the paper's rows; sizes divide by the base's, the rest is the same."""
    rows, _ = example
    base = dict(zip(*[iter(rows.ROWS[0].arguments())] * 2))
    width = {"num_layers": 6, "num_heads": 8, "d_ff": 2048, "d_k": 64}
    here = {**{name: int(base[f"--{name.replace('_', '-')}"]) for name in ("num_layers", "num_heads", "d_ff")}}
    here["d_k"] = int(base["--d-model"]) // here["num_heads"]
    named = {"A1": "h1", "A2": "h4", "A3": "h16", "A4": "h32", "B1": "dk16", "B2": "dk32", "C1": "n2", "C2": "n4"}
    named |= {"C3": "n8", "C6": "ff1024", "C7": "ff4096"}
    for row in rows.ROWS:
        if row.name in named:
            ((name, value),) = ARCHITECTURES[f"vaswani_base_{named[row.name]}"].items()
            assert row.changes[0] == f"--{name.replace('_', '-')}"
            assert int(row.changes[1]) / here[name] == value / width[name], row.name
    same = {"D1": ("--dropout", "0.0"), "D2": ("--dropout", "0.2"), "E": ("--learned-positions",)}
    same |= {"D3": ("--label-smoothing", "0.0"), "D4": ("--label-smoothing", "0.2"), "base": ()}
    assert {row.name: row.changes for row in rows.ROWS if row.name not in named} == same


def test_the_rows_chosen_keep_the_papers_order_and_need_the_base(example) -> None:
    rows, _ = example
    assert [row.name for row in rows.chosen(["E", "base", "A1"])] == ["base", "A1", "E"]
    assert rows.chosen([]) == list(rows.ROWS)
    with pytest.raises(SystemExit, match="F1, which is none of base A1"):
        rows.chosen(["base", "F1"])
    with pytest.raises(SystemExit, match="no base"):
        rows.chosen(["A1"])


def compared(example, **values):
    rows, results = example
    runs = {name: [{"updates": 9, "perplexity": p, "bleu": b} for p, b in each] for name, each in values.items()}
    return results.compare(runs, rows.chosen(list(values)))


def test_changes_against_the_base_beside_the_papers(example) -> None:
    """By hand: means 11 and 13.5; the ranges are 2 and 1, so that 2.5 is a change; BLEU moves by 0.25 within 1."""
    base, one_head = compared(example, base=[(10, 20), (12, 21)], A1=[(13, 20.5), (14, 21)])
    assert base["perplexity"]["change"] == 0
    perplexity = one_head["perplexity"]
    assert (perplexity["mean"], perplexity["change"], perplexity["spread"]) == (13.5, 2.5, 2)
    # Table 3: 5.29 instead of 4.92, 24.9 instead of 25.8.
    assert (perplexity["paper_change"], one_head["bleu"]["paper_change"]) == (0.37, -0.9)
    assert (perplexity["direction"], perplexity["paper_direction"]) == ("worse", "worse")
    assert one_head["bleu"]["change"] == 0.25
    assert (one_head["bleu"]["direction"], one_head["bleu"]["paper_direction"]) == ("unclear", "worse")


def test_one_seed_has_no_spread(example) -> None:
    _, wide, positions = compared(example, base=[(10, 20)], C7=[(9.5, 20.5)], E=[(10.5, 19)])
    assert (wide["perplexity"]["direction"], wide["bleu"]["direction"]) == ("better", "better")
    # The paper: 4.92 as without, and 25.7 instead of 25.8.
    assert (positions["perplexity"]["paper_direction"], positions["bleu"]["paper_direction"]) == ("equal", "worse")


def test_only_rows_that_moved_in_both_are_counted(example) -> None:
    _, results = example
    table = compared(example, base=[(10, 20)], A1=[(11, 21)], C7=[(11, 20.5)], D4=[(12, 20)], E=[(9, 20)])
    # Perplexity: A1 and D4 worse in both, C7 better in the paper alone, E has not moved in the paper.
    assert results.agreement(table, "perplexity") == (2, 3)
    # BLEU: A1 worse in the paper alone, C7 better in both, D4 and E have not moved here.
    assert results.agreement(table, "bleu") == (1, 2)
