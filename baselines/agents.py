"""Agents that play a panel without training: how they are set up, and how they are counted.

    direct      the papers' prompt, step by step
    react       worked examples and the whole episode with its thoughts in the prompt
    reflexion   react, tried again after failures with notes to oneself
    expert      the environment's scripted expert, which reads texts only
    random      uniformly random admissible actions

All of them take the same environments, panels and reply rule as policies under training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import gymnasium as gym

from baselines.demonstrations import expert_for, experts
from baselines.environments import Place
from baselines.evaluation import OnEpisodes, Played, evaluate_policy, played_of
from baselines.players import Advised, Echo
from baselines.react import Examples, ReAct, WorkedExample, worked_example
from baselines.reflexion import Memory, Trials, reflexion
from milegpo_algo.rollout.collect import Episode, Pool, check_some_ran, play_policy
from milegpo_algo.rollout.generator import ChatGenerator, Messages, sampling_key
from milegpo_algo.rollout.policy import Policy
from milegpo_envs.panels import Panel
from milegpo_envs.pool import EnvPool

Kind = Literal["direct", "react", "reflexion", "expert", "random"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SCRIPTED: tuple[Kind, ...] = ("expert", "random")
"""Those that need no model."""

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class Agent:
    """An agent and its settings.

    examples: worked examples of each kind of task, for react and reflexion.
    example_split: where they come from; never the split that is played.
    trials: of reflexion.
    """

    kind: Kind
    examples: int = 1
    example_split: str = "train"
    trials: int = 3

    def __post_init__(self) -> None:
        """Refuse unknown agents and impossible counts."""
        if self.kind not in KINDS:
            raise ValueError(f"Unknown agent {self.kind!r}. Valid: {', '.join(KINDS)}.")
        if self.examples < 0 or self.trials < 1:
            raise ValueError("examples counts from 0 and trials from 1.")


@dataclass(frozen=True)
class Outcome:
    """What an agent did on a panel.

    played: the last episode of every task and seed, seed by seed.
    success_by_trial: for reflexion, the share solved after each trial, over tasks and seeds.
    """

    played: tuple[Played, ...]
    success_by_trial: tuple[float, ...] = ()


def run_agent(
    agent: Agent,
    place: Place,
    split: str,
    panel: Panel,
    *,
    seeds: Sequence[int],
    slots: int,
    policy: Policy | None = None,
    chat: ChatGenerator | None = None,
    on_progress: OnProgress | None = None,
    on_episodes: OnEpisodes | None = None,
) -> Outcome:
    """Let an agent play a panel once per seed.

    Args:
        agent: who plays.
        place: environment, settings and prompts.
        split: of the panel.
        panel: the tasks.
        seeds: of the replies.
        slots: episodes at once; never moves a result.
        policy: the model as a player; needed unless the agent is scripted.
        chat: the same model as a writer of notes; needed by reflexion.
        on_progress: called with (finished, total) episodes; reflexion counts every trial as due.
        on_episodes: called with each seed and its last episodes.

    Raises:
        ValueError: the agent needs a model and has none, or its examples would come from the split
            that is played.
    """
    player = Echo() if agent.kind in SCRIPTED else policy
    if player is None:
        raise ValueError(f"The agent {agent.kind} needs a model.")
    examples: Examples = {}
    if agent.kind in ("react", "reflexion") and agent.examples:
        if agent.example_split == split:
            raise ValueError(f"Worked examples from {split}, which is played, would give it away.")
        examples = worked_examples(place, agent.example_split, agent.examples)
    size = min(slots, len(panel.task_ids))
    if agent.kind != "reflexion":
        make = partial(environment, agent, place, split, examples)
        pool = place.workers.pool(make, size)
        try:
            played = evaluate_policy(
                pool,
                player,
                panel,
                seeds=seeds,
                on_progress=on_progress,
                on_episodes=on_episodes,
            )
        finally:
            pool.close()
        return Outcome(tuple(played))
    if chat is None:
        raise ValueError("The agent reflexion needs a model that writes notes.")
    done = [
        _reflect(agent, place, split, panel, seed, size, player, chat, examples, report)
        for number, seed in enumerate(seeds)
        for report in [
            _shifted(on_progress, number, len(seeds), agent.trials * len(panel.task_ids))
        ]
    ]
    if on_episodes is not None:
        for seed, trials in zip(seeds, done, strict=True):
            on_episodes(seed, trials.last)
    return Outcome(
        tuple(
            played_of(episode, seed)
            for seed, trials in zip(seeds, done, strict=True)
            for episode in trials.last
        ),
        tuple(
            sum(trials.success_after(k) for trials in done) / len(done)
            for k in range(1, agent.trials + 1)
        ),
    )


def environment(
    agent: Agent,
    place: Place,
    split: str,
    examples: Examples | None = None,
    memory: Memory | None = None,
) -> gym.Env[Any, str]:  # Any: Gymnasium types chat messages by the wrapper's base
    """Make one environment as the agent sees it."""
    if agent.kind == "direct":
        return place.prompted(split)
    env = place.env(split)
    if agent.kind in SCRIPTED:
        expert = expert_for(place.env_id) if agent.kind == "expert" else None
        return Advised(env, expert, style=place.style)
    return ReAct(env, examples, memory or Memory(), style=place.style)


def worked_examples(place: Place, split: str, count: int) -> dict[str, list[WorkedExample]]:
    """Let the environment's expert solve the first tasks of a split: ``count`` of each kind.

    An environment without an expert has no examples. Tasks are tried in order, 20 for each example
    at most; a kind that the expert cannot solve keeps fewer. The registered horizon counts, not the
    experiment's.
    """
    if place.env_id not in experts():
        return {}
    env, expert = replace(place, horizon=None).env(split), expert_for(place.env_id)
    found: dict[str, list[WorkedExample]] = {}
    tried: dict[str, int] = {}
    for task_id in place.panel(split).task_ids[: 200 * count]:
        _, info = env.reset(options={"task": task_id})
        kind = str(info.get("task_type", ""))
        enough = len(found.get(kind, [])) >= count or tried.get(kind, 0) >= 20 * count
        if not enough:
            tried[kind] = tried.get(kind, 0) + 1
            example = worked_example(env, expert, task_id)
            if example is not None:
                found.setdefault(kind, []).append(example)
    env.close()
    return found


def _reflect(
    agent: Agent,
    place: Place,
    split: str,
    panel: Panel,
    seed: int,
    size: int,
    player: Policy,
    chat: ChatGenerator,
    examples: Examples,
    report: OnProgress,
) -> Trials:
    """Run Reflexion with one seed; its notes are named by the seed, the task and the trial."""
    memory = Memory()
    pool = EnvPool(lambda: environment(agent, place, split, examples, memory), size)

    def play(pool: Pool, tasks: Sequence[str], trial: int) -> list[Episode]:
        report(trial * len(panel.task_ids), 0)
        episodes = play_policy(pool, player, [(task, trial) for task in tasks], seed=seed)
        check_some_ran(episodes)
        return episodes

    def reflect(prompts: Sequence[Messages], tasks: Sequence[str], trial: int) -> list[str]:
        keys = [sampling_key(seed, 0, task, trial, -1) for task in tasks]
        return [reply.text for reply in chat.chat(prompts, keys)]

    try:
        trials = reflexion(pool, panel.task_ids, memory, play, reflect, trials=agent.trials)
    finally:
        pool.close()
    report(agent.trials * len(panel.task_ids), 0)
    return trials


def _shifted(on_progress: OnProgress | None, number: int, parts: int, size: int) -> OnProgress:
    """Progress of one of several equal parts as progress of all."""

    def report(done: int, _: int) -> None:
        if on_progress is not None:
            on_progress(number * size + done, parts * size)

    return report
