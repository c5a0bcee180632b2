"""Settings, conventions, recipes, the registry, and the pieces below the estimators."""

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest

from milegpo_algo import advantages, estimator, estimator_names, make_estimator
from milegpo_algo.data import compact
from milegpo_algo.estimators.grpo import GRPO
from milegpo_algo.graph import StateGraph
from milegpo_algo.returns import normalise
from tests.milegpo_algo.toy_rollouts import fork_records, path, rollouts


def test_the_eight_are_there():
    eight = {"gigpo", "graphgpo", "grpo", "hgpo", "milegpo", "ppo", "progpo", "rloo"}
    assert eight <= set(estimator_names())


@pytest.mark.parametrize("name", estimator_names())
def test_settings_go_to_json_and_back_to_the_same_estimator(name):
    made = make_estimator(name, convention="verl-agent", penalty=0.2)
    settings = json.loads(json.dumps(made.settings()))
    assert settings.pop("estimator") == name
    assert settings["convention"] == "verl-agent"
    assert "convention" not in settings.values()
    assert make_estimator(name, **settings) == made


@pytest.mark.parametrize("name", estimator_names())
def test_a_recipe_changes_only_what_it_names(name):
    plain = make_estimator(name)
    for recipe, preset in type(plain).recipes.items():
        changed = make_estimator(name, recipe=recipe).settings().items() - plain.settings().items()
        assert dict(changed).items() <= dict(preset).items()


def test_a_setting_overrides_its_convention_alone():
    made = make_estimator("grpo", convention="verl-agent", episode_score="trajectory")
    assert isinstance(made, GRPO)
    assert made.episode_score == "trajectory"
    assert made.episode_statistics == "rows"


def test_a_setting_overrides_its_recipe():
    assert make_estimator("graphgpo", recipe="webshop", omega=0.5).settings()["omega"] == 0.5


def test_the_class_reads_the_convention_too():
    assert GRPO(convention="verl-agent") == make_estimator("grpo", convention="verl-agent")


def test_settings_cannot_be_written_to():
    with pytest.raises(FrozenInstanceError):
        GRPO().norm = "mean"


def test_one_class_makes_an_estimator(monkeypatch):
    monkeypatch.setattr(estimator, "_REGISTRY", dict(estimator._REGISTRY))

    @estimator.register("constant")
    @dataclass(frozen=True, kw_only=True)
    class Constant(estimator.StepEstimator):
        value: float = estimator.setting(1.0)

        def compute(self, rollouts):
            return np.full(len(rollouts), self.value)

    assert "constant" in estimator_names()
    np.testing.assert_array_equal(advantages(rollouts(fork_records()), "constant", value=2.0), 2.0)


def test_importing_the_package_imports_no_deep_learning_library():
    code = "import sys, milegpo_algo; print({'torch', 'transformers', 'trl'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("statistics", "score", "wanted"),
    [
        # Z by trajectory: 10 - 0.1 = 9.9 (two rows), 0 (one row); by row: 9.9, 10 and 0.
        ("trajectories", "trajectory", [4.95, 4.95, -4.95]),
        ("rows", "trajectory", [3.3, 3.3, -6.6]),
        ("rows", "row", [9.9 - 19.9 / 3, 10 - 19.9 / 3, -19.9 / 3]),
        # The trajectory enters as the mean of its rows, 9.95; each row keeps its own score.
        ("trajectories", "row", [9.9 - 4.975, 10 - 4.975, -4.975]),
    ],
)
def test_every_combination_of_episode_settings(statistics, score, wanted):
    records = [*path("q", "1", "SA", success=True, malformed=[0]), *path("q", "2", "SB")]
    found = advantages(
        rollouts(records),
        "grpo",
        norm="mean",
        episode_statistics=statistics,
        episode_score=score,
    )
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_norm_leaves_no_rounding_noise_in_a_constant_group():
    values = np.array([0.1] * 10 + [1.0, 2.0, 3.0])
    group = np.array([0] * 10 + [1] * 3)
    found = normalise(values, group, 2, "mean_std")
    np.testing.assert_array_equal(found[:10], 0.0)
    # mean 2, std 1
    np.testing.assert_allclose(found[10:], [-1 / (1 + 1e-6), 0.0, 1 / (1 + 1e-6)])


