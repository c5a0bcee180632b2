"""textworld's expensive pure functions with their results kept.

Each is the original memoised, or the original without copies that nobody writes to, so texts,
commands and facts stay what they were; only the optimised translation for textworld's planner is
replaced by the plain one, and no engine here asks the planner. `exchanged` puts them in place for
the duration of a call and nothing else in the process sees them.
"""

import copy
import functools
import re
from typing import Any

import fast_downward
from textworld.envs.pddl import logic as pddl_logic
from textworld.envs.pddl import textgen
from textworld.logic import Rule

from milegpo_envs.alfworld.exchange import Exchange

_GAMES = 32  # whose translations and commands are kept, some megabytes each

_original_parse = textgen._parse_and_convert
_original_query = Rule.parse_conjunctive_query
_original_derive = textgen.ContextSensitiveGrammar.derive
_original_translate = fast_downward.pddl2sas
_OriginalLogic = pddl_logic.GameLogic


_PREDICATE = re.compile(r"(\w+)\(")
_NEVER_CHANGING = frozenset(("receptacleatlocation",))


@functools.lru_cache(maxsize=_GAMES)
def _commands(problem: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], str]:
    """The texts of a game that depend on their arguments and on what never changes."""
    return {}


@functools.lru_cache(maxsize=4096)
def _parsed(text: str, rule_name: str) -> tuple[Any, ...]:
    return tuple(_original_parse(text, rule_name=rule_name))


def _parse(text: str, rule_name: str, **_: object) -> list[Any]:
    """Symbols of a grammar text. Copies, as the caller gives each a context."""
    return [copy.copy(symbol) for symbol in _parsed(text, rule_name)]


class _MemoisedRule:
    """Stands in for `textworld.logic.Rule` in the text generator, which parses queries with it."""

    parse_conjunctive_query = staticmethod(functools.lru_cache(maxsize=4096)(_original_query))


def _copy_context(context: dict[str, Any]) -> dict[str, Any]:
    """The original copies both mappings deeply, but derivations only rebind their entries."""
    return {
        **context,
        "variables": dict(context["variables"]),
        "mapping": dict(context["mapping"]),
    }


def _copy_symbol(symbol: Any, context: dict[str, Any]) -> Any:
    """The original copies the symbol's old context deeply before it replaces it."""
    out = copy.copy(symbol)
    out.context = _copy_context(context)
    return out


def _replace(grammar: Any, start: Any) -> list[Any]:
    """The right-hand side of the first applicable rule; the original tries the others too."""
    rules = grammar._rules.get(str(start))
    if not rules:
        raise textgen.CSGUnknownSymbolError(start)
    state, mapping = start.context["state"], start.context["mapping"]
    for rule in rules:
        if not rule.condition:
            break
        query = _MemoisedRule.parse_conjunctive_query(rule.condition)
        if next(iter(state.all_assignments(query, mapping)), None) is not None:
            break
    else:
        raise IndexError("list index out of range")  # the original's words
    return [_copy_symbol(symbol, start.context) for symbol in rule.rhs]


def _derive(grammar: Any, start: str, context: dict[str, Any]) -> str:
    """Derive a text, or find it, if it depends on its arguments and on what never changes."""
    if "#" in start or not set(_PREDICATE.findall(start)) <= _NEVER_CHANGING:
        return str(_original_derive(grammar, start, context))
    arguments = tuple((key.name, value.name) for key, value in context["mapping"].items())
    known = _commands(context["state"].pddl_problem)
    text = known.get((start, arguments))
    if text is None:
        text = known[start, arguments] = str(_original_derive(grammar, start, context))
    return text


@functools.lru_cache(maxsize=_GAMES)
def _translated(domain: str, problem: str) -> tuple[Any, str]:
    task, sas = _original_translate(domain, problem, verbose=False, optimize=False)
    return task, sas


def _translate(
    domain: str, problem: str, verbose: bool = False, optimize: bool = False
) -> tuple[Any, str]:
    """The optimised translation serves textworld's planner only, which no engine here asks."""
    return _translated(domain, problem)


@functools.lru_cache(maxsize=_GAMES)
def _logic(domain: str, grammar: str) -> Any:
    """Parsed grammar and actions; PddlState adds types to it every time and expects repeats."""
    return _OriginalLogic(domain=domain, grammar=grammar)


MEMOISED: tuple[Exchange, ...] = (
    (textgen, "_parse_and_convert", _parse),
    (textgen, "Rule", _MemoisedRule),
    (textgen, "copy_context", _copy_context),
    (textgen.Symbol, "copy", _copy_symbol),
    (textgen.ContextSensitiveGrammar, "replace", _replace),
    (textgen.ContextSensitiveGrammar, "derive", _derive),
    (fast_downward, "pddl2sas", _translate),
    (pddl_logic, "GameLogic", _logic),
)
