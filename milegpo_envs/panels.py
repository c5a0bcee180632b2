"""Panels: fixed, named lists of tasks on which policies are trained and compared.

    named_panel("alfworld/valid_unseen", data="/data/alfworld")   # all 134 games of a folder
    named_panel("alfworld/valid_unseen:42")                       # 42 generated, 7 of each type
    named_panel("alfworld/valid_seen/pick_two_obj_and_place")     # one type

A panel is a pure function of the task ids of a split and of its size. Two results can be compared
if the hashes of their panels are equal. Names are those that environments declare in their module
`panels`; ":N" after a name, or `count`, takes a slice, balanced over the kinds of tasks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym

from milegpo_envs.errors import unknown_name
from milegpo_envs.parts import offering, part
from milegpo_envs.state import canonical_json


@dataclass(frozen=True)
class Coverage:
    """How many tasks of a split are there, of how many; None where nobody says how many."""

    have: int
    expected: int | None = None

    @property
    def complete(self) -> bool:
        """False if tasks are known to be missing."""
        return self.expected is None or self.have >= self.expected

    def __str__(self) -> str:
        return f"{self.have}" if self.expected is None else f"{self.have}/{self.expected}"


@dataclass(frozen=True)
class Panel:
    """A name and the tasks to play, in order, each once.

    source: where the tasks come from, such as "generated" or "official"; "" if the environment does
    not say. coverage: of the split that the panel was chosen from.
    """

    name: str
    task_ids: tuple[str, ...]
    source: str = ""
    coverage: Coverage | None = None

    def __post_init__(self) -> None:
        """Refuse an empty panel and repeated tasks."""
        if not self.task_ids:
            raise ValueError(f"Panel {self.name!r} has no tasks.")
        if len(set(self.task_ids)) < len(self.task_ids):
            raise ValueError(f"Panel {self.name!r} lists a task twice.")

    @property
    def hash(self) -> str:
        """16 hex digits, blake2b-64 of the ids in order; the name does not count."""
        ids = canonical_json(self.task_ids).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(ids, digest_size=8).hexdigest()

    @property
    def data(self) -> str:
        """The source and, unless tasks are made to order, how much of the split is there.

        For result rows and titles: "generated", "official 134/134", "official 132/134".
        """
        coverage = "" if self.coverage is None else str(self.coverage)
        return " ".join(part for part in (self.source, coverage) if part)

    def describe(self) -> dict[str, str | int]:
        """Return what a result row says of its panel."""
        return {"name": self.name, "hash": self.hash, "size": len(self.task_ids)}


@runtime_checkable
class HasTasks(Protocol):
    """An environment that can list the tasks of its split."""

    def task_ids(self) -> Sequence[str]:
        """List the ids that ``reset(options={"task": id})`` takes."""
        ...


@runtime_checkable
class HasSource(Protocol):
    """An environment that says where its tasks come from, and how many of the split are there."""

    @property
    def source(self) -> str:
        """Such as "generated" or "official"."""
        ...

    @property
    def coverage(self) -> Coverage | None:
        """None where tasks are made to order."""
        ...


def panel_of(
    env: gym.Env[Any, Any],
    name: str,
    size: int | None = None,
    by: Callable[[str], str] | None = None,
) -> Panel:
    """Choose a panel from the tasks of an environment.

    Args:
        env: wrapped or not; its base environment has ``task_ids()``.
        name: of the panel; it does not influence the choice.
        size: number of tasks, all of the split by default.
        by: kind of a task, read from its id. The panel holds as many tasks of every kind as of any
            other, to within one, until a kind is used up.

    Returns:
        The first ``size`` ids of one fixed order: within a kind by the blake2b hash of the id, and
        taking turns between the kinds, in sorted order. So a smaller panel is the beginning of a
        larger one, and the order in which the environment lists its tasks does not matter.

    Raises:
        ValueError: fewer than ``size`` tasks, or ``size`` below 1.
    """
    base = env.unwrapped
    if not isinstance(base, HasTasks):
        raise TypeError(f"{base} lists no tasks: give it a method task_ids() -> Sequence[str].")
    ordered = _in_turns(base.task_ids(), by)
    if size is not None and not 1 <= size <= len(ordered):
        raise ValueError(f"Panel {name!r} cannot have {size} tasks: the split has {len(ordered)}.")
    chosen = tuple(ordered[:size])
    if not isinstance(base, HasSource):
        return Panel(name, chosen)
    return Panel(name, chosen, base.source, base.coverage)


@dataclass(frozen=True)
class PanelSource:
    """Where a named panel's tasks come from.

    An environment's module `panels` declares them: ``PANELS: Mapping[str, PanelSource]``.

    env_id: a registered id.
    settings: arguments of ``gym.make`` that the name stands for; they cannot be given otherwise.
    kind: of a task, read from its id, for slices; see ``panel_of``.
    needs: arguments that have to be given, as the name does not say them.
    """

    env_id: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # Any: what gym.make takes
    kind: Callable[[str], str] | None = None
    needs: tuple[str, ...] = ()

    def takes(self, settings: Mapping[str, Any]) -> bool:
        """Whether further settings leave alone those that the name stands for, and none lacks."""
        fixed = all(settings.get(key, value) == value for key, value in self.settings.items())
        return fixed and not self.lacks(settings)

    def lacks(self, settings: Mapping[str, Any]) -> list[str]:
        """What has to be given and is not."""
        return [key for key in self.needs if settings.get(key) is None]


def panel_sources() -> dict[str, PanelSource]:
    """Every named panel, as the environments' modules ``panels`` declare them."""
    return {
        name: source
        for environment in offering("panels")
        for name, source in part(environment, "panels").PANELS.items()
    }


