"""Learning rate, update numbers and loss scale go on where the checkpoint has them."""

import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import in_process
import pytest
import reference
import torch
from conftest import Corpus
from same_state import different_keys
from spoilt_training import loss_times, spoil

UPDATES = 9
STARTS = (4, 6)


def logged(output: str, name: str) -> "list[float]":
    return [float(value) for value in re.findall(rf"epoch \d+: .*\b{name}=([\d.e+-]+)", output)]


def state(checkpoint: Path) -> Any:
    return torch.load(checkpoint, weights_only=True)


def scales(window: int, overflows: "set[int]") -> "list[float]":
    """The scale after each update, from 4.0: doubled after ``window`` batches without an overflow, halved at one."""
    scale, since, found = 4.0, 0, []
    for batch in range(1, UPDATES + len(overflows) + 1):
        if batch in overflows:
            scale, since = scale / 2, 0
            continue
        since += 1
        if since % window == 0:
            scale *= 2
        found.append(scale)
    return found


def test_in_several_starts(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rate and scale are the formula's throughout, and the weights to the last bit those of one start.

    The second batch overflows, a warm-up of 5 updates ends in the second start, and the scale is doubled in each.
    """
    overflows = {2}
    precision = ("--memory-efficient-fp16", "--fp16-init-scale", 4, "--fp16-scale-window", 3)
    flags = (*precision, "--warmup-updates", 5, "--lr-factor", 0.5, "--log-interval", 1)
    logs = []
    for folder, starts in (("straight", (UPDATES,)), ("resumed", (*STARTS, UPDATES))):
        with monkeypatch.context() as patch:
            spoil(patch, loss_times(math.inf), overflows)
            done = [
                in_process.train(corpus.binary, tmp_path / folder, *flags, "--max-update", until) for until in starts
            ]
            logs.append("".join(each.output for each in done))
    # update n is logged with the rate of the next
    rates = [0.5 * reference.learning_rate(n + 1, 16, 5) for n in range(1, UPDATES + 1)]
    for log in logs:
        assert logged(log, "num_updates") == list(range(1, UPDATES + 1))
        assert logged(log, "lr") == pytest.approx(rates, rel=1e-5)
        assert logged(log, "loss_scale") == scales(3, overflows)
    straight, resumed = (tmp_path / name / "checkpoint_last.pt" for name in ("straight", "resumed"))
    assert state(straight)["last_optimizer_state"]["param_groups"][0]["lr"] == pytest.approx(rates[-1], rel=1e-12)
    # but for the best validation so far, because a start ends with one more
    assert [key for key in different_keys(straight, resumed) if not key.endswith(".best")] == []


def test_the_loss_scale_of_a_checkpoint_without_its_counts(corpus: Corpus, tmp_path: Path) -> None:
    """Such as fairseq itself writes: the scale is there, and its window begins anew."""
    flags = ("--memory-efficient-fp16", "--fp16-init-scale", 4, "--fp16-scale-window", 3, "--log-interval", 1)
    in_process.train(corpus.binary, tmp_path, *flags, "--max-update", 4)
    written = state(tmp_path / "checkpoint_last.pt")
    del written["last_optimizer_state"]["loss_scaler"]
    torch.save(written, tmp_path / "checkpoint_last.pt")
    log = in_process.train(corpus.binary, tmp_path, *flags, "--max-update", 8).output
    assert logged(log, "loss_scale") == [8.0, 8.0, 16.0, 16.0]


def test_amps_loss_scale() -> None:
    """torch's scaler, here on a CPU, where fairseq's --amp does not run."""
    from fairseq.optim.amp_optimizer import AMPOptimizer

    def optimiser() -> Any:
        cfg = SimpleNamespace(optimizer=None, common=SimpleNamespace(fp16_init_scale=128, min_loss_scale=1e-4))
        inner = torch.optim.Adam([torch.nn.Parameter(torch.ones(2))])
        wrapped = AMPOptimizer.__new__(AMPOptimizer)
        wrapped.fp32_optimizer = SimpleNamespace(
            state_dict=inner.state_dict, load_state_dict=lambda state, overrides: inner.load_state_dict(state)
        )
        wrapped.cfg = cfg
        wrapped._grad_scaler = torch.amp.GradScaler("cpu", init_scale=128.0, growth_interval=3)
        wrapped._grad_scaler.scale(torch.ones(()))  # makes its tensors
        return wrapped

    before, after = optimiser(), optimiser()
    before.scaler.load_state_dict({**before.scaler.state_dict(), "scale": 32.0, "_growth_tracker": 2})
    after.load_state_dict(before.state_dict())
    assert after.scaler.get_scale() == 32.0
    assert after.scaler.state_dict() == before.scaler.state_dict()
    after.load_state_dict({key: value for key, value in before.state_dict().items() if key != "loss_scaler"})
    assert after.scaler.get_scale() == 32.0
