r"""Canonical states and their ids.

A state is said in plain data: dicts with string keys, lists, tuples, sets, strings, ints, bools,
None, finite floats. Its id is blake2b-128 over one canonical JSON text, so it depends on nothing
but the data: not on the process, on PYTHONHASHSEED, on the order in which a dict or set was filled,
or on the route that led to the state.

    state_id(s) = hex(blake2b_128(utf8(canonical_json(s))))

The encoding is injective up to three identities, which make every state readable as JSON: a tuple
is the list of its items, a set is the sorted list of its items, an instance of a subclass of a
plain type is its plain value. All else differs: 1, "1", 1.0 and True; None and "None"; ("a", "b")
and ("a b",); [["a"], "b"] and [["a", "b"]]; 0.0 and -0.0.

This module does not decide what belongs to a state. Leave out whatever may differ between two
visits to one situation: step counts, session names, the order of lists, display text.
"""

from __future__ import annotations

import hashlib
import json
from typing import TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
"""What ``readable`` returns, and what JSON can hold."""


def state_id(canonical: object) -> str:
    """Name a state: 32 hex digits, equal exactly where the canonical states are equal.

    Args:
        canonical: the state as plain data (see the module's docstring).

    Returns:
        blake2b-128 of the canonical JSON text. ``state_id(readable(s)) == state_id(s)``, so an id
        can be checked against the ``state`` logged beside it.

    Raises:
        TypeError: for anything that is not plain data, a non-string dict key, NaN or an infinity.
    """
    return hash_text(canonical_json(canonical))


def hash_text(text: str) -> str:
    """Name a state by its canonical JSON text, for callers that keep parts of it encoded.

    ``state_id(s) == hash_text(canonical_json(s))``.
    """
    # surrogatepass: a lone surrogate in a game's text is data, and must neither raise nor collide.
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def readable(canonical: object) -> Json:
    """Return the state as fresh JSON data: what ``info["state"]`` shows to people and reports."""
    state: Json = json.loads(canonical_json(canonical))
    return state


def canonical_json(canonical: object) -> str:
    """Write a state as JSON: keys sorted, sets sorted by encoded item, no blanks, no escapes.

    Raises:
        TypeError: as ``state_id``.
    """
    if isinstance(canonical, dict):
        _check_keys(canonical)
        items = (
            f"{_encode(key)}:{canonical_json(value)}" for key, value in sorted(canonical.items())
        )
        return "{" + ",".join(items) + "}"
    text = _encode(canonical)
    # json turns the keys 1, True and None into strings, so dicts further down need a look. A text
    # without a brace holds no dict: the usual case, long lists of facts, is left to the C encoder
    # alone.
    if "{" in text:
        _check_nested_keys(canonical)
    return text


def _sorted_set(value: object) -> list[object]:
    """Stand in for what JSON has no form for: a set becomes the list of its items, sorted."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=canonical_json)
    raise TypeError(
        f"{type(value).__name__} cannot be part of a canonical state: {value!r:.200}. Use dicts "
        "with string keys, lists, tuples, sets, str, int, bool, None and finite floats; call "
        ".item() or .tolist() on NumPy values."
    )


_ENCODER = json.JSONEncoder(
    ensure_ascii=False,
    allow_nan=False,
    sort_keys=True,
    separators=(",", ":"),
    default=_sorted_set,
)


def _encode(value: object) -> str:
    """Encode in C; keys of nested dicts are not checked here."""
    try:
        return _ENCODER.encode(value)
    except ValueError as error:  # NaN, an infinity, or a container inside itself
        raise TypeError(f"A canonical state holds finite, acyclic plain data: {error}.") from error


def _check_keys(mapping: dict[object, object]) -> None:
    """Refuse keys that JSON would silently turn into strings."""
    for key in mapping:
        if not isinstance(key, str):
            raise TypeError(
                f"Keys of a canonical state are strings, not {type(key).__name__}: {key!r:.200}. "
                "Write the mapping as a sorted list of (key, value) pairs, or its keys as text."
            )


def _check_nested_keys(value: object) -> None:
    """Check the keys of every dict inside a value that JSON has already accepted."""
    if isinstance(value, dict):
        _check_keys(value)
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for item in value:
        _check_nested_keys(item)
