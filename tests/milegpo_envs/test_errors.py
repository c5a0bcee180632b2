import pickle

import pytest

from milegpo_envs.errors import DataMissing, EnvError, SlotError, UnknownName, unknown_name


def test_an_unknown_name_lists_the_valid_ones_and_guesses():
    text = str(unknown_name("split", "trian", ["train", "valid_seen", "valid_unseen"]))
    assert text == (
        "Unknown split 'trian'. Did you mean 'train'? Valid: train, valid_seen, valid_unseen."
    )


def test_names_unlike_any_other_get_no_guess():
    assert str(unknown_name("mode", 7, ["fixed"])) == "Unknown mode 7. Valid: fixed."


def test_long_lists_are_cut_and_counted():
    text = str(unknown_name("task", "x", (f"task-{i}" for i in range(3553))))
    assert "task-23, ... (3,553 in all)." in text
    assert "task-24" not in text


def test_an_empty_list_says_so():
    assert "none to choose from" in str(unknown_name("task", "x", []))


def test_long_names_are_cut():
    assert len(str(unknown_name("task", "x" * 10**6, ["a"]))) < 400


@pytest.mark.parametrize("kind", [DataMissing, UnknownName, SlotError])
def test_errors_are_env_errors_and_cross_processes(kind):
    error = pickle.loads(pickle.dumps(kind("what to do")))
    assert isinstance(error, EnvError)
    assert str(error) == "what to do"


def test_an_unknown_name_is_a_value_error():
    with pytest.raises(ValueError, match="Unknown split"):
        raise unknown_name("split", "x", ["train"])
