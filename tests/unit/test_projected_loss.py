"""The chunked loss against the plain one: values, gradients, precisions, sizes."""

from typing import Any, Optional

import pytest
import torch

from vaswani_plugin.criterions import projected_loss
from vaswani_plugin.criterions.label_smoothing import smoothed_cross_entropy
from vaswani_plugin.criterions.projected_loss import projected_smoothed_cross_entropy


def inputs(n: int, d: int = 6, v: int = 11, dtype: torch.dtype = torch.float64) -> Any:
    generator = torch.Generator().manual_seed(n)
    features = torch.randn(n, d, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
    weight = torch.randn(v, d, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
    target = torch.randint(0, v, (n,), generator=generator)
    is_token = torch.rand(n, generator=generator) < 0.7
    return features, weight, target, is_token


def plain(features: Any, weight: Any, target: Any, is_token: Any, epsilon: float) -> Any:
    log_probabilities = torch.log_softmax(features @ weight.T, dim=-1)
    return smoothed_cross_entropy(log_probabilities[None], target[None], is_token[None], epsilon)


@pytest.fixture(params=[1, 25, None])
def _chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """One token to a chunk, two, and all at once."""
    elements: Optional[int] = request.param
    if elements is not None:
        monkeypatch.setattr(projected_loss, "_CHUNK_ELEMENTS", elements)
        monkeypatch.setattr(projected_loss, "_FEWEST_TOKENS", 1)


@pytest.mark.usefixtures("_chunks")
@pytest.mark.parametrize("n", [0, 1, 2, 7])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_values_and_gradients_are_the_plain_ones(n: int, epsilon: float) -> None:
    mine, other = inputs(n), inputs(n)
    loss, nll, correct = projected_smoothed_cross_entropy(*mine, epsilon, count_correct=True)
    expected, expected_nll = plain(*other, epsilon)
    torch.testing.assert_close((loss, nll), (expected, expected_nll))
    assert not nll.requires_grad
    best = (other[0] @ other[1].T).argmax(1) if n else torch.empty(0)
    assert int(correct) == int((best.eq(other[2]) & other[3]).sum())
    (loss * 3.0).backward()
    (expected * 3.0).backward()
    for ours, theirs in zip(mine[:2], other[:2]):
        torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.usefixtures("_chunks")
def test_gradcheck() -> None:
    features, weight, target, is_token = inputs(5)
    assert torch.autograd.gradcheck(
        lambda f, w: projected_smoothed_cross_entropy(f, w, target, is_token, 0.1)[0], (features, weight)
    )


def test_large_logits_do_not_overflow() -> None:
    features, weight, target, is_token = inputs(4, dtype=torch.float32)
    loss, _, _ = projected_smoothed_cross_entropy(features * 1e4, weight, target, is_token, 0.1)
    expected, _ = plain(features.double() * 1e4, weight.double(), target, is_token, 0.1)
    assert torch.isfinite(loss)
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize("offset", [0.0, 3e4])
def test_an_offset_of_all_logits_costs_no_precision(offset: float) -> None:
    """Logits near 30,000 are multiples of 1/512 in float32, and so is a loss made of them."""
    generator = torch.Generator().manual_seed(3)
    weight = torch.cat([torch.randint(-6, 7, (50, 2), generator=generator) / 4.0, torch.ones(50, 1)], dim=1)
    features = torch.tensor([[1.0, -0.5, offset]])
    target, is_token = torch.tensor([4]), torch.tensor([True])
    loss, nll, _ = projected_smoothed_cross_entropy(features, weight, target, is_token, 0.1)
    expected = plain(features.double(), weight.double(), target, is_token, 0.1)
    torch.testing.assert_close((loss.double(), nll.double()), expected, rtol=1e-6, atol=0)


def test_nothing_but_padding() -> None:
    features, weight, target, is_token = inputs(3)
    loss, _, _ = projected_smoothed_cross_entropy(features, weight, target, is_token & False, 0.1)
    loss.backward()
    assert loss == 0
    assert (features.grad == 0).all()
    assert (weight.grad == 0).all()


def test_accumulated_gradients_are_those_of_one_batch() -> None:
    features, weight, target, is_token = inputs(6)
    for part in (slice(0, 2), slice(2, 6)):
        projected_smoothed_cross_entropy(features[part], weight, target[part], is_token[part], 0.1)[0].backward()
    whole, whole_weight, *_ = inputs(6)
    projected_smoothed_cross_entropy(whole, whole_weight, target, is_token, 0.1)[0].backward()
    torch.testing.assert_close((features.grad, weight.grad), (whole.grad, whole_weight.grad))


@pytest.mark.usefixtures("_chunks")
def test_a_graph_gone_through_again_gives_the_gradients_again() -> None:
    """The first time hands out, scaled, what was kept."""
    features, weight, target, is_token = inputs(7)
    loss, _, _ = projected_smoothed_cross_entropy(features, weight, target, is_token, 0.1)
    threefold = torch.autograd.grad(loss, (features, weight), torch.tensor(3.0).double(), retain_graph=True)
    again = torch.autograd.grad(loss, (features, weight))
    torch.testing.assert_close([gradient / 3.0 for gradient in threefold], list(again))
    exact = inputs(7)
    plain(*exact, 0.1)[0].backward()
    torch.testing.assert_close(again, (exact[0].grad, exact[1].grad))


def test_no_gradient_is_kept_when_none_is_wanted() -> None:
    features, weight, target, is_token = inputs(4)
    with torch.no_grad():
        loss, _, _ = projected_smoothed_cross_entropy(features, weight, target, is_token, 0.1)
    assert loss.grad_fn is None
    torch.testing.assert_close(loss, plain(features, weight, target, is_token, 0.1)[0].detach())
    loss, _, _ = projected_smoothed_cross_entropy(features.detach(), weight, target, is_token, 0.1)
    loss.backward()
    assert features.grad is None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_weights(dtype: torch.dtype) -> None:
    """Loss and kept gradients are float32: the loss scale of 2^13 finds gradients of 1e-6 still there."""
    features, weight, target, is_token = inputs(40, d=16, v=300, dtype=dtype)
    loss, _, _ = projected_smoothed_cross_entropy(features, weight, target, is_token, 0.1)
    assert loss.dtype == torch.float32
    (loss * 2**13 / 2**13).backward()
    exact = [x.detach().double().requires_grad_() for x in (features, weight)]
    expected, _ = plain(*exact, target, is_token, 0.1)
    expected.backward()
    torch.testing.assert_close(loss.double(), expected, rtol=0.01, atol=0)
    for mine, theirs in zip((features, weight), exact):
        assert mine.grad.dtype == dtype
        torch.testing.assert_close(mine.grad.double(), theirs.grad, rtol=0.05, atol=0.02)


def test_tiny_gradients_survive_the_loss_scale_in_float16() -> None:
    """A gradient of about 3e-9 is 0 in float16; scaled by 2^15 before rounding it is not."""
    features, weight, target, is_token = inputs(1, d=2, v=50, dtype=torch.float16)
    with torch.no_grad():
        weight.mul_(0).add_(1e-4)
        weight[0] = 2e-4
    loss, _, _ = projected_smoothed_cross_entropy(features, weight, target * 0 + 3, is_token | True, 0.0)
    (loss * 2.0**15).backward()
    exact = [x.detach().double().requires_grad_() for x in (features, weight)]
    (plain(*exact, target * 0 + 3, is_token | True, 0.0)[0] * 2.0**15).backward()
    assert exact[0].grad.abs().max() < 2.0**15 * 6e-6
    torch.testing.assert_close(features.grad.double(), exact[0].grad, rtol=0.01, atol=0)


def test_autocast_multiplies_in_bfloat16_and_sums_in_float32() -> None:
    features, weight, target, is_token = inputs(30, d=16, v=200, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, _, _ = projected_smoothed_cross_entropy(features, weight, target, is_token, 0.1)
    loss.backward()
    rounded = [x.detach().bfloat16().double().requires_grad_() for x in (features, weight)]
    expected, _ = plain(*rounded, target, is_token, 0.1)
    expected.backward()
    torch.testing.assert_close(loss.double(), expected, rtol=2e-3, atol=0)
    assert features.grad.dtype == weight.grad.dtype == torch.float32
    for mine, theirs in zip((features, weight), rounded):
        torch.testing.assert_close(mine.grad.double(), theirs.grad, rtol=0.05, atol=0.02)
