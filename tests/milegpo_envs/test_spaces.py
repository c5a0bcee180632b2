import gymnasium as gym
import pytest
from gymnasium.vector.utils import batch_space
from hypothesis import given
from hypothesis import strategies as st

from milegpo_envs.spaces import MessagesSpace, TextSpace


@given(st.text(alphabet=st.characters(exclude_categories=[])))
def test_text_contains_every_string(text):
    assert text in TextSpace()
    assert [{"role": "user", "content": text}] in MessagesSpace()


def test_text_is_bounded():
    assert "abc" in TextSpace(3)
    assert "abcd" not in TextSpace(3)
    assert "" in TextSpace(0)


@pytest.mark.parametrize("other", [None, 1, b"text", ["text"]])
def test_text_contains_nothing_but_strings(other):
    assert other not in TextSpace()


@pytest.mark.parametrize(
    "other",
    [
        "text",
        [],
        ["text"],
        [{"role": "user"}],
        [{"role": "user", "content": None}],
        [{"role": "narrator", "content": "text"}],
        [{"role": "user", "content": "text", "name": "x"}],
        ({"role": "user", "content": "text"},),
    ],
)
def test_messages_contain_nothing_but_messages(other):
    assert other not in MessagesSpace()


def test_conversations_are_messages():
    roles = ("system", "user", "assistant", "user")
    assert [{"role": role, "content": "text"} for role in roles] in MessagesSpace()


@pytest.mark.parametrize("space", [TextSpace(), TextSpace(1), TextSpace(0), MessagesSpace()])
def test_samples_are_members_and_follow_the_seed(space):
    space.seed(7)
    first = [space.sample() for _ in range(50)]
    assert all(sample in space for sample in first)
    space.seed(7)
    assert [space.sample() for _ in range(50)] == first


def test_samples_can_be_written_as_utf_8():
    space = TextSpace(seed=0)
    assert len({space.sample().encode() for _ in range(100)}) > 90


@pytest.mark.parametrize("space", [TextSpace(), MessagesSpace()])
def test_masks_are_refused(space):
    with pytest.raises(ValueError, match="no mask"):
        space.sample(mask=())


def test_spaces_are_equal_by_their_bound():
    assert TextSpace(5) == TextSpace(5, seed=1)
    assert TextSpace(5) != TextSpace(6)
    assert MessagesSpace(5) == MessagesSpace(5, seed=1)
    assert MessagesSpace(5) != MessagesSpace(6)
    assert TextSpace(5) != MessagesSpace(5)


def test_a_negative_bound_is_refused():
    with pytest.raises(ValueError, match="max_length"):
        TextSpace(-1)


@pytest.mark.parametrize("space", [TextSpace(), MessagesSpace()])
def test_spaces_batch_as_tuples(space):
    batched = batch_space(space, 3)
    assert isinstance(batched, gym.spaces.Tuple)
    assert batched.sample() in batched
