"""The hand-coded expert of the alfworld package, mended, fed from any engine.

As shipped it never notices that it has put something down: since alfworld 0.4 the command says
"move" and its bookkeeping looks for "put", so it fails nearly every task with two objects. The mend
is in a subclass and changes nothing in the package. Its coin flips come from a private generator
named by the game. It can raise in the middle of a game: that, and advice that is not admissible, is
reported beside the command "look".

It reads hidden facts (where objects are, what is clean), so its trajectories are not what a player
could do by sight.
"""

import random
from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import Any

from milegpo_envs.alfworld import package
from milegpo_envs.alfworld.compiled import CompiledGame
from milegpo_envs.alfworld.engine import EngineStep, Fact
from milegpo_envs.alfworld.exchange import exchanged
from milegpo_envs.alfworld.games import Game
from milegpo_envs.draws import Draws

_READ = frozenset(("holds", "inreceptacle", "isclean", "ishot", "iscool"))


@dataclass(frozen=True)
class Advice:
    """A command, always admissible, and what went wrong with the expert's own, if anything did."""

    command: str
    problem: str | None = None


class HandCodedExpert:
    """The package's `HandCodedTWAgent` for one episode after another of a game.

    Args:
        game: the game, for the task's parameters.
        compiled: the same game compiled, for the names of things.
        max_steps: after so many the expert gives up (a problem, not an exception).
    """

    def __init__(self, game: Game, compiled: CompiledGame, max_steps: int = 200) -> None:
        self._game, self._names, self._max_steps = game, compiled.names, max_steps
        self._put = compiled.wording.put
        self._module = package.imported("alfworld.agents.expert.handcoded_expert")

    def reset(self, first: EngineStep) -> None:
        """Begin an episode with the engine's answer to a reset."""
        self._agent = _mended_agent(self._game, self._max_steps)
        self._agent.observe(first.feedback)
        self._last = ""
        self._random = random.Random(Draws(f"expert/{self._game.id}").integer(0, 2**31))

    def act(self, now: EngineStep) -> Advice:
        """What to do next; "look" at first, as in the package, and whenever the expert fails."""
        advice = self._advise(now) if self._last else Advice("look")
        self._last = self._in_new_words(advice.command)
        return advice

    def _advise(self, now: EngineStep) -> Advice:
        ours = {self._in_new_words(command): command for command in now.admissible_commands}
        state = {
            "feedback": now.feedback,
            "admissible_commands": sorted(ours),
            "facts": [self._fact(fact) for fact in sorted(now.facts) if fact[0] in _READ],
        }
        try:
            with exchanged(((self._module, "random", self._random),)):
                command = self._agent.act(state, 0, now.won, self._last)
        except Exception as error:  # foreign code that fails in many ways, all of them data
            return Advice("look", f"{type(error).__name__}: {error}")
        if command not in ours:
            return Advice("look", f"not admissible: {command}")
        return Advice(ours[command])

    def _fact(self, fact: Fact) -> SimpleNamespace:
        names = [self._names.get(argument, argument).strip() for argument in fact[1:]]
        if fact[0] == "holds":
            names[0] = "agent"
        return SimpleNamespace(name=fact[0], names=names)

    def _in_new_words(self, command: str) -> str:
        """Say "move X to Y" for an older "put X in/on Y", which the expert does not know."""
        verb, preposition = self._put
        if verb == "move" or not command.startswith(f"{verb} "):
            return command
        return f"move {command.removeprefix(f'{verb} ').replace(f' {preposition} ', ' to ', 1)}"


def _mended_agent(game: Game, max_steps: int) -> Any:
    """The package's agent, its policy subclassed to notice that it put something down."""
    expert = package.imported("alfworld.agents.expert.handcoded_expert_tw")
    params = asdict(game.params) | {"task_type": game.task_type}
    classes = package.tables().objects
    lowered = {k: v.lower() if v in classes else v for k, v in params.items()}
    agent = expert.HandCodedTWAgent(max_steps=max_steps)
    policy = agent.get_task_policy(lowered)

    def update_state_tracking(self: Any, game_state: Any, last_action: str) -> None:
        if last_action.startswith("move "):
            thing = last_action.removeprefix("move ").replace(" to ", " in/on ", 1)
            last_action = f"put {thing}"
        policy.update_state_tracking(self, game_state, last_action)

    mended = type(
        "Mended" + policy.__name__, (policy,), {"update_state_tracking": update_state_tracking}
    )
    agent.task_params = lowered
    agent.policy = mended(lowered, max_steps=max_steps)
    return agent
