"""`milegpo/ALFWorld-v0`: household tasks in text, with canonical states."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym

from milegpo_envs.alfworld.canonical import CANONICAL, name_state
from milegpo_envs.alfworld.commands import Read, read_leniently, read_strict
from milegpo_envs.alfworld.compiled import Things, compiled, things
from milegpo_envs.alfworld.engine import NOTHING_HAPPENS, Engine, EngineStep, UnsupportedGame
from milegpo_envs.alfworld.fast_engine import FastEngine
from milegpo_envs.alfworld.folder import FolderGames
from milegpo_envs.alfworld.games import SPLITS, Game, Games, GeneratedGames
from milegpo_envs.alfworld.observations import OBSERVATIONS
from milegpo_envs.alfworld.prompt import PROMPTS
from milegpo_envs.errors import unknown_name
from milegpo_envs.panels import Coverage
from milegpo_envs.prompts import Template
from milegpo_envs.spaces import TextSpace
from milegpo_envs.tasks import asked_task

ENGINES = ("auto", "fast", "textworld")
READERS: Mapping[str, Callable[[object, Sequence[str]], Read]] = {
    "strict": read_strict,
    "resolve": read_leniently,
}
REWARD = 10.0  # on success


class ALFWorldEnv(gym.Env[str, str]):
    """Find, clean, heat, cool, light and place things in a house, by text (arXiv:2010.03768).

    ## Observations and actions

    Both are text. The first observation describes the room and states the task ("Your task is to:
    ..."). An action is one of `info["admissible_actions"]`; any other is answered "Nothing
    happens.", changes nothing and costs the step.

    ## Rewards and ends

    10.0 and `terminated` when the task is done, else 0.0. The horizon (50 steps as registered) is
    Gymnasium's time limit and shows as `truncated`.

    ## Info

    The contract's keys (see `milegpo_envs`), `task_type`, and where `actions="resolve"` executed
    another command for the player's words, these as `rewritten_from` and the command as
    `rewritten_to` (None for both otherwise). `invalid_reason` is "not admissible", "ambiguous" or
    "not text". A state of facts is shown as what differs from the start of the task (see
    `canonical`); its id hashes all facts.

    ## Tasks

    `reset(options={"task": id})` plays that task; otherwise the task is a function of the seed.
    `task_ids()` lists them.

    Args:
        split: "train", "valid_seen" or "valid_unseen". data: None for generated games, or a folder
        with official ones (what $ALFWORLD_DATA names). engine: "fast" (exact, plain Python),
        "textworld", or "auto": fast, and textworld for games of an unknown version. state: what
        tells states apart: "facts", "observation" or "graphgpo" (see `canonical`). actions:
        "strict", or "resolve" to read other wordings of one admissible command as that command.
        observation: "feedback" (what the game says), or "graphgpo" to add location, held object
        and moved objects (see `observations`).
        size: of generated games: "full" rooms, or "small" ones for tiny policies. task_types: the
        task types to list; None is all six. allow_partial: play a folder's split that lacks games;
        results then say, for instance, 132/134 (`coverage`).

    Raises:
        UnknownName: for a value that is not among those above. DataMissing: if `data` holds no
        games of the split, or fewer than it should.

    ## Version history

    * v0: first release
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  # Gymnasium's own declaration

    def __init__(
        self,
        split: str = "train",
        data: str | os.PathLike[str] | None = None,
        engine: str = "auto",
        state: str = "facts",
        actions: str = "strict",
        observation: str = "feedback",
        size: str = "full",
        task_types: Collection[str] | None = None,
        allow_partial: bool = False,
    ) -> None:
        for kind, value, valid in (
            ("split", split, SPLITS),
            ("engine", engine, ENGINES),
            ("state", state, tuple(CANONICAL)),
            ("way to read actions", actions, tuple(READERS)),
            ("observation", observation, tuple(OBSERVATIONS)),
        ):
            if value not in valid:
                raise unknown_name(kind, value, valid)
        if data is not None and size != "full":
            raise unknown_name("size of official games", size, ("full",))
        self._games: Games = (
            GeneratedGames(split, size, task_types)
            if data is None
            else FolderGames(data, split, task_types, allow_partial)
        )
        self._engine_name = engine
        self._canonical = CANONICAL[state]
        self._read = READERS[actions]
        self._shown = OBSERVATIONS[observation]
        self._engine: Engine | None = None
        self.observation_space = TextSpace()
        self.action_space = TextSpace()

    @property
    def prompt_templates(self) -> Mapping[str, Template]:
        """How a step of this environment is shown to a model."""
        return PROMPTS

    @property
    def wants_processes(self) -> bool:
        """Pools play textworld in worker processes: it is slow, and serves one thread only."""
        return self._engine_name == "textworld"

    @property
    def game(self) -> Game:
        """The game being played, for experts and reports; after `reset`."""
        return self._game

    @property
    def things(self) -> Things:
        """Names and places in that game; after `reset`."""
        return self._things

    @property
    def first(self) -> EngineStep:
        """The engine's answer to the reset; after `reset`."""
        return self._first

    @property
    def now(self) -> EngineStep:
        """The engine's last answer, hidden facts included; after `reset`."""
        return self._now

    @property
    def source(self) -> str:
        """Whose games these are: "generated", "official", or "folder" for other folders."""
        return self._games.source

    @property
    def coverage(self) -> Coverage | None:
        """How many games of the split a folder holds, of how many; None for games made here."""
        return self._games.coverage

    def task_ids(self) -> tuple[str, ...]:
        """The tasks of the split, in a fixed order."""
        return self._games.task_ids

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin a task: `options["task"]`, or one drawn by the seed.

        Raises:
            UnknownName: for a task that is not in the split, or an option other than "task".
        """
        super().reset(seed=seed)
        task = asked_task(options, self.np_random, self._games.task_ids)
        self._game = self._games.game(task)
        self._things = things(self._game)
        self._engine = start_engine(self._game, self._engine_name, self._engine)
        self._first = self._now = self._engine.reset()
        return self._text(), self._info(Read(""), None)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Send one command."""
        if self._engine is None:
            raise gym.error.ResetNeeded("Call reset() before step().")
        before = self._now
        read = self._read(action, before.admissible_commands)
        if read.command is None:
            self._now = replace(before, feedback=NOTHING_HAPPENS)
        else:
            self._now = self._engine.step(read.command)
        rewritten = None
        if read.command is not None and read.command != action.strip():
            rewritten = action
        won = self._now.won
        info = self._info(read, rewritten)
        return self._text(), REWARD if won else 0.0, won, False, info

    def close(self) -> None:
        """Free the engine."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _text(self) -> str:
        return self._shown(self._first, self._now, self._things)

    def _info(self, read: Read, rewritten: str | None) -> dict[str, Any]:
        now: EngineStep = self._now
        name, state = name_state(self._canonical, self._game.id, self._first, now, self._things)
        return {
            "task_id": self._game.id,
            "task_type": self._game.task_type,
            "state_id": name,
            "state": state,
            "admissible_actions": list(now.admissible_commands),
            "action_valid": read.problem is None,
            "invalid_reason": read.problem,
            "rewritten_from": rewritten,
            "rewritten_to": None if rewritten is None else read.command,
            "success": now.won,
            "score": float(now.won),
        }


def start_engine(game: Game, name: str, previous: Engine | None = None) -> Engine:
    """The engine for a game; "auto" is fast where the game is of a known version.

    The previous engine is closed, or plays on if it is textworld's, which is costly to start.

    Raises:
        UnsupportedGame: if "fast" was asked for and cannot be had.
    """
    fast: Engine | None = None
    if name != "textworld":
        try:
            fast = FastEngine(compiled(game))
        except UnsupportedGame:
            if name == "fast":
                raise
    if fast is not None:
        if previous is not None:
            previous.close()
        return fast
    from milegpo_envs.alfworld.textworld_engine import TextWorldEngine  # heavy: only where needed

    if isinstance(previous, TextWorldEngine):
        previous.load(game)
        return previous
    return TextWorldEngine(game)
