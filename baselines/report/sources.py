"""What there is to report: run folders, comparison folders, files of rollouts.

Layouts are those of ``baselines.runs``. A run that is still going on counts too: without a result
row, and with a last line of its files that may be cut off.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from baselines.episodes import NEEDED, Line, read_lines
from milegpo_algo import RolloutError, Rollouts
from milegpo_envs.reports import Report

_STORED = re.compile(r"iteration-(\d+)\.(?:jsonl|parquet)")
_ASIDE = re.compile(r"earlier-\d+|checkpoint-\d+|model|\..*")
_RUN_FILES = ("result.json", "metrics.jsonl", "evaluations.jsonl")
_TABLES = ("table.md", "statistics.md")


class NothingToReport(ValueError):
    """What was named holds nothing that a report shows, or cannot be read; says the remedy."""


@dataclass(frozen=True)
class Stored:
    """The rollouts of one iteration: the file, and the iteration's number."""

    path: Path
    iteration: int


@dataclass(frozen=True)
class Run:
    """One run folder, or one file of rollouts.

    row: the result row, None where it is not finished. metrics, evaluations: a line an iteration.
    stored: its files of rollouts, by iteration. notes: what could not be read.
    """

    name: str
    row: Line | None
    metrics: Sequence[Line]
    evaluations: Sequence[Line]
    stored: Sequence[Stored]
    notes: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        """What trained it, as far as known."""
        if self.row is None:
            return self.name
        agent = self.row.get("agent")
        kind = agent.get("kind") if isinstance(agent, Mapping) else None
        return str(self.row.get("method") or self.row.get("estimator") or kind or "warm start")

    @property
    def place(self) -> tuple[str, str]:
        """Environment and panel of its result; empty where it is not finished."""
        if self.row is None:
            return "", ""
        panel = self.row.get("panel") or {}
        return str(self.row.get("env_id", "")), f"{panel.get('name', '')} {panel.get('hash', '')}"


@dataclass(frozen=True)
class Sources:
    """All that was found, in a fixed order; tables are those that ``scripts.compare`` wrote."""

    runs: Sequence[Run]
    tables: Sequence[Report]


def find(paths: Sequence[Path]) -> Sources:
    """Find runs at and below the given folders, and read them.

    Raises:
        NothingToReport: a path does not exist, holds nothing to report, or a file is damaged.
    """
    runs: list[Run] = []
    tables: list[Report] = []
    for path in dict.fromkeys(p.absolute() for p in paths):
        found = [_file(path)] if path.is_file() else [_run(f, path) for f in _folders(path)]
        if not found:
            raise NothingToReport(_remedy(path))
        runs += found
        if path.is_dir():
            files = [f for name in _TABLES for f in _below(path, name)]
            tables += [table for f in files for table in _tables(f, path)]
    return Sources(runs, tables)


def rollouts_of(stored: Stored, penalise: str = "format") -> tuple[Rollouts, list[Line]]:
    """Read the rollouts of an iteration, and its episodes where the file holds them.

    Args:
        stored: the file.
        penalise: which fault makes a row invalid, as in ``rollout.episode.to_records``.

    Raises:
        NothingToReport: the file holds no steps, or cannot be read.
    """
    try:
        if stored.path.suffix == ".parquet":
            return Rollouts.from_parquet(stored.path), []
        episodes, _ = read_lines(stored.path, NEEDED)
        records = list(_records(episodes, penalise))
        if not records:
            raise NothingToReport(
                f"{stored.path} holds no whole episode. If its run goes on, try again later; "
                "otherwise name another file or leave this one out with --iterations."
            )
        return Rollouts.from_steps(records), [e for e in episodes if e["steps"]]
    except (RolloutError, KeyError, TypeError, ValueError, OSError) as error:
        if isinstance(error, NothingToReport):
            raise
        raise NothingToReport(
            f"{stored.path} cannot be read as rollouts: {error!s}. Expected is what "
            "scripts.train --trajectory_steps, scripts.evaluate --trajectories or "
            "Rollouts.to_parquet write."
        ) from error


