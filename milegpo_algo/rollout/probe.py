"""Does an engine see the weights that are trained? Disturb some, look, put them back, look again.

An engine that keeps old weights, or a base model without its adapter, samples plausible text and
trains to nothing. This finds it before the first iteration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

from milegpo_algo.rollout.generator import Generator, Sample

_NOISE = 0.1  # of a disturbed weight; large, so that it shows in bfloat16
_VISIBLE = 1e-3  # nats


class EngineStale(RuntimeError):
    """The engine's replies do not follow the weights that are trained."""


def probe(generator: Generator, prompts: Sequence[Sequence[int]]) -> list[Sample]:
    """Replies to some prompts, named alike each time; one greedy token each is enough."""
    return generator.generate(prompts, range(len(prompts)))


def check_follows(
    look: Callable[[], Sequence[Sample]], parameters: Sequence[torch.nn.Parameter]
) -> None:
    """Assert that an engine's replies change with the parameters, and change back.

    Args:
        look: sends the weights to the engine and returns its replies to fixed prompts, greedy, with
            log-probs; see `probe`.
        parameters: what is disturbed; see `last_trainable`.

    Raises:
        EngineStale: saying which of the two failed.
    """
    before = look()
    with _disturbed(parameters):
        during = look()
    after = look()
    noise, moved = _distance(before, after), _distance(before, during)
    if moved < _VISIBLE:
        raise EngineStale(
            "The engine's log-probs did not change when trained weights did: it does not receive "
            "them, or not the adapter. Check that server and trainer run the same model, and that "
            "the server was started for weight transfer."
        )
    if math.isinf(noise) or noise > 0.25 * moved:
        raise EngineStale(
            f"Weights were put back, but the engine's log-probs differ by {noise:.3g} from before "
            f"(disturbed: {moved:.3g}): it lags behind by one update, or another run writes to it."
        )


def last_trainable(model: torch.nn.Module, most: int = 20_000_000) -> list[torch.nn.Parameter]:
    """The last trainable parameters of a model, at least one, up to a number of elements.

    With an adapter these are both factors of its last layers: one of the two is zero at the start,
    so disturbing the other would show nothing.
    """
    chosen: list[torch.nn.Parameter] = []
    total = 0
    for parameter in reversed([p for p in model.parameters() if p.requires_grad]):
        total += parameter.numel()
        if chosen and total > most:
            break
        chosen.append(parameter)
    if not chosen:
        raise ValueError("The model has no trainable parameter.")
    return chosen


@contextmanager
@torch.no_grad()
def _disturbed(parameters: Sequence[torch.nn.Parameter]) -> Iterator[None]:
    """Add noise, the same in every process; afterwards every bit is as it was."""
    kept = [parameter.detach().clone() for parameter in parameters]
    random = torch.Generator().manual_seed(0)
    try:
        for parameter in parameters:
            noise = torch.randn(parameter.shape, generator=random) * _NOISE
            parameter.add_(noise.to(parameter.device, parameter.dtype))
        yield
    finally:
        for parameter, value in zip(parameters, kept, strict=True):
            parameter.copy_(value)


def _distance(one: Sequence[Sample], other: Sequence[Sample]) -> float:
    """Largest difference of log-probs, in nats; infinite where the tokens differ."""
    worst = 0.0
    for a, b in zip(one, other, strict=True):
        if a.logprobs is None or b.logprobs is None:
            raise EngineStale("The engine returns no log-probs, so its weights cannot be checked.")
        if a.token_ids != b.token_ids:
            return math.inf
        pairs = zip(a.logprobs, b.logprobs, strict=True)
        worst = max(worst, *(abs(x - y) for x, y in pairs))
    return worst