def test_a_member_at_the_mean_is_exactly_zero_whatever_the_order():
    # 0.1 + 0.2 + 0.3 is not 3 * 0.2 in floating point.
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        values = np.array([0.1, 0.2, 0.3])[order]
        found = normalise(values, np.zeros(3, dtype=np.int64), 1, "mean")
        assert found[order.index(1)] == 0.0


def test_compact_numbers_keys_in_order_however_large():
    for keys in ([7, 3, 7, 9], [2**61, 5, 2**61, 2**62]):
        ids, count = compact(np.array(keys))
        assert (ids.tolist(), count) == ([1, 0, 1, 2], 3)


def test_distances_count_edges_to_the_goal_of_the_own_task():
    found = rollouts(fork_records(), path("p", "1", "SAB"))
    distance = dict(zip(found.states, StateGraph.build(found).goal_distance, strict=False))
    assert StateGraph.build(found).goal_distance.tolist() == [
        *(2.0, 2.0, 1.0, np.inf, np.inf),  # S, A, B, D, E of task q
        *(np.inf, np.inf, np.inf),  # S, A, B of task p
        *(0.0, np.inf),  # the two goals; nobody reached that of p
    ]
    assert len(distance) == 5


def test_one_search_gives_the_best_of_all_targets():
    # S - A - B - C - goal; C weighs 1, A 0.5: from S, 0.5 * 0.2 beats 1 * 0.2^3.
    found = rollouts(path("q", "1", "SABC", success=True))
    weight = np.array([0.0, 0.5, 0.0, 1.0, 0.0])
    wanted = [0.1, 0.5, 0.2, 1.0, 0.0]
    np.testing.assert_allclose(StateGraph.build(found).potential(weight, 0.2), wanted)


def test_similar_states_become_one():
    # A and A' point the same way: their visits form one group, and S A' inherits A's distance.
    records = [
        *path("q", "1", ["S", "A"], success=True),
        *path("q", "2", ["S", "A'", "X"]),
        *path("q", "3", ["S", "X"]),
    ]
    where = {"S": [1, 0, 0], "A": [0, 1, 0], "A'": [0, 1, 0.1], "X": [0, 0, 1]}

    def embedder(states):
        return np.array([where[state] for state in states], dtype=float)

    plain = advantages(rollouts(records), "graphgpo", episode_weight=0.0)
    merged = advantages(rollouts(records), "graphgpo", episode_weight=0.0, embedder=embedder)
    assert plain[0] > plain[2]  # S -> A beats S -> A'
    assert merged[0] == merged[2]  # one and the same move
    assert plain[3] == 0.0  # A' was left once
    assert merged[3] < 0.0  # now compared with A -> goal


def test_the_cheapest_action_prices_an_edge():
    records = [*path("q", "1", "SA", success=True), *path("q", "2", "SB", success=True)]
    found = advantages(
        rollouts(records),
        "graphgpo",
        norm="mean",
        omega=0.5,
        episode_weight=0.0,
        action_cost=lambda action: 3.0 if action == "to end" else 1.0,
    )
    np.testing.assert_array_equal(found, 0.0)
    records[3]["action"] = "jump"
    found = advantages(
        rollouts(records),
        "graphgpo",
        norm="mean",
        omega=0.5,
        episode_weight=0.0,
        action_cost={"to end": 3.0},
    )
    # r = 10 * 0.5^(3 + 1) through A, 10 * 0.5^(1 + 1) through B; half their difference is 0.9375
    np.testing.assert_allclose(found, [-0.9375, 0.0, 0.9375, 0.0])
