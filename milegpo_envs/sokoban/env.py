"""`milegpo/Sokoban-v0`: push boxes onto targets, seen in text, in pictures or both."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np

from milegpo_envs.errors import unknown_name
from milegpo_envs.prompts import Template
from milegpo_envs.sokoban.board import MOVES
from milegpo_envs.sokoban.canonical import View, canonical, views_of
from milegpo_envs.sokoban.level import Level
from milegpo_envs.sokoban.levels import FileLevels, GeneratedLevels, Levels
from milegpo_envs.sokoban.notation import read_rows
from milegpo_envs.sokoban.prompt import BOTH_PROMPTS, IMAGE_PROMPTS, TEXT_PROMPTS
from milegpo_envs.sokoban.render import Image, draw, tiles
from milegpo_envs.sokoban.solver import distance
from milegpo_envs.spaces import TextSpace
from milegpo_envs.tasks import asked_task

Observation: TypeAlias = str | Image | dict[str, str | Image]

PROMPTS = {"text": TEXT_PROMPTS, "image": IMAGE_PROMPTS, "both": BOTH_PROMPTS}
OBSERVATIONS = tuple(PROMPTS)
REWARDS = ("papers", "gym")
MEASURES = ("pushes", "moves")
RENDER_MODES = ("rgb_array", "ansi")
SIZE = (6, 6)
_MOVES = {move: move for move in MOVES}
_MOVE_WORD = re.compile(rf"(?<!\w)(?:{'|'.join(MOVES)})(?!\w)")


class SokobanEnv(gym.Env[Observation, str]):
    """Push every box onto a target.

    ## Observations and actions

    Text: the board, a row a line, with the symbols of the papers (see `notation`). Image: uint8
    (rows * tile, columns * tile, 3). Both: a dict of the two under "text" and "image". An action is
    "up", "down", "left" or "right", or a text in which the first of these words counts. A move into
    a wall or against a stuck box is legal and changes nothing; a text without a move changes
    nothing either, and is invalid.

    ## Rewards and ends

    reward="papers": 10.0 on the solving step, else 0.0. reward="gym", after gym-sokoban: -0.1 a
    step, +1 for a box brought onto a target, -1 for one taken off, +10 for the solution.
    `terminated` when solved; the horizon (15 steps as registered) is Gymnasium's time limit.

    ## Info

    The contract's keys (see `milegpo_envs`), `deadlocked` (True: surely lost; False may be lost
    too, `distance()` is exact) and `boxes_on_target`. `invalid_reason` is "no move named" or "not
    text".

    ## Tasks

    `reset(options={"task": id})` plays that level; otherwise it is a function of the seed. Splits
    share no room (see `level.split_of`).

    Args:
        size: rows and columns of generated levels, outer walls included. boxes: in each of them.
        observation: "text", "image" or "both". reward: "papers" or "gym". levels: None for
        generated levels, or a file in the common text format (see `levels_file`). split: "train",
        "validation" or "test"; None is "train" for generated levels, and all levels of a file.
        tile: pixels of a side of a cell in pictures. render_mode: "rgb_array" or "ansi".

    Raises:
        UnknownName: for a value that is not among those above. ValueError: size, boxes or tile are
        no whole numbers, or the tile is too small. NoLevel: such levels cannot be generated.
        DataMissing, FaultyLevels: the file is missing or faulty.

    ## Version history

    * v0: first release
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  # Gymnasium's own declaration
        "render_modes": list(RENDER_MODES),
        "render_fps": 4,
    }

    def __init__(
        self,
        size: Sequence[int] = SIZE,
        boxes: int = 1,
        observation: str = "text",
        reward: str = "papers",
        levels: str | os.PathLike[str] | None = None,
        split: str | None = None,
        tile: int = 16,
        render_mode: str | None = None,
    ) -> None:
        for kind, value, valid in (
            ("observation", observation, OBSERVATIONS),
            ("reward", reward, REWARDS),
            ("render mode", render_mode, (None, *RENDER_MODES)),
        ):
            if value not in valid:
                raise unknown_name(kind, value, [str(v) for v in valid])
        tile = _whole("tile", tile)
        tiles(tile)  # refuses a wrong size now
        self._levels = _levels(size, boxes, levels, split)
        self._observation, self._reward = observation, reward
        self._tile, self.render_mode = tile, render_mode
        self._level: Level | None = None
        self.observation_space = self._space()
        self.action_space = TextSpace()

    @property
    def prompt_templates(self) -> Mapping[str, Template]:
        """How a step of this environment is shown to a model."""
        return PROMPTS[self._observation]

    @property
    def level(self) -> Level:
        """The level being played, for experts and reports; after `reset`."""
        return self._playing()

    def task_ids(self) -> tuple[str, ...]:
        """The levels of the split, in a fixed order."""
        return self._levels.task_ids

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin a level: `options["task"]`, or one drawn by the seed.

        Raises:
            UnknownName: for a level that is not in the split, or an option other than "task".
        """
        super().reset(seed=seed)
        task = asked_task(options, self.np_random, self._levels.task_ids)
        self._level = self._levels.level(task)
        self._views = views_of(self._level.room)
        self._now = self._views.at(self._level.start)
        return self._observed(), self._info(None)

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Make one move."""
        if self._level is None:
            raise gym.error.ResetNeeded("Call reset() before step().")
        before = self._now
        move = _MOVES.get(action) if type(action) is str else None
        problem = None
        if move is None:
            move, problem = read_move(action)
        if move is not None:
            self._now = self._views.follow(before, move)
        now = self._now
        return self._observed(), self._pay(before, now), now.solved, False, self._info(problem)

    def render(self) -> Any:  # Any: Gymnasium's frame type has no text
        """Return a picture, or the board in the notation of level files; as `render_mode` says."""
        if self.render_mode is None:
            return None
        self._playing()
        if self.render_mode == "ansi":
            return "\n".join(self._now.rows)
        return draw(self._now.rows, self._tile, self._levels.size)

    def distance(
        self, state: Mapping[str, Sequence[str]] | None = None, by: str = "pushes"
    ) -> int | None:
        """Fewest pushes, or moves, from a state to a solution; None if it cannot be solved.

        Args:
            state: as `info["state"]` shows it; the present one by default.
            by: "pushes" or "moves".

        Raises:
            TooLarge: of a large room, after a bounded search.
        """
        if by not in MEASURES:
            raise unknown_name("measure of distance", by, MEASURES)
        room, position = (
            (self._playing().room, self._now.position)
            if state is None
            else read_rows(state["board"])
        )
        return distance(room, position, by)

    def _playing(self) -> Level:
        if self._level is None:
            raise gym.error.ResetNeeded("Call reset() first.")
        return self._level

    def _space(self) -> gym.Space[Any]:
        height, width = self._levels.size
        shape = (height * self._tile, width * self._tile, 3)
        picture = gym.spaces.Box(0, 255, shape, np.uint8)
        if self._observation == "text":
            return TextSpace()
        if self._observation == "image":
            return picture
        return gym.spaces.Dict({"image": picture, "text": TextSpace()})

    def _observed(self) -> Observation:
        if self._observation == "text":
            return self._now.text
        picture = draw(self._now.rows, self._tile, self._levels.size)
        return (
            picture if self._observation == "image" else {"image": picture, "text": self._now.text}
        )

    def _pay(self, before: View, now: View) -> float:
        """The reward of a step."""
        if self._reward == "papers":
            return 10.0 if now.solved else 0.0
        return -0.1 + (now.on_target - before.on_target) + (10.0 if now.solved else 0.0)

    def _info(self, problem: str | None) -> dict[str, Any]:
        now = self._now
        return {
            "task_id": self._level.id,  # type: ignore[union-attr]  # reset or step set it
            "state_id": now.state_id,
            "state": canonical(now.rows),
            "admissible_actions": list(MOVES),
            "action_valid": problem is None,
            "invalid_reason": problem,
            "success": now.solved,
            "score": 1.0 if now.solved else 0.0,
            "deadlocked": now.deadlocked,
            "boxes_on_target": now.on_target,
        }


