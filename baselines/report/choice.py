"""Which rollout graphs a page takes: those asked for, in turn over the runs, up to a size."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from baselines.judges import Judges, judges
from baselines.report.explorer import Lens, task_graph
from baselines.report.replayed import Stage
from baselines.report.sources import NothingToReport, Run, Sources, Stored, rollouts_of
from milegpo_algo import RolloutError, SettingError, StepEstimator, make_estimator
from milegpo_algo.diagnostics import Diagnosis, diagnose
from milegpo_algo.estimator import RECIPES
from milegpo_algo.returns import tasks_with_spread

ORDER = ("grpo", "rloo", "gigpo", "hgpo", "graphgpo", "progpo", "milegpo")
STAGES = (("milegpo without PCC", "rcs"), ("milegpo without PCC and RCS", "md"))


@dataclass(frozen=True)
class Wanted:
    """What was asked for; empty means no choice. max_bytes: of all graphs together."""

    tasks: Sequence[str] = ()
    iterations: Sequence[int] = ()
    recipe: str | None = None
    max_bytes: int = 12_000_000


@dataclass
class Collected:
    """Graphs as JSON texts with what the page's lists need, diagnoses, and what is missing."""

    graphs: list[dict[str, Any]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    diagnoses: dict[str, Diagnosis] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Candidate:
    run: Run
    stored: Stored
    task: str


def collect(sources: Sources, wanted: Wanted) -> Collected:
    """Diagnose all stored rollouts, and assemble graphs until the page is full.

    Raises:
        NothingToReport: a file cannot be read, or no task or iteration of the wanted ones exists.
    """
    out = Collected()
    tasks: set[str] = set()
    queues = [list(_candidates(run, wanted, out, tasks)) for run in sources.runs if run.stored]
    if missing := sorted(set(wanted.tasks) - tasks):
        listed = ", ".join(sorted(tasks)[:8])
        raise NothingToReport(
            f"No rollouts of task {', '.join(missing)}. Some of the {len(tasks)} tasks there are: "
            f"{listed or 'none; choose other --iterations'}."
        )
    if not wanted.iterations and any(len(run.stored) > 1 for run in sources.runs):
        earlier = sorted({s.iteration for run in sources.runs for s in run.stored[:-1]})
        out.notes.append(
            "The explorer has each run's last stored iteration; --iterations takes others "
            f"({', '.join(map(str, earlier))}). The diagnostics pool all of them."
        )
    stages = {run.name: Stage(run.row) for run in sources.runs}
    size, left = 0, 0
    for candidate in (c for turn in zip_longest(*queues) for c in turn if c is not None):
        if size >= wanted.max_bytes:
            left += 1
            continue
        text = _graph(candidate, wanted, stages[candidate.run.name], out)
        size += len(text)
    for stage in stages.values():
        stage.close()
    if left:
        out.notes.append(
            f"{left} more task graphs are left out, as this page holds about "
            f"{wanted.max_bytes // 1_000_000} MB of them. Choose with --tasks and --iterations, or "
            "raise --max_mb."
        )
    return out


def recipe_of(run: Run, wanted: Wanted) -> str | None:
    """The recipe asked for, else the run's own, else the one named like its environment."""
    if wanted.recipe is not None:
        return wanted.recipe
    row = run.row or {}
    options = row.get("options") or row.get("config") or {}
    if options.get("recipe") in RECIPES:
        return str(options["recipe"])
    name = str(row.get("env_id", "")).removeprefix("milegpo/").split("-")[0].lower()
    return name if name in RECIPES else None


def _candidates(run: Run, wanted: Wanted, out: Collected, tasks: set[str]) -> Iterator[_Candidate]:
    """Yield tasks, the latest iteration first, those with both outcomes first."""
    chosen = [s for s in run.stored if not wanted.iterations or s.iteration in wanted.iterations]
    asked = _judges(run, wanted)
    for stored in run.stored:
        rollouts, _ = rollouts_of(stored, _penalise(run))
        try:
            found = diagnose(
                rollouts,
                graphgpo=asked.graphgpo,
                milegpo=asked.milegpo,
                estimators=asked.others,
            )
        except RolloutError as error:
            out.notes.append(f"{stored.path.name} of {run.name} is not diagnosed: {error}.")
            continue
        known = out.diagnoses.get(run.name)
        out.diagnoses[run.name] = found if known is None else known + found
    for stored in reversed(chosen if wanted.iterations else chosen[-1:]):
        rollouts, _ = rollouts_of(stored, _penalise(run))
        tasks.update(rollouts.tasks)
        mixed = tasks_with_spread(rollouts)
        order = sorted(range(len(rollouts.tasks)), key=lambda t: (not mixed[t], t))
        for name in (rollouts.tasks[t] for t in order):
            if not wanted.tasks or name in wanted.tasks:
                yield _Candidate(run, stored, name)


def _graph(candidate: _Candidate, wanted: Wanted, stage: Stage, out: Collected) -> str:
    run, stored = candidate.run, candidate.stored
    rollouts, episodes = rollouts_of(stored, _penalise(run))
    asked = _judges(run, wanted)
    lenses = _lenses(run, asked)
    try:
        graph = task_graph(rollouts, episodes, candidate.task, lenses, asked.milegpo, stage)
    except RolloutError as error:
        out.notes.append(f"Task {candidate.task} of {run.name} is left out: {error}.")
        return ""
    text = json.dumps(graph, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    won = sum(t["success"] for t in graph["trajectories"])
    out.texts.append(text)
    out.graphs.append(
        {
            "run": run.name,
            "iteration": stored.iteration,
            "file": stored.path.name,
            "task": candidate.task,
            "won": won,
            "of": len(graph["trajectories"]),
            "states": len(graph["nodes"]),
        }
    )
    return text


def _lenses(run: Run, asked: Judges) -> list[Lens]:
    """The run's own estimator first, with its own settings; then all others."""
    lenses = []
    settings = {**((run.row or {}).get("settings") or {})}
    if name := settings.pop("estimator", None):
        try:
            own = make_estimator(name, **settings)
            if isinstance(own, StepEstimator):
                lenses.append(Lens(f"{name}, as this run set it", own))
        except (SettingError, ValueError):
            pass  # settings that are functions cannot be rebuilt; the recorded numbers are there
    names = sorted(asked.others, key=lambda n: (ORDER.index(n) if n in ORDER else len(ORDER), n))
    lenses += [Lens(name, asked.others[name]) for name in names]
    settings = {k: v for k, v in asked.milegpo.settings().items() if k != "estimator"}
    for title, value in STAGES:
        variant = make_estimator("milegpo", **{**settings, "stage": value})
        assert isinstance(variant, StepEstimator)
        lenses.append(Lens(title, variant))
    return lenses


def _judges(run: Run, wanted: Wanted) -> Judges:
    convention = str((run.row or {}).get("convention") or "paper")
    return judges(recipe_of(run, wanted), convention)


def _penalise(run: Run) -> str:
    options = (run.row or {}).get("options") or {}
    return str(options.get("penalise", "format"))
