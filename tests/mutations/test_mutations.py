"""Each fault of the catalogue, alone in a copy of the project, makes a test fail; without it all of them pass."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from catalogue import CATALOGUE
from mutation import PROJECT, Mutation, TestRuns, copy_project

# In every run, as a sample of what the long one does.
SAMPLE = {"no 1/sqrt(d_k)", "schedule one update behind", "epsilon / V"}


def cases() -> "list[object]":
    long = pytest.mark.long
    return [
        pytest.param(mutation, id=mutation.name, marks=() if mutation.name in SAMPLE else (long,))
        for mutation in CATALOGUE
    ]


@pytest.fixture(scope="module")
def runs() -> "Iterator[TestRuns]":
    process = TestRuns()
    yield process
    process.close()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    copy_project(tmp_path)
    return tmp_path


def test_the_catalogue_fits_the_code() -> None:
    """Every fault's place is still there and still Python with the fault in it."""
    misfits = []
    for mutation in CATALOGUE:
        text = (PROJECT / "vaswani_plugin" / mutation.file).read_text("utf-8")
        try:
            faulty = mutation.apply(text)
            ast.parse(faulty)
        except (ValueError, SyntaxError) as error:
            misfits.append(f"{mutation.name}: {error}")
            continue
        if faulty == text:
            misfits.append(f"{mutation.name}: changes nothing")
    assert not misfits, "\n".join(misfits)
    names = [mutation.name for mutation in CATALOGUE]
    assert len(names) == len(set(names))
    assert set(names) >= SAMPLE


@pytest.mark.parametrize("which", [pytest.param("sample"), pytest.param("all", marks=pytest.mark.long)])
def test_without_a_mutation_all_targets_pass(runs: TestRuns, copy: Path, which: str) -> None:
    chosen = [mutation for mutation in CATALOGUE if which == "all" or mutation.name in SAMPLE]
    outcome = runs.run(copy, sorted({mutation.target for mutation in chosen}))
    assert (outcome.status, outcome.failed) == (0, {}), outcome.output


@pytest.mark.parametrize("mutation", cases())
def test_noticed(runs: TestRuns, copy: Path, mutation: Mutation) -> None:
    runs.check_noticed(copy, mutation)