def _records(episodes: Sequence[Line], penalise: str) -> Iterator[dict[str, object]]:
    for episode in episodes:
        for at, step in enumerate(episode["steps"]):
            well_formed = bool(step["format_valid"]) or penalise == "admissible"
            admissible = bool(step["action_valid"]) or penalise == "format"
            yield {
                "task_id": episode["task_id"],
                "trajectory_id": episode["trajectory_id"],
                "step": at,
                "state": step["state_id"],
                "action": step["action"],
                "next_state": step["next_state_id"],
                "reward": step["reward"],
                "valid": well_formed and admissible,
                "success": episode["success"],
            }


def _folders(root: Path) -> Iterator[Path]:
    """Yield the run folders at or below a folder, sorted."""
    if not root.is_dir():
        return
    inside = {p.parent for name in _RUN_FILES for p in _below(root, name)}
    inside |= {
        p.parent
        for end in ("jsonl", "parquet")
        for p in _below(root, f"*.{end}")
        if _STORED.fullmatch(p.name) or p.suffix == ".parquet"
    }
    for folder in sorted(inside):
        yield folder.parent if folder.name in ("trajectories", "rollouts") else folder


def _below(root: Path, pattern: str) -> list[Path]:
    return sorted(
        p
        for p in root.rglob(pattern)
        if not any(_ASIDE.fullmatch(part) for part in p.relative_to(root).parts[:-1])
    )


def _run(folder: Path, root: Path) -> Run:
    inner = folder.relative_to(root)
    row = _row(folder / "result.json")
    metrics, cut = _series(folder / "metrics.jsonl")
    evaluations, also_cut = _series(folder / "evaluations.jsonl")
    stored = sorted(
        (
            Stored(path, _number(path))
            for place in (folder, folder / "trajectories", folder / "rollouts")
            if place.is_dir()
            for path in sorted(place.iterdir())
            if _STORED.fullmatch(path.name) or path.suffix == ".parquet"
        ),
        key=lambda s: (s.iteration, s.path),
    )
    notes = ["a last line that is cut off was left out"] if cut or also_cut else []
    if row is None and (metrics or evaluations):
        notes.append("not finished: no result.json")
    name = root.name if inner == Path() else f"{root.name}/{inner.as_posix()}"
    return Run(name, row, metrics, evaluations, stored, tuple(notes))


def _file(path: Path) -> Run:
    if path.suffix not in (".jsonl", ".parquet"):
        raise NothingToReport(_remedy(path))
    return Run(path.stem, None, (), (), (Stored(path, _number(path)),))


def _number(path: Path) -> int:
    found = _STORED.fullmatch(path.name)
    return int(found[1]) if found else 0


def _row(path: Path) -> Line | None:
    if not path.is_file():
        return None
    try:
        row = json.loads(path.read_bytes())
    except ValueError as error:
        raise NothingToReport(f"{path} is not JSON: {error}. Move it away.") from error
    if not isinstance(row, dict) or "success" not in row:
        raise NothingToReport(f"{path} is not a result row: it has no success. Move it away.")
    return row


def _series(path: Path) -> tuple[list[Line], bool]:
    if not path.is_file():
        return [], False
    try:
        return read_lines(path, {"iteration"})
    except ValueError as error:
        raise NothingToReport(str(error)) from error


def _tables(path: Path, root: Path) -> Iterator[Report]:
    """Yield the tables of a Markdown file of a comparison, each with the notes that follow it."""
    inner = path.relative_to(root).with_suffix("").as_posix()
    title, lines, notes = f"{root.name}: {inner}", list[str](), list[str]()
    for line in [*path.read_text(encoding="utf-8").splitlines(), "#"]:
        begins = line.startswith("|") and bool(notes)
        if (line.startswith("#") or begins) and lines:
            yield _markdown(title, lines, notes)
            lines, notes = [], []
        if line.startswith("#"):
            title = f"{root.name}: {line.lstrip('# ')}"
        elif line.startswith("|"):
            lines.append(line)
        elif line.strip():
            notes.append(line.removeprefix("- "))


def _markdown(title: str, lines: Sequence[str], notes: Sequence[str]) -> Report:
    head, _, *body = ([c.strip() for c in line.strip().strip("|").split("|")] for line in lines)
    return Report(title, tuple(head), tuple(map(tuple, body)), tuple(notes))


def _remedy(path: Path) -> str:
    what = "does not exist" if not path.exists() else "holds no run"
    return (
        f"{path} {what}. Name an output folder of scripts.train or scripts.compare (it has "
        "metrics.jsonl, result.json or iteration-*.jsonl), or a .jsonl or .parquet file of "
        "rollouts."
    )
