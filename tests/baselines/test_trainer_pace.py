"""The bench of the trainer, on a model that learnt nothing and episodes of two steps."""

from argparse import Namespace

import pytest
import torch

from baselines import trainer_pace


@pytest.mark.skipif(torch.cuda.is_available(), reason="times by the clock there, on a larger model")
def test_both_trainers_are_measured_on_the_steps_they_train(tmp_path):
    place = trainer_pace._place(2)
    brief = trainer_pace.WarmStart(episodes=8, steps=2)
    env_id, cache = trainer_pace.ENV, tmp_path / "cache"
    model = trainer_pace.warm_start(lambda: place.env("train"), env_id, brief, cache)
    options = Namespace(
        horizons=[2], tasks=1, model=str(model), cache=str(cache), micro=8, ours_only=False
    )
    report = trainer_pace.report(options)
    ours, theirs = (dict(zip(report.columns, row, strict=True)) for row in report.rows)
    assert ours["steps"] == theirs["steps"] == 8 * 2
    assert ours["times"] == pytest.approx(ours["steps/s"] / theirs["steps/s"])
    assert 0 <= ours["padding %"] < 100
    assert 0 < ours["other %"] < 100
