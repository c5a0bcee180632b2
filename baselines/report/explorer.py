"""One task's rollout graph as data for the page: nodes, edges, steps, and every number explained.

All of it is JSON: numbers rounded to 9 digits, null for what does not exist, "inf" for a distance
without a path.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from baselines.episodes import Line
from baselines.report.layout import lay_out
from baselines.report.replayed import Mismatch, Seen, Stage, Walk
from milegpo_algo import GOAL, GOAL_NAME, Rollouts, StepEstimator
from milegpo_algo.breakdown import breakdown
from milegpo_algo.data import FloatArray
from milegpo_algo.estimators.milegpo import MileGPO
from milegpo_algo.explain import BranchReport, Explanation, StateReport, explain

TEXT_LIMIT = 6000
Json = dict[str, Any]  # any: what the page's scripts read


@dataclass(frozen=True)
class Lens:
    """An estimator under a name of the page's list; own: with the settings of the run itself."""

    name: str
    estimator: StepEstimator
    own: bool = False


def task_graph(
    rollouts: Rollouts,
    episodes: Sequence[Line],
    task: str,
    lenses: Sequence[Lens],
    milestones: MileGPO,
    stage: Stage,
) -> Json:
    """Assemble the graph of a task.

    Args:
        rollouts: of an iteration.
        episodes: the same as read from its file, empty if it holds none.
        task: which of its tasks.
        lenses: estimators to switch between.
        milestones: whose milestones and traps are marked, unless the estimator chosen has its own.
        stage: where actions are played again.
    """
    at = rollouts.tasks.index(task)
    _, part = rollouts.slice_tasks(at, at + 1)
    own = [e for e in episodes if e["task_id"] == task]
    steps = _recorded(own, part)
    seen, note = _played(part, task, stage)
    shown = {"": milestones, **{n.name: n.estimator for n in lenses}}
    marks = {n: _explained(part, task, e) for n, e in shown.items() if isinstance(e, MileGPO)}
    plain = marks[""]
    names = [state.state for state in plain.states]
    index = {name: v for v, name in enumerate(names)}
    pairs = [(index[b.state], index[b.next_state]) for b in plain.branches]
    edge = {pair: e for e, pair in enumerate(pairs)}
    step_edges = [edge[index[s.state], index[s.next_state]] for s in plain.steps]
    starts = sorted({index[plain.steps[r].state] for r in part.start[:-1].tolist()})
    layout = lay_out([s.goal_distance for s in plain.states], pairs, starts)
    return {
        "task": task,
        "note": note or _against_truth(plain.states, seen),
        "successShare": _number(plain.success_share),
        "starts": starts,
        "headings": [[h.text, h.x, h.y] for h in layout.headings],
        "nodes": [
            _node(s, place, seen.get(s.state), steps)
            for s, place in zip(plain.states, layout.places, strict=True)
        ],
        "edges": [[a, b] for a, b in pairs],
        "trajectories": _trajectories(part, own),
        "steps": [
            {**_step(part, r, recorded), "edge": step_edges[r]} for r, recorded in enumerate(steps)
        ],
        "estimators": [
            *(_lens(lens, part) for lens in lenses if lens.own),
            *_as_recorded(steps),
            *(_lens(lens, part) for lens in lenses if not lens.own),
        ],
        "marks": {n: _marks(found) for n, found in marks.items()},
    }


def _explained(part: Rollouts, task: str, estimator: MileGPO) -> Explanation:
    settings: dict[str, Any] = {**estimator.settings()}
    name = settings.pop("estimator")
    return explain(part, name, task=task, **settings)


def _recorded(episodes: Sequence[Line], part: Rollouts) -> list[Line | None]:
    """The stored record of each row of `part`, None where there is none."""
    found = {str(e["trajectory_id"]): e["steps"] for e in episodes}
    return [
        found[name][step] if name in found and step < len(found[name]) else None
        for name, step in zip(
            (str(part.trajectory_ids[i]) for i in part.trajectory), part.step.tolist(), strict=True
        )
    ]


def _played(part: Rollouts, task: str, stage: Stage) -> tuple[dict[str, Seen], str]:
    walks = []
    for begin, end in zip(part.start[:-1].tolist(), part.start[1:].tolist(), strict=True):
        actions = [part.actions[a] for a in part.action[begin:end].tolist()]
        states = [part.states[s] for s in part.state[begin:end].tolist()]
        after = int(part.next_state[end - 1])
        walks.append(Walk(actions, states if after == GOAL else [*states, part.states[after]]))
    try:
        return stage.play(task, walks), ""
    except Mismatch as problem:
        return (
            {},
            f"Observations are those of the prompts; not played again: {str(problem).rstrip('.')}.",
        )