def read_move(action: object) -> tuple[str | None, str | None]:
    """Find the first move named in an action: the move and None, or None and what is wrong."""
    if not issubclass(type(action), str):  # an object may lie to isinstance
        return None, "not text"
    # Lowered first: ignoring case, a pattern also takes a dotless i for an i.
    found = _MOVE_WORD.search(str.lower(action))  # type: ignore[arg-type]
    return (found[0], None) if found else (None, "no move named")


def _levels(
    size: object, boxes: object, path: str | os.PathLike[str] | None, split: str | None
) -> Levels:
    """The levels asked for."""
    if isinstance(size, str) or not isinstance(size, Iterable) or len(sides := [*size]) != 2:
        raise ValueError(f"size is a number of rows and one of columns, not {size!r}.")
    rows_columns = (_whole("size", sides[0]), _whole("size", sides[1]))
    if path is None:
        return GeneratedLevels(rows_columns, _whole("boxes", boxes), split)
    if rows_columns != SIZE or boxes != 1:
        raise ValueError(
            "size and boxes are of generated levels; leave them out with a level file."
        )
    return FileLevels(path, split)


def _whole(name: str, value: object) -> int:
    """A setting that is a whole number, as an int: it becomes part of names and draws of levels."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"{name} takes whole numbers, not {value!r}.")
    return int(value)
