from collections.abc import Sequence

import pytest

from baselines.evaluation import Played, evaluate, evaluate_policy, summary
from milegpo_algo.rollout.episode import RolloutFailed
from milegpo_algo.rollout.generator import ChatReply, Messages, Usage
from milegpo_algo.rollout.policy import ChatPolicy
from milegpo_envs.panels import Panel
from tests.milegpo_algo.rollout.fakes import ByteCodec, CountingPool, Parrot

PANEL = Panel("toy/test", ("wins@3", "loses@2", "runs@4", "breaks@2"))


class PaidParrot:
    def chat(self, conversations: Sequence[Messages], keys: Sequence[int]) -> list[ChatReply]:
        return [ChatReply("go", "stop", Usage(7, 2, cost=0.5)) for _ in conversations]


def test_a_panel_is_played_once_per_seed_in_its_order():
    played = evaluate(
        CountingPool(3), Parrot(), ByteCodec(), PANEL, seeds=[1, 2], max_prompt_tokens=99
    )
    assert [(p.task_id, p.seed) for p in played] == [(t, s) for s in (1, 2) for t in PANEL.task_ids]
    assert [p.stop for p in played[:4]] == ["success", "failure", "horizon", "error"]


def test_a_text_model_is_evaluated_like_any_other_and_its_cost_counted():
    by_text = evaluate_policy(CountingPool(3), ChatPolicy(PaidParrot()), PANEL, seeds=[1])
    by_ids = evaluate(
        CountingPool(3), Parrot(), ByteCodec(), PANEL, seeds=[1], max_prompt_tokens=99
    )
    scored = ("success", "score", "success_by", "steps", "format_valid", "stops")
    assert {k: summary(by_text)[k] for k in scored} == {k: summary(by_ids)[k] for k in scored}
    first = by_text[0]
    assert (first.prompt_tokens, first.completion_tokens, first.cost) == (21, 6, 1.5)
    assert by_ids[0].completion_tokens == 9  # three times "go" and its end
    assert by_ids[0].cost == 0.0


def test_rows_from_before_tokens_were_counted_can_be_read():
    assert Played("q", "", 1, True, 1.0, 3, "success", 1.0, 1.0).cost == 0.0


def test_an_evaluation_in_which_no_environment_runs_is_refused():
    panel = Panel("toy/broken", ("never@0", "breaks@1"))
    with pytest.raises(RolloutFailed, match="OSError: no"):
        evaluate_policy(CountingPool(2), ChatPolicy(PaidParrot()), panel, seeds=[1])