def _node(
    state: StateReport, place: tuple[float, float], seen: Seen | None, steps: Sequence[Line | None]
) -> Json:
    node: Json = {
        "id": state.state,
        "goal": state.state == GOAL_NAME,
        "x": _number(place[0]),
        "y": _number(place[1]),
        "distance": _number(state.goal_distance),
        "trajectories": state.trajectories,
        "successes": state.successes,
        "visits": state.visits,
    }
    if seen is not None:
        node |= {
            "text": _cut(seen.observation),
            "state": _cut(seen.state),
            "admissible": [_cut(a, 200) for a in seen.admissible],
        }
        if seen.truth is not None:
            node |= {
                "lost": seen.truth.lost,
                "trueDistance": seen.truth.distance,
                "facts": dict(seen.truth.values),
            }
        return node
    prompts = (s["prompt"] for s in steps if s is not None and s["state_id"] == state.state)
    return {**node, "prompt": _cut(str(next(prompts, "")))}


def _against_truth(states: Sequence[StateReport], seen: Mapping[str, Seen]) -> str:
    """Hold the graph's distances against the environment's own; empty where it tells none."""
    known = [
        (state.goal_distance, seen[state.state].truth) for state in states if state.state in seen
    ]
    truths = [(found, truth) for found, truth in known if truth is not None]
    if not truths:
        return ""
    excess = [d - t.distance for d, t in truths if math.isfinite(d) and t.distance is not None]
    exact = sum(e == 0 for e in excess)
    lost = sum(t.lost for _, t in truths)
    blind = sum(not math.isfinite(d) and not t.lost for d, t in truths)
    mean = f", {sum(excess) / len(excess):.2f} too far on average" if excess else ""
    return (
        f"Against the true distances: exact in {exact} of {len(excess)} states with a path{mean}; "
        f"{lost} of {len(truths)} states are lost for certain, {blind} have no path here although "
        "they can be won."
    )


def _trajectories(part: Rollouts, episodes: Sequence[Line]) -> list[Json]:
    stops = {str(e["trajectory_id"]): e.get("stop") for e in episodes}
    return [
        {
            "id": str(name),
            "success": bool(part.trajectory_success[i]),
            "stop": stops.get(str(name)),
            "begin": int(part.start[i]),
            "end": int(part.start[i + 1]),
        }
        for i, name in enumerate(part.trajectory_ids)
    ]


def _step(part: Rollouts, row: int, recorded: Line | None) -> Json:
    step: Json = {
        "trajectory": int(part.trajectory[row]),
        "step": int(part.step[row]),
        "action": _cut(part.actions[part.action[row]], 400),
        "reward": _number(float(part.reward[row])),
        "valid": bool(part.valid[row]),
    }
    if recorded is None:
        return step
    faults = [recorded.get(k) for k in ("format_problem", "invalid_reason")]
    value = recorded.get("value")
    return {
        **step,
        "reply": _cut(str(recorded.get("reply", "")), 2000),
        "faults": [str(f) for f in faults if f],
        **({"value": _number(float(value))} if isinstance(value, (int, float)) else {}),
    }


def _as_recorded(steps: Sequence[Line | None]) -> list[Json]:
    """The advantages that the policy was trained with, where every step has one."""
    values = [s.get("advantage") if s is not None else None for s in steps]
    if not values or not all(isinstance(v, (int, float)) for v in values):
        return []
    numbers = [_number(float(v)) for v in values if v is not None]
    name = "as recorded in training"
    return [{"name": name, "formula": "", "settings": {}, "values": numbers, "terms": []}]


def _lens(lens: Lens, part: Rollouts) -> Json:
    terms = breakdown(lens.estimator, part)
    total = np.sum([t.values for t in terms if t.part], axis=0)
    return {
        "name": lens.name,
        "formula": (type(lens.estimator).__doc__ or "").split("\n\n")[0].strip(),
        "settings": lens.estimator.settings(),
        "values": _numbers(total),
        "terms": [
            {"name": t.name, "formula": t.formula, "part": t.part, "values": _numbers(t.values)}
            for t in terms
        ],
    }


def _marks(found: Explanation) -> Json:
    """Milestones, traps and branches, by place in `nodes` and `edges`."""
    return {
        "nodes": [_plain(asdict(s), ("state",)) for s in found.states],
        "edges": [_branch(b) for b in found.branches],
    }


def _branch(branch: BranchReport) -> Json:
    return _plain(asdict(branch), ("state", "next_state"))


def _plain(values: Mapping[str, Any], without: Sequence[str]) -> Json:
    return {
        k: _number(v) if isinstance(v, float) else v for k, v in values.items() if k not in without
    }


def _numbers(values: FloatArray) -> list[float | str | None]:
    return [_number(v) for v in values.tolist()]


def _number(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return float(f"{value:.9g}") + 0.0


def _cut(text: str, limit: int = TEXT_LIMIT) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[{len(text) - limit:,} more characters are left out]"
