"""Small deterministic toys for tests: a six-room house to walk and carry things in.

`House` fulfils the whole environment contract of `milegpo_envs` in microseconds: task ids, sorted
admissible actions, state ids, an action-validity verdict, success and score, a horizon. Importing
this module registers it:

    env = gym.make("milegpo-tests/House-v0")                # horizon 12
    plan = solution("carry-lamp-to-cellar")                 # a shortest list of actions
    Prompted(env, style="compact").step(well_formed(plan[0]))

Feedback hides the state on purpose, as real games do: "Nothing happens." reads the same everywhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import gymnasium as gym

from milegpo_envs.errors import unknown_name
from milegpo_envs.prompts import COMPACT, PAPERS, Template
from milegpo_envs.spaces import TextSpace
from milegpo_envs.state import readable, state_id

HOUSE_ID = "milegpo-tests/House-v0"
HORIZON = 12
SUCCESS_REWARD = 10.0
KINDS = ("reach", "carry")

# A ring (hall, kitchen, cellar, garden) with a branch (hall, study, attic).
DOORS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "attic": ("study",),
        "cellar": ("garden", "kitchen"),
        "garden": ("cellar", "hall"),
        "hall": ("garden", "kitchen", "study"),
        "kitchen": ("cellar", "hall"),
        "study": ("attic", "hall"),
    }
)
FIRST_ROOM = "hall"
ITEMS: Mapping[str, str] = MappingProxyType({"apple": "kitchen", "lamp": "attic"})


@dataclass(frozen=True)
class Task:
    """Reach a room, or bring an item to it and put it down there."""

    target: str
    item: str | None = None

    @property
    def kind(self) -> str:
        return "reach" if self.item is None else "carry"

    @property
    def id(self) -> str:
        return (
            f"reach-{self.target}" if self.item is None else f"carry-{self.item}-to-{self.target}"
        )

    @property
    def sentence(self) -> str:
        if self.item is None:
            return f"reach the {self.target}."
        return f"carry the {self.item} to the {self.target}."


TASKS: Mapping[str, Task] = MappingProxyType(
    {
        task.id: task
        for task in [
            *(Task(room) for room in DOORS if room != FIRST_ROOM),
            *(Task(room, item) for item, at in ITEMS.items() for room in DOORS if room != at),
        ]
    }
)
"""All 15 tasks by id."""


@dataclass(frozen=True)
class Place:
    """Where the agent is and where the task's item lies; None while carried or without item."""

    room: str = FIRST_ROOM
    item_room: str | None = None


def start(task: Task) -> Place:
    """The first situation of a task."""
    return Place(item_room=None if task.item is None else ITEMS[task.item])


def moves(task: Task, at: Place) -> dict[str, Place]:
    """Every admissible action and the situation it leads to."""
    after = {f"go to {room}": replace(at, room=room) for room in DOORS[at.room]}
    after["look"] = at
    if task.item is not None and at.item_room == at.room:
        after[f"take {task.item}"] = replace(at, item_room=None)
    if task.item is not None and at.item_room is None:
        after[f"put {task.item}"] = replace(at, item_room=at.room)
    return dict(sorted(after.items()))


def solved(task: Task, at: Place) -> bool:
    """Tell whether a situation fulfils a task."""
    return (at.room if task.item is None else at.item_room) == task.target


def facts(task: Task, at: Place) -> dict[str, object]:
    """The canonical state: the task, and the facts that change."""
    place = {("agent", "at", at.room)}
    if task.item is not None:
        place.add(("item", "held") if at.item_room is None else ("item", "at", at.item_room))
    return {"task": task.id, "facts": frozenset(place)}


def describe(task: Task, at: Place) -> str:
    """What a look around shows."""
    doors = ", and ".join(f"the {room}" for room in DOORS[at.room])
    text = f"You are in the {at.room}. Doors lead to {doors}."
    if task.item is not None and at.item_room == at.room:
        text += f" You see a {task.item}."
    return text


def solution(task_id: str) -> list[str]:
    """A shortest list of actions that solves a task, the first in alphabetical order."""
    task = TASKS[task_id]
    reached: dict[Place, list[str]] = {start(task): []}
    queue = deque(reached)
    while queue:
        at = queue.popleft()
        if solved(task, at):
            return reached[at]
        for action, after in moves(task, at).items():
            if after not in reached:
                reached[after] = [*reached[at], action]
                queue.append(after)
    raise AssertionError(f"{task_id} cannot be solved")


def well_formed(action: str, thought: str = "so") -> str:
    """A reply in the papers' format."""
    return f"<think>{thought}</think><action>{action}</action>"


def task_sentence(first_observation: str) -> str:
    """The task as the first observation states it."""
    return first_observation.rpartition("Your task is to: ")[2]


def without_task(text: str) -> str:
    """An observation on one line, without the task."""
    return " ".join(text.partition("\n\nYour task is to: ")[0].split())


class House(gym.Env[str, str]):
    """Walk a house of six rooms; see the module's docstring.

    kinds: the kinds of tasks in the split. fails_on: an action that raises inside `step`, or a
    task id that raises inside `reset`, for tests of what survives a broken game.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # Gymnasium's own convention
    prompt_templates: Mapping[str, Template] = MappingProxyType(
        {
            "papers": replace(PAPERS, task="Your task: {task}", task_of=task_sentence),
            "compact": replace(COMPACT, task_of=task_sentence, show=without_task),
        }
    )

    def __init__(self, kinds: Sequence[str] = KINDS, fails_on: str | None = None) -> None:
        for kind in kinds:
            if kind not in KINDS:
                raise unknown_name("kind of task", kind, KINDS)
        self.observation_space = TextSpace()
        self.action_space = TextSpace()
        self.closed = False
        self._ids = tuple(task.id for task in TASKS.values() if task.kind in kinds)
        self._fails_on = fails_on
        self._task = TASKS[self._ids[0]]
        self._at = start(self._task)

    def task_ids(self) -> tuple[str, ...]:
        return self._ids

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        drawn = self._ids[int(self.np_random.integers(len(self._ids)))]
        task_id = (options or {}).get("task", drawn)
        if task_id not in self._ids:
            raise unknown_name("task", task_id, self._ids)
        if task_id == self._fails_on:
            raise OSError(f"cannot start {task_id}")
        self._task = TASKS[task_id]
        self._at = start(self._task)
        text = describe(self._task, self._at)
        sentence = self._task.sentence
        return f"Welcome.\n\n{text}\n\nYour task is to: {sentence}", self._info(None)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if action == self._fails_on:
            raise OSError(f"cannot {action}")
        after = moves(self._task, self._at)
        if action not in after:
            return "Nothing happens.", 0.0, False, False, self._info(f"not admissible: {action}")
        self._at = after[action]
        success = solved(self._task, self._at)
        reward = SUCCESS_REWARD if success else 0.0
        return describe(self._task, self._at), reward, success, False, self._info(None)

    def close(self) -> None:
        self.closed = True

    def _info(self, invalid_reason: str | None) -> dict[str, Any]:
        state = facts(self._task, self._at)
        success = solved(self._task, self._at)
        return {
            "task_id": self._task.id,
            "task_type": self._task.kind,
            "state": readable(state),
            "state_id": state_id(state),
            "admissible_actions": list(moves(self._task, self._at)),
            "action_valid": invalid_reason is None,
            "invalid_reason": invalid_reason,
            "success": success,
            "score": float(success),
        }


if HOUSE_ID not in gym.registry:
    gym.register(id=HOUSE_ID, entry_point="tests.toys:House", max_episode_steps=HORIZON)