def panel_names() -> tuple[str, ...]:
    """The names that ``named_panel`` takes, without slices."""
    return tuple(panel_sources())


def named_panel(name: str, count: int | None = None, **settings: Any) -> Panel:
    """Choose a panel by its name.

    The whole panel is in the order of ``panel_of`` without kinds, a slice in that with kinds, so
    slices are nested and balanced.

    Args:
        name: one of ``panel_names()``, and ":N" for a slice of N tasks.
        count: the same as ":N".
        settings: further arguments of ``gym.make``, such as ``data``.

    Raises:
        UnknownName: there is no such panel, or no such value of a setting.
        ValueError: a setting that the environment lacks or the name fixes, one that the panel needs
            and is not given, or a slice of a size that does not exist.
        DataMissing: a folder that was named lacks games.
    """
    whole, colon, number = name.partition(":")
    if colon:
        if not number.isdecimal() or (count is not None and count != int(number)):
            raise ValueError(f"Panel {name!r}, count {count}: write NAME:N, or give a count.")
        count = int(number)
    sources = panel_sources()
    if whole not in sources:
        raise unknown_name("panel", whole, sources)
    source = sources[whole]
    if lacking := source.lacks(settings):
        wanted = ", ".join(f"{key}=..." for key in lacking)
        raise ValueError(f"Panel {whole!r} needs a setting: named_panel({name!r}, {wanted}).")
    if not source.takes(settings):
        fixed = ", ".join(f"{key}={value!r}" for key, value in source.settings.items())
        raise ValueError(
            f"Panel {whole!r} is of {fixed}, not of {settings}: choose another panel or leave the "
            "setting out."
        )
    try:
        env: gym.Env[Any, Any] = gym.make(source.env_id, **{**settings, **source.settings})
    except TypeError as error:
        raise ValueError(f"{source.env_id} cannot be made: {error}.") from error
    try:
        if count is None:
            return panel_of(env, whole)
        return panel_of(env, f"{whole}:{count}", count, source.kind)
    finally:
        env.close()


def _in_turns(task_ids: Sequence[str], by: Callable[[str], str] | None) -> list[str]:
    """Order ids so that every prefix is balanced over their kinds."""
    place: dict[str, tuple[int, str]] = {}
    rank: dict[Hashable, int] = {}
    for task_id in sorted(task_ids, key=_shuffled):
        kind = "" if by is None else by(task_id)
        place[task_id] = (rank.get(kind, 0), kind)
        rank[kind] = rank.get(kind, 0) + 1
    return sorted(place, key=place.__getitem__)


def _shuffled(task_id: str) -> str:
    """Sort key that has nothing to do with how ids are spelled or listed."""
    return hashlib.blake2b(task_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
