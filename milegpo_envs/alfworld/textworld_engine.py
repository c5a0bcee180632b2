"""The official engine, textworld on fast-downward, behind the same interface as the fast one.

`ShippedTextWorldEngine` is what alfworld runs: PddlEnv in AlfredDemangler and AlfredInfos,
unchanged. A step costs about 0.1 s, nearly all of it for parsing the same texts and copying the
same objects again. `TextWorldEngine` runs the same code with those functions memoised, all of them
pure: parsing a grammar text, parsing a query, translating a problem, copying a context that nobody
writes to. They are exchanged only while this engine is at work, so that nothing else in the process
sees them.

Traps, and what is done about them. textworld has one global parser, swaps `sys.stdout` and
overwrites `sys.argv`: a second thread is refused, and `sys.argv` is put back. Every environment
copies and loads a 33 MB library, and unloading a second copy crashes the interpreter when it exits:
`close` empties a library and keeps it for the next engine, so a process holds as many as it had
engines open at once. The grammar of a game can run Python expressions: play games of unknown origin
on the fast engine only, which refuses unknown grammars.
"""

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any, NoReturn

import fast_downward
import textworld
from textworld.envs.pddl import PddlEnv

from milegpo_envs.alfworld import package
from milegpo_envs.alfworld.engine import CHANGING, EngineStep
from milegpo_envs.alfworld.exchange import exchanged
from milegpo_envs.alfworld.games import Game
from milegpo_envs.alfworld.textworld_memo import MEMOISED
from milegpo_envs.errors import EnvError, WrongThread

__all__ = ["EngineClosed", "ShippedTextWorldEngine", "TextWorldEngine", "WrongThread"]


class EngineClosed(EnvError, RuntimeError):
    """A closed engine was asked to play."""


class ShippedTextWorldEngine:
    """textworld as alfworld ships it, for comparison."""

    def __init__(self, game: Game) -> None:
        with self._working():
            wrappers = package.imported("alfworld.agents.environment.alfred_tw_env")
            infos = textworld.EnvInfos(won=True, admissible_commands=True, extras=["gamefile"])
            with exchanged(((fast_downward, "load_lib", _borrow_library),)):
                self._inner: PddlEnv | None = PddlEnv(infos)
            self._env: Any = wrappers.AlfredInfos(wrappers.AlfredDemangler(self._inner))
        self.load(game)

    def load(self, game: Game) -> None:
        """Play another game from now on, with the library that is loaded already."""
        with self._working():
            self._playing().load(
                {
                    "pddl_domain": game.pddl_domain,
                    "grammar": game.grammar,
                    "pddl_problem": game.pddl_problem,
                }
            )

    def reset(self) -> EngineStep:
        """Start over."""
        with self._working():
            return _answer(self._playing().reset())

    def step(self, command: str) -> EngineStep:
        """Send one command."""
        with self._working():
            state, _, _ = self._playing().step(command)
            return _answer(state)

    def close(self) -> None:
        """Empty the library and keep it for the next engine. May be called twice."""
        if self._inner is None:
            return
        with self._working():
            self._inner.downward_lib.cleanup()
            _idle_libraries.append(self._inner.downward_lib)
            self._inner = self._env = None

    def __reduce__(self) -> NoReturn:
        """The game is played inside a C library, which no copy can take along.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            "textworld's engine can be neither copied nor pickled. Use engine='fast', or make "
            "another environment and send it the same commands."
        )

    def _playing(self) -> Any:
        if self._env is None:
            raise EngineClosed("This textworld engine is closed. Make a new one.")
        return self._env

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        """What surrounds every use of textworld."""
        _own_thread()
        arguments = sys.argv
        try:
            yield
        finally:
            sys.argv = arguments


class TextWorldEngine(ShippedTextWorldEngine):
    """The same with pure functions memoised: a step costs a fifteenth to a thirtieth."""

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        with super()._working(), exchanged(MEMOISED):
            yield


def _answer(state: Any) -> EngineStep:
    return EngineStep(
        feedback=state["feedback"],
        admissible_commands=tuple(state["admissible_commands"]),
        won=bool(state["won"]),
        facts=frozenset(
            (fact.name, *(variable.name for variable in fact.arguments))
            for fact in state["_facts"]
            if fact.name in CHANGING
        ),
    )


_original_load = fast_downward.load_lib
_idle_libraries: list[Any] = []


def _borrow_library() -> Any:
    """A library that no engine plays on: one that was given back, or a new copy."""
    return _idle_libraries.pop() if _idle_libraries else _original_load()


_owner: threading.Thread | None = None


def _own_thread() -> None:
    """Let one living thread use textworld."""
    global _owner
    current = threading.current_thread()
    if _owner is not None and _owner is not current and _owner.is_alive():
        raise WrongThread(
            f"textworld is in use by thread {_owner.name!r}, and its one parser cannot serve "
            f"{current.name!r} too. Use processes, or engine='fast'."
        )
    _owner = current
