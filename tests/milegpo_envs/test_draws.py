from milegpo_envs.draws import Draws


def test_draws_of_a_name_never_change():
    draws = Draws("a name")
    assert [draws.integer(1, 100) for _ in range(6)] == [49, 58, 46, 97, 58, 77]
    assert draws.shuffled("abcdef") == list("fdbcea")
    assert draws.weighted("xyz", [1, 2, 3]) == "z"


def test_draws_stay_in_their_bounds_and_reach_them():
    draws = Draws("bounds")
    assert {draws.integer(2, 4) for _ in range(200)} == {2, 3, 4}
    assert all(-1 <= draws.uniform(-1, 1) < 1 for _ in range(200))
    assert {draws.weighted("abc", [1, 0, 1]) for _ in range(200)} == {"a", "c"}
    assert sorted(draws.shuffled(range(9))) == list(range(9))


def test_names_are_separate_streams():
    assert Draws("a").uniform(0, 1) != Draws("b").uniform(0, 1)
    assert Draws("a").uniform(0, 1) == Draws("a").uniform(0, 1)
