"""The plan of a training's batches against sums over batches that are laid out here."""

import numpy as np
import pytest
from example_scripts import load

plan = load("wmt14", "plan")


def text(pairs: int, longest: int = 60) -> "plan.Text":
    draw = np.random.default_rng(1)
    source = draw.integers(2, longest, pairs)
    return plan.Text(source, np.clip(source + draw.integers(-3, 12, pairs), 2, None))


@pytest.mark.parametrize(("workers", "most"), [(1, 4096), (1, 40_000), (8, 4096), (16, 4096), (3, 3000)])
def test_an_update_has_the_wanted_tokens(workers: int, most: int) -> None:
    lengths = text(30_000)
    update = plan.plan(lengths, workers, most, 25_000)
    assert update.max_tokens <= most
    assert (update.source_tokens + update.target_tokens) / 2 == pytest.approx(25_000, rel=0.03)
    # Batches as fairseq makes them: in order of length, as many as fit, whole eights where there are eight.
    batches, batch = [], []
    for index in range(len(lengths.longer)):
        if (len(batch) + 1) * max(lengths.longer[[*batch, index]]) > update.max_tokens:
            kept = max(len(batch) // 8 * 8, len(batch) % 8)
            batches.append(batch[:kept])
            batch = batch[kept:]
        batch.append(index)
    batches.append(batch)
    share = workers * update.update_freq / len(batches)
    assert update.source_tokens == pytest.approx(share * lengths.source.sum(), rel=0.01)
    assert update.target_tokens == pytest.approx(share * lengths.target.sum(), rel=0.01)
    # One batch fewer would not do, even the largest ones.
    if update.update_freq > 1:
        fewer = lengths.update(most, update.update_freq - 1, workers)
        assert (fewer.source_tokens + fewer.target_tokens) / 2 < 25_000


def test_one_device_accumulates_what_eight_do_at_once() -> None:
    lengths = text(30_000)
    assert plan.plan(lengths, 8, 4096, 25_000).update_freq == 1
    assert plan.plan(lengths, 1, 4096, 25_000).update_freq in (7, 8)


def test_a_small_text_is_one_update() -> None:
    lengths = text(50)
    update = plan.plan(lengths, 1, 4096, 25_000)
    assert (update.pairs, update.source_tokens) == (50, lengths.source.sum())


def test_pairs_that_training_leaves_out_do_not_count() -> None:
    lengths = plan.Text(np.array([5, 256, 257, 9]), np.array([6, 256, 3, 300]))
    assert lengths.pairs == 2
    assert sorted(lengths.target) == [6, 256]
    # The longest pair must fit, however small the batches should be.
    assert plan.plan(lengths, 64, 10, 100).max_tokens >= 256


def test_more_memory_takes_larger_batches() -> None:
    def most(memory: float) -> int:
        return plan.Devices(1, 1, 1, "", int(memory), "bfloat16").most_tokens

    assert most(0) == most(8e9) == 4096
    assert most(86e9) == pytest.approx(5 * 4096, rel=0.01)
