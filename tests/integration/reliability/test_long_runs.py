"""What must not grow with a run's length, and the benchmark that watches the memory of long ones."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks import leak
from conftest import Corpus, run
from fairseq.logging import metrics
from in_process import interactive, train

from vaswani_plugin.tasks.vaswani_translation import VaswaniTranslationTask

SCRIPT = Path(leak.__file__)


def test_interactive_keeps_nothing_of_what_it_has_translated(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fairseq keeps the batches of data that it may iterate over again, which a buffer of lines is not."""
    train(corpus.binary, tmp_path)
    tasks: set[Any] = set()
    original = VaswaniTranslationTask.get_batch_iterator

    def recording(self: Any, *arguments: Any, **settings: Any) -> Any:
        tasks.add(self)
        return original(self, *arguments, **settings)

    monkeypatch.setattr(VaswaniTranslationTask, "get_batch_iterator", recording)
    (tmp_path / "lines").write_text("w1 w2\n" * 5)
    done = interactive(corpus.binary, tmp_path / "checkpoint_last.pt", tmp_path / "lines")
    assert len(re.findall(r"^D-\d+", done.output, re.MULTILINE)) == 5
    (task,) = tasks
    assert len(task.dataset_to_epoch_iter) == 0


def test_metrics_keep_nothing_of_a_group_that_is_over() -> None:
    """Each update makes such groups, with names of their own, inside of one another."""
    before = dict(metrics._active_aggregators_cnt)
    for _ in range(3):
        with metrics.aggregate() as outer, metrics.aggregate() as inner:
            metrics.log_scalar("loss", 2.0)
        assert outer.get_smoothed_values()["loss"] == inner.get_smoothed_values()["loss"] == 2.0
    with metrics.aggregate("named") as outer:
        with metrics.aggregate("named"):
            pass
        metrics.log_scalar("loss", 3.0)
    assert outer.get_smoothed_values()["loss"] == 3.0
    assert dict(metrics._active_aggregators_cnt) == before


@pytest.mark.parametrize(
    ("values", "expected"),
    [([3.0, 3.0, 3.0], 0.0), ([1.0, 3.0, 5.0, 7.0], 2.0), ([0.0, 1.0, 0.0], 0.0), ([0.0, 0.0, 3.0], 1.5)],
)
def test_growth_is_the_slope_of_the_fitted_line(values: "list[float]", expected: float) -> None:
    assert leak.slope(values) == pytest.approx(expected)


def test_memory_is_that_of_the_process_at_its_lines() -> None:
    """A process that takes 64 megabytes between its lines."""
    wait = "time.sleep(0.5)"
    program = f"import time; print('D-1'); {wait}; kept = b'x' * 2**26; print('D-2'); {wait}"
    first, second = leak.watch([sys.executable, "-c", program], lambda line: line.startswith("D-"))
    assert 60 < second - first < 80


@pytest.mark.long
def test_memory_stays_where_it_is() -> None:
    """Shorter than the benchmark, so with a bound that only a true leak exceeds."""
    output = run(sys.executable, SCRIPT, "--updates", 600, "--sentences", 600).output
    growths = dict(re.findall(r"^(fairseq-\w+): ([+-][\d.]+) megabytes for 1,000", output, re.MULTILINE))
    assert set(growths) == {"fairseq-train", "fairseq-generate", "fairseq-interactive"}
    assert all(float(growth) < 10 for growth in growths.values()), output
