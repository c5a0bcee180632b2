"""Which rollout graphs a page takes: those asked for, in turn over the runs, up to a size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from baselines.judges import Judges, judges
from baselines.report.explorer import Lens, task_graph
from baselines.report.replayed import Stage
from baselines.report.sources import NothingToReport, Run, Sources, Stored, rollouts_of
from milegpo_algo import RolloutError, Rollouts, SettingError, StepEstimator, make_estimator
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


def collect(sources: Sources, wanted: Wanted) -> Collected:
    """Diagnose all stored rollouts, and assemble graphs until the page is full.

    Runs share the room; a run's latest iterations and tasks with both outcomes come first, and
    every run has at least one graph.

    Raises:
        NothingToReport: a file cannot be read, or no task or iteration of the wanted ones exists.
    """
    out = Collected()
    runs = [run for run in sources.runs if run.stored]
    tasks: set[str] = set()
    size, left = 0, 0
    for number, run in enumerate(runs):
        room = (wanted.max_bytes - size) / (len(runs) - number)
        spent, without = _add(run, wanted, room, out, tasks)
        size, left = size + spent, left + without
    if missing := sorted(set(wanted.tasks) - tasks):
        listed = ", ".join(sorted(tasks)[:8])
        raise NothingToReport(
            f"No rollouts of task {', '.join(missing)}. Some of the {len(tasks)} tasks there are: "
            f"{listed or 'none; choose other --iterations'}."
        )
    stored = {s.iteration for run in runs for s in run.stored}
    if missing_iterations := sorted(set(wanted.iterations) - stored):
        raise NothingToReport(
            f"No rollouts of iteration {', '.join(map(str, missing_iterations))}. There are: "
            f"{', '.join(map(str, sorted(stored))) or 'none'}."
        )
    if not wanted.iterations and any(len(run.stored) > 1 for run in runs):
        earlier = sorted({s.iteration for run in runs for s in run.stored[:-1]})
        out.notes.append(
            "The explorer has each run's last stored iteration; --iterations takes others "
            f"({', '.join(map(str, earlier))}). The diagnostics pool all of them."
        )
    if left:
        out.notes.append(
            f"{left} more task graphs are left out, as this page holds about "
            f"{wanted.max_bytes / 1e6:g} MB of them. Choose with --tasks and --iterations, or "
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


def _add(run: Run, wanted: Wanted, room: float, out: Collected, tasks: set[str]) -> tuple[int, int]:
    """Add a run's diagnosis and graphs; each file is read once.

    Returns:
        Characters that its graphs take, and how many graphs found no room.
    """
    asked, stage = _judges(run, wanted), Stage(run.row)
    lenses = _lenses(run, asked)
    spent, left = 0, 0
    for stored in reversed(run.stored):
        rollouts, episodes = rollouts_of(stored, _penalise(run))
        _diagnose(run, stored, rollouts, asked, out)
        last = stored is run.stored[-1]
        if stored.iteration not in wanted.iterations if wanted.iterations else not last:
            continue
        tasks.update(rollouts.tasks)
        for task in _chosen(rollouts, wanted):
            if spent and spent >= room:
                left += 1
                continue
            try:
                graph = task_graph(rollouts, episodes, task, lenses, asked.milegpo, stage)
            except RolloutError as error:
                out.notes.append(f"Task {task} of {run.name} is left out: {error}.")
                continue
            text = json.dumps(graph, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
            out.texts.append(text)
            out.graphs.append(_listed(run, stored, graph))
            spent += len(text)
    stage.close()
    return spent, left


def _diagnose(run: Run, stored: Stored, rollouts: Rollouts, asked: Judges, out: Collected) -> None:
    try:
        found = diagnose(
            rollouts, graphgpo=asked.graphgpo, milegpo=asked.milegpo, estimators=asked.others
        )
    except RolloutError as error:
        out.notes.append(f"{stored.path.name} of {run.name} is not diagnosed: {error}.")
        return
    known = out.diagnoses.get(run.name)
    out.diagnoses[run.name] = found if known is None else known + found


def _chosen(rollouts: Rollouts, wanted: Wanted) -> list[str]:
    """The tasks that were asked for, those with both outcomes first."""
    mixed = tasks_with_spread(rollouts)
    order = sorted(range(len(rollouts.tasks)), key=lambda t: (not mixed[t], t))
    names = [rollouts.tasks[t] for t in order]
    return [name for name in names if not wanted.tasks or name in wanted.tasks]


def _listed(run: Run, stored: Stored, graph: dict[str, Any]) -> dict[str, Any]:
    """What the page's lists show of a graph."""
    return {
        "run": run.name,
        "iteration": stored.iteration if stored.iteration else stored.path.stem,
        "task": graph["task"],
        "won": sum(t["success"] for t in graph["trajectories"]),
        "of": len(graph["trajectories"]),
        "states": len(graph["nodes"]),
    }


def _lenses(run: Run, asked: Judges) -> list[Lens]:
    """The run's own estimator first, with its own settings; then all others."""
    lenses = []
    settings = {**((run.row or {}).get("settings") or {})}
    if name := settings.pop("estimator", None):
        try:
            own = make_estimator(name, **settings)
            if isinstance(own, StepEstimator):
                lenses.append(Lens(f"{name}, as this run set it", own, own=True))
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
