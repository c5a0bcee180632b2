"""A game's goal, ground once to alternatives: it holds when all facts of any one alternative hold.

    exists x: P(x) and Q(x)   ->   {P(a), Q(a)} or {P(b), Q(b)} or ...

ALFRED's goals are existential conjunctions, with a few static literals that leave few alternatives.
Anything else is refused.
"""

from collections.abc import Iterable

from milegpo_envs.alfworld.engine import CHANGING, Fact, UnsupportedGame
from milegpo_envs.alfworld.pddl import Problem, Tree, typed

Binding = dict[str, str]


def ground_goal(problem: Problem) -> tuple[frozenset[Fact], ...]:
    """The alternatives, as sets of changing facts; none of them contains another.

    Raises:
        UnsupportedGame: for a goal with disjunctions, universal quantifiers or negated facts.
    """
    types: dict[str, str] = {}
    literals = _flatten(problem.goal, {}, types)
    static = [(False, f) for negated, f in literals if not negated and f[0] not in CHANGING]
    unequal = [f for negated, f in literals if negated]
    changing = [f for negated, f in literals if not negated and f[0] in CHANGING]
    for fact in unequal:
        if fact[0] != "=":
            raise UnsupportedGame(f"A goal with a negated fact: {fact}")

    bindings: list[Binding] = [{}]
    for _, pattern in static:
        known = [fact for fact in problem.init if fact[0] == pattern[0]]
        bindings = [new for old in bindings for new in _matches(pattern, known, old)]
    named = sorted({word for fact in changing + unequal for word in fact[1:] if word in types})
    for variable in named:
        objects = [name for name, type in problem.objects if type == types[variable]]
        bindings = [
            new
            for old in bindings
            for new in ([old] if variable in old else [{**old, variable: o} for o in objects])
        ]
    alternatives = {
        frozenset(_substitute(fact, binding) for fact in changing)
        for binding in bindings
        if all(len(set(_substitute(fact, binding)[1:])) == 2 for fact in unequal)
    }
    return _minimal(alternatives)


def _flatten(tree: Tree, scope: Binding, types: dict[str, str]) -> list[tuple[bool, Fact]]:
    """The (negated, literal) pairs of an existential conjunction, variables renamed apart."""
    if isinstance(tree, str) or not tree:
        raise UnsupportedGame(f"Not a goal formula: {tree!r:.200}")
    head, *rest = tree
    if head == "and":
        return [literal for part in rest for literal in _flatten(part, scope, types)]
    if head == "exists" and len(rest) == 2 and isinstance(rest[0], list):
        inner = dict(scope)
        for variable, type in typed(rest[0]):
            inner[variable] = f"{variable}~{len(types)}"
            types[inner[variable]] = type
        return _flatten(rest[1], inner, types)
    if head == "not" and len(rest) == 1:
        [(negated, literal)] = _flatten(rest[0], scope, types)
        return [(not negated, literal)]
    if all(isinstance(word, str) for word in tree) and head not in ("or", "forall", "imply"):
        return [(False, (str(head), *(scope.get(str(w), str(w)) for w in rest)))]
    raise UnsupportedGame(f"A goal that is no existential conjunction: {tree!r:.200}")


def _matches(pattern: Fact, facts: Iterable[Fact], binding: Binding) -> Iterable[Binding]:
    for fact in facts:
        new = dict(binding)
        if len(fact) == len(pattern) and all(
            new.setdefault(word, value) == value if word.startswith("?") else word == value
            for word, value in zip(pattern[1:], fact[1:], strict=True)
        ):
            yield new


def _substitute(fact: Fact, binding: Binding) -> Fact:
    return tuple(binding.get(word, word) for word in fact)


def _minimal(alternatives: set[frozenset[Fact]]) -> tuple[frozenset[Fact], ...]:
    kept: list[frozenset[Fact]] = []
    for alternative in sorted(alternatives, key=lambda a: (len(a), sorted(a))):
        if not any(other <= alternative for other in kept):
            kept.append(alternative)
    return tuple(kept)
