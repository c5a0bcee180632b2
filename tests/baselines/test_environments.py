import os
from dataclasses import replace
from unittest.mock import patch

import pytest

from baselines.demonstrations import expert_for
from baselines.environments import Place, Workers
from baselines.evaluation import Played, evaluate_policy
from baselines.players import Advised, Echo
from milegpo_envs.panels import Panel
from milegpo_envs.pool import EnvPool, Pool, ProcessPool, make_pool

SMALL = Place("milegpo/ALFWorld-v0", {"size": "small"}, horizon=8, style="compact")


class Advisable:
    """Makes environments for a scripted player, who wins some of the games in time."""

    def __init__(self, split: str) -> None:
        self.split = split

    def __call__(self) -> Advised:
        return Advised(SMALL.env(self.split), expert_for(SMALL.env_id), style="compact")


def test_workers_reach_the_pool():
    assert isinstance(SMALL.pool("train", 2), EnvPool)
    pool = replace(SMALL, workers=Workers(number=2)).pool("train", 2)
    assert isinstance(pool, ProcessPool)
    tasks = SMALL.panel("train", 2).task_ids
    assert pool.reset(tasks) == SMALL.pool("train", 2).reset(tasks)
    pool.close()


def test_a_pool_is_of_the_kind_asked_for():
    two = replace(SMALL, workers=Workers("processes", 2)).pool("train", 2)
    assert isinstance(two, ProcessPool)
    assert isinstance(replace(SMALL, workers=Workers("local", 2)).pool("train", 2), EnvPool)


def test_a_pool_on_ray_answers_as_one_in_this_process():
    with patch.dict(os.environ, RAY_USAGE_STATS_ENABLED="0"):  # Ray sets more of them
        ray = pytest.importorskip("ray", reason="needs ray: pip install 'milegpo[ray]'")
        pool = replace(SMALL, workers=Workers("ray", 2)).pool("train", 2)
        try:
            assert type(pool).__name__ == "RayPool"
            tasks = SMALL.panel("train", 2).task_ids
            assert pool.reset(tasks) == SMALL.pool("train", 2).reset(tasks)
        finally:
            pool.close()
            ray.shutdown()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kind": "threads"}, "auto, local, processes, ray"),
        ({"number": -1}, "from 0"),
        ({"timeout": 0.0}, "above 0"),
    ],
)
def test_wrong_workers_are_named_at_once(settings, said):
    with pytest.raises(ValueError, match=said):
        Workers(**settings)


def sweep(pool: Pool, panel: Panel) -> list[Played]:
    played = evaluate_policy(pool, Echo(), panel, seeds=[7])
    pool.close()
    return played


def test_a_sweep_plays_each_game_once_with_one_score_at_any_batch_size_and_with_any_workers():
    panel = SMALL.panel("valid_seen")
    expected = sweep(EnvPool(Advisable("valid_seen"), 1), panel)
    assert [episode.task_id for episode in expected] == list(panel.task_ids)
    assert len(set(panel.task_ids)) == 140
    assert 0 < sum(episode.success for episode in expected) < 140
    for size in (64, 128, 140):
        assert sweep(EnvPool(Advisable("valid_seen"), size), panel) == expected
    for workers in (1, 4):
        assert sweep(make_pool(Advisable("valid_seen"), 64, workers=workers), panel) == expected


def test_a_setting_that_no_environment_has_is_named_here_also_from_a_worker():
    odd = Place("milegpo/ALFWorld-v0", {"sise": "small"}, workers=Workers(number=1))
    with pytest.raises(ValueError, match="sise"):
        odd.pool("train", 1).reset(["x"])
