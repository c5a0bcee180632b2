"""Play a panel with a model: every task exactly once per seed.

A reply's randomness is named by (seed, task, step) alone, so scores do not depend on the batch
size, the pool or the order of the tasks, up to the last bits of the logits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, pstdev

import numpy as np

from baselines.estimates import interval
from milegpo_algo.rollout.collect import Episode, Pool, assign, check_some_ran, play_policy
from milegpo_algo.rollout.generator import Codec, Generator
from milegpo_algo.rollout.policy import Policy, TokenPolicy
from milegpo_envs.panels import Panel

OnEpisodes = Callable[[int, Sequence[Episode]], None]
"""Called with a seed and the episodes that were played with it."""


@dataclass(frozen=True)
class Played:
    """One episode of an evaluation.

    success is the environment's own criterion; stop says why the episode ended ("success",
    "failure", "horizon", "context", "error"). The rates are over the episode's steps, the tokens
    and the cost (of a paid model) are sums over them.
    """

    task_id: str
    task_type: str
    seed: int
    success: bool
    score: float
    steps: int
    stop: str
    format_valid: float
    action_valid: float
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0


def check_seeds(seeds: Sequence[int]) -> None:
    """Refuse seeds that would count episodes twice, or none.

    Raises:
        ValueError: there is no seed, or one is there twice.
    """
    if not seeds or len(set(seeds)) < len(seeds):
        listed = " ".join(map(str, seeds))
        raise ValueError(f"eval_seeds: give one seed or more, each once, not '{listed}'.")


def evaluate(
    pool: Pool,
    generator: Generator,
    codec: Codec,
    panel: Panel,
    *,
    seeds: Sequence[int],
    max_prompt_tokens: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Played]:
    """Play the panel with a model that samples token ids; see ``evaluate_policy``.

    Args:
        pool: environments of the panel's split.
        generator: the policy; its temperature is the caller's choice.
        codec: the policy's tokenizer and chat template.
        panel: tasks to play.
        seeds: of the replies.
        max_prompt_tokens: see ``milegpo_algo.rollout.policy.TokenPolicy``.
        on_progress: called with (finished, total) episodes over all seeds.
    """
    policy = TokenPolicy(generator, codec, max_prompt_tokens)
    return evaluate_policy(pool, policy, panel, seeds=seeds, on_progress=on_progress)


def evaluate_policy(
    pool: Pool,
    policy: Policy,
    panel: Panel,
    *,
    seeds: Sequence[int],
    on_progress: Callable[[int, int], None] | None = None,
    on_episodes: OnEpisodes | None = None,
) -> list[Played]:
    """Play the panel once per seed.

    Args:
        pool: environments of the panel's split.
        policy: a local model or a chat endpoint; its temperature is the caller's choice.
        panel: tasks to play.
        seeds: of the replies.
        on_progress: called with (finished, total) episodes over all seeds.
        on_episodes: called with each seed and its episodes.

    Returns:
        Episodes seed by seed, in the order of the panel.

    Raises:
        RolloutFailed: every environment failed.
    """
    played: list[Played] = []
    total = len(seeds) * len(panel.task_ids)
    for number, seed in enumerate(seeds):
        before = number * len(panel.task_ids)

        def report(finished: int, _: int, before: int = before) -> None:
            if on_progress is not None:
                on_progress(before + finished, total)

        episodes = play_policy(
            pool, policy, assign(panel.task_ids, 1), seed=seed, on_progress=report
        )
        check_some_ran(episodes)
        if on_episodes is not None:
            on_episodes(seed, episodes)
        played += [played_of(episode, seed) for episode in episodes]
    return played


def summary(played: Sequence[Played]) -> dict[str, object]:
    """Return the part of a result row that describes an evaluation, ready for JSON.

    Deviations are population standard deviations over the evaluation seeds, as the papers report
    them. The interval's runs are the evaluation seeds too; see ``estimates``.
    """
    kinds = sorted({episode.task_type for episode in played} - {""})
    own = {kind: [e for e in played if e.task_type == kind] for kind in kinds}
    return {
        **_means(played),
        "success_by_seed": {str(s): fmean(e.success for e in e_) for s, e_ in _by_seed(played)},
        "success_interval": _interval(played),
        "success_by": {kind: fmean(e.success for e in own[kind]) for kind in kinds},
        "by_type": {kind: {"episodes": len(own[kind]), **_means(own[kind])} for kind in kinds},
        "stops": {
            stop: sum(e.stop == stop for e in played) for stop in sorted({e.stop for e in played})
        },
        "episodes": [asdict(episode) for episode in played],
    }


def _means(played: Sequence[Played]) -> dict[str, float]:
    seeds = [own for _, own in _by_seed(played)]
    return {
        "success": fmean(episode.success for episode in played),
        "success_std": pstdev(fmean(e.success for e in own) for own in seeds),
        "score": fmean(episode.score for episode in played),
        "score_std": pstdev(fmean(e.score for e in own) for own in seeds),
        "steps": fmean(episode.steps for episode in played),
        "format_valid": fmean(episode.format_valid for episode in played),
        "action_valid": fmean(episode.action_valid for episode in played),
    }


def _by_seed(played: Sequence[Played]) -> list[tuple[int, list[Played]]]:
    seeds = sorted({episode.seed for episode in played})
    return [(seed, [e for e in played if e.seed == seed]) for seed in seeds]


def _interval(played: Sequence[Played]) -> list[float] | None:
    rows = [
        [float(e.success) for e in sorted(own, key=lambda e: e.task_id)]
        for _, own in _by_seed(played)
    ]
    found = interval(np.array(rows))
    return None if found is None else list(found)


def played_of(episode: Episode, seed: int) -> Played:
    """Return what is counted of an episode."""
    steps = episode.steps
    return Played(
        task_id=episode.task_id,
        task_type=str(episode.extras.get("task_type", "")),
        seed=seed,
        success=episode.success,
        score=episode.score,
        steps=len(steps),
        stop=episode.stop,
        format_valid=fmean(s.format_valid for s in steps) if steps else 0.0,
        action_valid=fmean(s.action_valid for s in steps) if steps else 0.0,
        prompt_tokens=sum(s.prompt_tokens for s in steps),
        completion_tokens=sum(s.completion_tokens for s in steps),
        cost=sum(s.usage.cost for s in steps if s.usage is not None),
    )
