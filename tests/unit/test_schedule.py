"""The schedule against the paper's formula and published values, beside our model and stock ones."""

from argparse import Namespace
from typing import Any

import pytest
import reference
import torch
from fairseq.dataclass.utils import omegaconf_no_object_check
from fairseq.optim.adam import FairseqAdam
from omegaconf import OmegaConf

from vaswani_plugin.optim.inverse_sqrt import VaswaniInverseSqrtSchedule, learning_rate

BASE = {
    1: 1.746928107e-7,
    1000: 1.746928107e-4,
    3999: 6.985965502e-4,
    4000: 6.987712430e-4,
    4001: 6.986839129e-4,
    10000: 4.419417382e-4,
    50000: 1.976423538e-4,
    100000: 1.397542486e-4,
}
BIG = {1: 1.235264711e-7, 4000: 4.941058844e-4, 300000: 5.705443307e-5}


def optimizer() -> FairseqAdam:
    adam = OmegaConf.create(
        {"lr": [0.25], "adam_betas": "(0.9, 0.98)", "adam_eps": 1e-9, "weight_decay": 0.0}
        | {"use_old_adam": False, "fp16_adam_stats": False, "tpu": False}
    )
    return FairseqAdam(adam, [torch.nn.Parameter(torch.ones(2))])


def schedule(model: Any = None, lr: float = 0.25, stop_min_lr: float = -1.0, **options: Any) -> Any:
    with omegaconf_no_object_check():
        whole = OmegaConf.create(
            {
                "model": {"_name": "vaswani_base", "d_model": 512} if model is None else model,
                "optimization": {"lr": [lr], "stop_min_lr": stop_min_lr},
                "lr_scheduler": {"warmup_updates": 4000, "lr_factor": 1.0, "lr": [lr], **options},
            },
            flags={"allow_objects": True},
        )
    return VaswaniInverseSqrtSchedule(whole.lr_scheduler, optimizer())


@pytest.mark.parametrize(("d_model", "table"), [(512, BASE), (1024, BIG)])
def test_published_rates(d_model: int, table: "dict[int, float]") -> None:
    for update, rate in table.items():
        assert learning_rate(update, d_model, 4000) == pytest.approx(rate, rel=1e-9)
        assert reference.learning_rate(update, d_model, 4000) == pytest.approx(rate, rel=1e-9)


def test_first_update_is_number_one() -> None:
    """fairseq announces the number of finished updates; the next one's rate must be set, the first one's not zero."""
    made = schedule()
    assert made.optimizer.get_lr() == pytest.approx(BASE[1], rel=1e-9)
    for finished in (0, 999, 3998, 3999, 4000):
        made.step_update(finished)
        expected = reference.learning_rate(finished + 1, 512, 4000)
        assert made.optimizer.get_lr() == pytest.approx(expected, rel=1e-12)


def test_rate_depends_on_nothing_but_the_update() -> None:
    """So that a resumed run continues with the rates of an undisturbed one."""
    straight, resumed = schedule(), schedule()
    for finished in range(30):
        straight.step_update(finished)
    resumed.load_state_dict(straight.state_dict())
    assert resumed.step_update(30) == straight.step_update(30)
    straight.step(1, 0.5)  # an epoch's end changes nothing
    assert straight.optimizer.get_lr() == resumed.optimizer.get_lr()


def test_factor_scales_everywhere() -> None:
    for finished in (0, 5000):
        assert schedule(lr_factor=2.53).step_update(finished) == pytest.approx(2.53 * schedule().step_update(finished))


def test_same_curve_as_stock_inverse_sqrt_from_the_peak_on() -> None:
    peak = BASE[4000]
    for update in (4000, 5000, 90_000):
        assert learning_rate(update, 512, 4000) == pytest.approx(peak * (4000 / update) ** 0.5, rel=1e-9)


@pytest.mark.parametrize(
    ("model", "width"),
    [
        ({"_name": "vaswani_big", "d_model": 1024}, 1024),
        (Namespace(arch="transformer", encoder_embed_dim=256, decoder_embed_dim=256), 256),
        (Namespace(arch="lstm", decoder_embed_dim=300), 300),
        ({"_name": "transformer_from_config", "decoder": {"embed_dim": 64}}, 64),
    ],
)
def test_width_comes_from_the_model(model: Any, width: int) -> None:
    made = schedule(model)
    assert made.step_update(7) == pytest.approx(reference.learning_rate(8, width, 4000), rel=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": 5e-4}, r"--lr 0\.0005 has no effect .* peak rate 0\.0006988 .*--lr-factor 0\.7155 gives that peak"),
        ({"warmup_updates": 0}, "--warmup-updates 0 must be at least 1"),
        ({"lr_factor": 0.0}, r"--lr-factor 0\.0 must be a positive number"),
        ({"stop_min_lr": 1e-4}, r"--stop-min-lr 0\.0001 is not below .* --max-update 195313, where"),
        ({"model": Namespace(arch="fconv")}, "cannot tell the width of --arch fconv"),
    ],
)
def test_settings_without_meaning(options: "dict[str, Any]", message: str) -> None:
    with pytest.raises(ValueError, match=message):
        schedule(**options)


def test_usual_stop_min_lr_is_accepted() -> None:
    assert schedule(stop_min_lr=1e-9).step_update(0) == pytest.approx(BASE[1], rel=1e-9)


def test_length_penalty_vector() -> None:
    from vaswani_plugin.generation.length_penalty import length_penalty

    published = {1: 1.0, 5: 1.35866, 10: 1.73286, 20: 2.35436, 30: 2.88105, 50: 3.77856}
    for length, value in published.items():
        assert length_penalty(length, 0.6) == pytest.approx(value, abs=5e-6)
    assert length_penalty(20, 0.0) == 1.0
    # Two hypotheses whose order fairseq's n^0.6 turns around.
    assert -2.0 / length_penalty(4, 0.6) == pytest.approx(-1.568, abs=5e-4)
    assert -3.0 / length_penalty(8, 0.6) == pytest.approx(-1.886, abs=5e-4)
