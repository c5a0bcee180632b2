import json
import os
import subprocess
import sys
from enum import IntEnum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from milegpo_envs.state import canonical_json, readable, state_id

# Letters on which encodings trip: JSON's delimiters, escapes, digits, surrogates and their pair.
LETTERS = '",:[]{}\\ 01ae\n\x00é\ud83d\ude00😀'
TEXTS = st.text(alphabet=LETTERS, max_size=4)
SCALARS = st.one_of(
    TEXTS,
    st.sampled_from(["", "1", "null", "true", "1.0"]),
    st.integers(-2, 2),
    st.booleans(),
    st.none(),
    st.sampled_from([0.0, 1.0, -1.0, 0.1, 1e300]),
)
PLAIN = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(TEXTS, inner, max_size=3),
    ),
    max_leaves=6,
)
FACTS = st.frozensets(st.tuples(TEXTS, TEXTS), max_size=8)


def normal_form(value):
    """Slow, obvious reference: every value beside its kind; tuples are lists."""
    if isinstance(value, dict):
        return ("dict", tuple(sorted((k, normal_form(v)) for k, v in value.items())))
    if isinstance(value, list | tuple):
        return ("list", tuple(normal_form(v) for v in value))
    return (type(value).__name__, repr(value))


@given(PLAIN, PLAIN)
def test_ids_are_equal_exactly_where_states_are(one, other):
    assert (state_id(one) == state_id(other)) == (normal_form(one) == normal_form(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "b"), ("a b",)),
        (("a", "b"), ("a,b",)),
        (("a", "b"), ('a","b',)),
        (1, "1"),
        (1, True),
        (0, False),
        (1, 1.0),
        (None, "None"),
        (None, "null"),
        (None, False),
        ([], {}),
        ([], [[]]),
        ([], None),
        ("", None),
        ([["a"], "b"], [["a", "b"]]),
        ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
        ({"a": {"b": 1}}, {"a": {}, "b": 1}),
        ("\ud83d\ude00", "😀"),
        ("é", "e\u0301"),
        ("a", "A"),
        ("a", "a "),
    ],
)
def test_look_alikes_have_different_ids(one, other):
    assert state_id(one) != state_id(other)


@given(FACTS, st.randoms())
def test_the_order_of_sets_and_dicts_does_not_matter(facts, random):
    shuffled = list(facts)
    random.shuffle(shuffled)
    items = [(str(i), fact) for i, fact in enumerate(sorted(facts))]
    one = {"facts": frozenset(facts), **dict(items)}
    random.shuffle(items)
    other = {**dict(items), "facts": set(shuffled)}
    assert state_id(one) == state_id(other)


@given(FACTS, st.tuples(TEXTS, TEXTS))
def test_one_changed_fact_changes_the_id(facts, fact):
    assert state_id(facts ^ {fact}) != state_id(facts)


def test_the_order_of_a_list_is_part_of_the_state():
    assert state_id(["a", "b"]) != state_id(["b", "a"])


def test_sets_of_mixed_items_are_sorted_too():
    mixed = {1, "1", None, ("a", 2), frozenset({"b", "a"})}
    assert canonical_json(mixed) == '["1",1,["a","b"],["a",2],null]'


@given(PLAIN)
def test_the_readable_state_has_the_same_id_and_survives_json(value):
    assert state_id(readable(value)) == state_id(value)
    # With \u escapes JSON cannot tell two lone surrogates from the letter that they would make.
    assert json.loads(json.dumps(readable(value), ensure_ascii=False)) == readable(value)


def test_the_readable_state_is_a_copy():
    state = {"boxes": [[1, 2]]}
    copy = readable(state)
    copy["boxes"][0][0] = 9
    assert state == {"boxes": [[1, 2]]}


def test_subclasses_of_plain_types_are_their_plain_values():
    class Colour(IntEnum):
        RED = 1

    assert state_id([Colour.RED, np.str_("a"), np.float64(0.5)]) == state_id([1, "a", 0.5])


@pytest.mark.parametrize(
    "value",
    [
        b"bytes",
        object(),
        float("nan"),
        [float("inf")],
        {1: "int key"},
        [{1: "int key"}],
        {"a": ({"b": [{None: 1}]},)},
        [{True: 1}, "{"],
        np.int64(1),
        np.zeros(2),
        {"a": {2, b"x"}},
        1j,
    ],
)
def test_anything_else_is_refused(value):
    with pytest.raises(TypeError, match="canonical state"):
        state_id(value)


def test_a_state_inside_itself_is_refused():
    loop = []
    loop.append(loop)
    with pytest.raises(TypeError, match="acyclic"):
        state_id(loop)


def test_a_brace_in_a_string_is_no_dict():
    assert state_id(["{", "}"]) == state_id(("{", "}"))


def test_ids_are_the_same_in_another_process_under_another_hash_seed():
    state = {"game": "g", "facts": {("at", f"desk {i}", "ü") for i in range(20)}}
    code = (
        "from milegpo_envs.state import state_id;"
        "print(state_id({'facts': {('at', f'desk {i}', 'ü') for i in range(20)}, 'game': 'g'}))"
    )
    root = Path(__file__).parents[2]
    for seed in ("0", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        printed = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert printed.stdout.strip() == state_id(state)


def test_the_id_is_blake2b_of_the_canonical_json():
    # printf '{"at":["desk",1],"held":null}' | b2sum -l 128
    assert canonical_json({"held": None, "at": ("desk", 1)}) == '{"at":["desk",1],"held":null}'
    assert state_id({"held": None, "at": ("desk", 1)}) == "f3e3a9cdf49cfd3c71042da49d467fd4"
