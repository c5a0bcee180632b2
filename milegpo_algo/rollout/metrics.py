"""Figures of a batch of episodes, seconds by phase, and a file with one line an iteration."""

from __future__ import annotations

import json
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from milegpo_algo.rollout.collect import STOPS, Episode, Info, Pool
from milegpo_algo.rollout.generator import Codec, Generator, Image, Messages, Sample


def episode_metrics(episodes: Sequence[Episode]) -> dict[str, float]:
    """Rates and means of a batch of episodes; rates of steps are left out when there is no step.

    `degenerate_groups` is the share of tasks with equal returns in all their rollouts: they carry
    no episode-level signal. `success/<type>` is the success rate of a task type, `stop/<stop>` the
    share of episodes that ended so, `format/<problem>` and `invalid/<reason>` the share of steps
    with that fault.
    """
    steps = [step for episode in episodes for step in episode.steps]
    stops = Counter(episode.stop for episode in episodes)
    returns = defaultdict(set)
    for episode in episodes:
        returns[episode.task_id].add(sum(step.reward for step in episode.steps))
    metrics = {
        "success": fmean(episode.success for episode in episodes),
        "score": fmean(episode.score for episode in episodes),
        "return": fmean(sum(step.reward for step in episode.steps) for episode in episodes),
        "episode_length": fmean(len(episode.steps) for episode in episodes),
        "episodes": len(episodes),
        "rows": len(steps),
        "degenerate_groups": fmean(len(values) == 1 for values in returns.values()),
        **{f"stop/{stop}": stops[stop] / len(episodes) for stop in STOPS},
        **{f"success/{kind}": rate for kind, rate in success_by(episodes, "task_type").items()},
    }
    if steps:
        metrics |= {
            "format_valid": fmean(step.format_valid for step in steps),
            "action_valid": fmean(step.action_valid for step in steps),
            "prompt_tokens": fmean(step.prompt_tokens for step in steps),
            "prompt_tokens_max": max(step.prompt_tokens for step in steps),
            "completion_tokens": fmean(step.completion_tokens for step in steps),
            "completion_tokens_max": max(step.completion_tokens for step in steps),
            "cut_replies": fmean(step.finish_reason == "length" for step in steps),
            **_shares("format", [step.format_problem for step in steps]),
            **_shares("invalid", [step.invalid_reason for step in steps]),
        }
    return metrics


def tie_rate(episodes: Sequence[Episode], advantages: Sequence[float]) -> float | None:
    """Share of ties among pairs of different actions out of one state of a task; None of no pairs.

    Two steps tie where their advantages are equal to six decimals: credit that cannot tell two
    choices apart teaches nothing about them.

    Args:
        episodes: of an iteration.
        advantages: one a step, in the order of episodes and steps.
    """
    steps = [(e.task_id, step) for e in episodes for step in e.steps]
    moves: Counter[tuple[object, ...]] = Counter()
    by_state: Counter[tuple[object, ...]] = Counter()
    by_value: Counter[tuple[object, ...]] = Counter()
    both: Counter[tuple[object, ...]] = Counter()
    for (task_id, step), advantage in zip(steps, advantages, strict=True):
        place, value = (task_id, step.state_id), round(float(advantage), 6)
        by_state[place] += 1
        moves[(*place, step.action)] += 1
        by_value[(*place, value)] += 1
        both[(*place, value, step.action)] += 1
    pairs = _pairs(by_state) - _pairs(moves)
    return (_pairs(by_value) - _pairs(both)) / pairs if pairs else None


def _pairs(counts: Counter[tuple[object, ...]]) -> int:
    return sum(n * (n - 1) // 2 for n in counts.values())


def _shares(name: str, faults: Sequence[str | None]) -> dict[str, float]:
    counts = Counter(fault for fault in faults if fault is not None)
    return {f"{name}/{fault}": counts[fault] / len(faults) for fault in sorted(counts)}


def success_by(episodes: Sequence[Episode], extra: str) -> dict[str, float]:
    """Success rate for each value of an extra, such as "task_type", among episodes that have it."""
    groups = defaultdict(list)
    for episode in episodes:
        if extra in episode.extras:
            groups[str(episode.extras[extra])].append(episode.success)
    return {name: fmean(group) for name, group in sorted(groups.items())}


@dataclass
class Stopwatch:
    """Seconds by phase."""

    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the block to a phase."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - start


@dataclass(frozen=True)
class TimedPool:
    """A pool whose time counts as "environment"."""

    pool: Pool
    watch: Stopwatch

    def __len__(self) -> int:
        """How many episodes can run at once."""
        return len(self.pool)

    def reset(self, task_ids: Sequence[str]) -> Sequence[tuple[Messages, Info]]:
        """See `Pool.reset`."""
        with self.watch.phase("environment"):
            return self.pool.reset(task_ids)

    def step(
        self, actions: Mapping[int, str]
    ) -> Mapping[int, tuple[Messages, float, bool, bool, Info]]:
        """See `Pool.step`."""
        with self.watch.phase("environment"):
            return self.pool.step(actions)


@dataclass(frozen=True)
class TimedGenerator:
    """A generator whose time counts as "generation"."""

    generator: Generator
    watch: Stopwatch

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        keys: Sequence[int],
        images: Sequence[Sequence[Image]] = (),
    ) -> list[Sample]:
        """See `Generator.generate`."""
        with self.watch.phase("generation"):
            if images:
                return self.generator.generate(prompts, keys, images)
            return self.generator.generate(prompts, keys)


@dataclass(frozen=True)
class TimedCodec:
    """A codec whose time counts as "tokenising"."""

    codec: Codec
    watch: Stopwatch

    def encode(self, messages: Messages) -> list[int]:
        """See `Codec.encode`."""
        with self.watch.phase("tokenising"):
            return self.codec.encode(messages)

    def decode(self, token_ids: Sequence[int]) -> str:
        """See `Codec.decode`."""
        with self.watch.phase("tokenising"):
            return self.codec.decode(token_ids)


class MetricsFile:
    """JSON lines, one an iteration.

    Writing iteration i first drops what an earlier, killed attempt had written for i and after (and
    a line it broke off), so that the lines of a resumed run are those of an uninterrupted one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last: int | None = None  # unknown: the file may be from an earlier attempt

    def write(self, iteration: int, record: Mapping[str, object]) -> None:
        """Write the record of an iteration; a float that is not finite becomes null."""
        if self._last is None or self._last >= iteration:
            self._rewind(iteration)
        line = {"iteration": iteration, **{key: _finite(value) for key, value in record.items()}}
        with self.path.open("a") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")
        self._last = iteration

    def _rewind(self, iteration: int) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        kept = [line for line in lines if _iteration(line) < iteration]
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text("".join(f"{line}\n" for line in kept))
        temporary.replace(self.path)


def _iteration(line: str) -> float:
    try:
        return float(json.loads(line)["iteration"])
    except json.JSONDecodeError:  # broken off in the middle
        return math.inf


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
