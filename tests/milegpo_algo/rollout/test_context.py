import pytest
from transformers import AutoConfig

from milegpo_algo.rollout.context import prompt_budget

PLAIN = AutoConfig.for_model("qwen2", max_position_embeddings=100)
SEEING = AutoConfig.for_model("qwen2_5_vl", text_config={"max_position_embeddings": 100})
ENDLESS = AutoConfig.for_model("mamba")


@pytest.mark.parametrize(
    ("config", "asked", "reply", "budget"),
    [
        (PLAIN, 60, 40, 60),
        (PLAIN, 61, 40, 60),
        (PLAIN, 5000, 99, 1),
        (SEEING, 5000, 40, 60),
        (ENDLESS, 5000, 40, 5000),
    ],
)
def test_a_prompt_and_its_reply_fit_the_context(config, asked, reply, budget):
    assert prompt_budget(config, asked, reply) == budget


@pytest.mark.parametrize("config", [PLAIN, SEEING])
def test_a_reply_that_leaves_no_room_is_refused(config):
    with pytest.raises(ValueError, match="Lower max_completion_length below 100"):
        prompt_budget(config, 60, 100)
