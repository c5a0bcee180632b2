"""Which domains and grammars the fast engine reproduces.

A game carries its own domain and grammar. Two data releases and the wheel differ in the verb of
putting ("put X in/on Y" before alfworld 0.4.0, "move X to Y" since), in the arrival text, and in
whether there is a `help` action. Modulo these and the goal sentence, one domain and one grammar are
known, by digest; the digests were taken of alfworld 0.4.2, and its texts were compared with
textworld's step by step.
"""

import functools
import hashlib
import json
import re
from dataclasses import dataclass

from milegpo_envs.alfworld.engine import UnsupportedGame
from milegpo_envs.alfworld.pddl import parse

DOMAIN_DIGEST = "6aa8fb3d1e5c987b8c5d597827bb25ae"
GRAMMAR_DIGEST = "5a7d24754a70fb7798a06a38096382fc"

_TASK = re.compile(r'Your task is to: ((?:[^"\\]|\\.)*)"')
_HELP_ALTERNATIVE = re.compile(r'"help.feedback": \[\s*\{\s*"rhs": ("(?:[^"\\]|\\.)*")')
_HELP_TEXT = re.compile(r'action help \{[^{}]*feedback :: "([^"]*)"')
_SPELLINGS = (
    ("put {o} in/on {r}", "move {o} to {r}"),
    ("You put the {o.name} in/on the {r.name}.", "You move the {o.name} to the {r.name}."),
    ("You arrive at {lend.name}.", "You arrive at {r.name}."),
)


@dataclass(frozen=True)
class Wording:
    """What differs between the known grammars, and the goal sentence."""

    task: str  # "Your task is to: ..."
    put: tuple[str, str]  # ("move", "to") or ("put", "in/on")
    arrives_at_location: bool  # the arrival text names the viewpoint, not the receptacle
    help: str | None  # the answer to "help", if there is such a command


def check_domain(text: str) -> None:
    """Raise `UnsupportedGame` unless the domain is the known one."""
    if domain_digest(text) != DOMAIN_DIGEST:
        raise UnsupportedGame("The game's PDDL domain is not a known version of ALFRED's.")


@functools.lru_cache(maxsize=16)
def domain_digest(text: str) -> str:
    """A digest of the parsed domain without its help action."""
    tree = parse(text)
    return _digest(json.dumps([part for part in tree if part[:2] != [":action", "help"]]))


def grammar_digest(text: str) -> str:
    """A digest of the grammar modulo goal sentence, help action, spelling and blanks."""
    text = _TASK.sub('Your task is to: X"', text).split("action help {")[0]
    for old, new in _SPELLINGS:
        text = text.replace(old, new)
    return _digest(" ".join(text.split()))


def goal_sentence(grammar: str) -> str:
    """The sentence after "Your task is to: " in any grammar; "" if there is none."""
    found = _TASK.search(grammar)
    return str(json.loads(f'"{found.group(1)}"')) if found else ""


def release_of(grammar: str) -> str:
    """Which data the wording is of, whatever the goal sentence.

    "2.1.1" (put X in/on Y), "2.1.2" (move X to Y, help as plain text), "0.4.2" (as in the wheel of
    that version), or "unknown".
    """
    if _TASK.search(grammar) is None or grammar_digest(grammar) != GRAMMAR_DIGEST:
        return "unknown"
    put_old, said_old, _ = (old in grammar for old, _ in _SPELLINGS)
    if put_old != said_old:
        return "unknown"
    if put_old:
        return "2.1.1"
    return "0.4.2" if _HELP_ALTERNATIVE.search(grammar) else "2.1.2"


@functools.lru_cache(maxsize=256)
def wording(grammar: str) -> Wording:
    """Read what varies in a grammar.

    Raises:
        UnsupportedGame: for a grammar that is not a known version.
    """
    if _TASK.search(grammar) is None or grammar_digest(grammar) != GRAMMAR_DIGEST:
        raise UnsupportedGame("The game's text grammar is not a known version of ALFWorld's.")
    put_old, said_old, _ = (old in grammar for old, _ in _SPELLINGS)
    if put_old != said_old:
        raise UnsupportedGame(
            "The game's text grammar puts things in one wording and says so in another."
        )
    sentence = goal_sentence(grammar)
    if any(mark in sentence for mark in "{}[]#|"):
        raise UnsupportedGame(f"The goal sentence holds grammar marks: {sentence!r:.200}")
    return Wording(
        task=f"Your task is to: {sentence}",
        put=("put", "in/on") if put_old else ("move", "to"),
        arrives_at_location="You arrive at {lend.name}." in grammar,
        help=_help(grammar),
    )


def _help(grammar: str) -> str | None:
    """The help text, JSON or plain, or None; the line break it begins with is not printed."""
    alternative = _HELP_ALTERNATIVE.search(grammar)
    if alternative:
        return str(json.loads(alternative.group(1))).lstrip()
    plain = _HELP_TEXT.search(grammar)
    return plain.group(1).lstrip() if plain else None


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
