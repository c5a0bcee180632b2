import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv

from milegpo_envs.errors import UnknownName
from milegpo_envs.state import state_id
from milegpo_envs.wrappers import Prompted, StateId
from tests.milegpo_envs.contract import check_info, gymnasium_is_content
from tests.toys import HORIZON, HOUSE_ID, TASKS, House, solution, well_formed

TASK = "carry-lamp-to-cellar"


def prompted(**settings):
    return Prompted(gym.make(HOUSE_ID), **settings)


def text_of(messages):
    (message,) = messages
    assert message["role"] == "user"
    return message["content"]


@pytest.mark.parametrize("style", ["papers", "compact"])
def test_prompted_passes_gymnasiums_own_check(style):
    with gymnasium_is_content():
        check_env(prompted(style=style))


def test_an_episode_of_replies_solves_the_task():
    env = prompted()
    _, info = env.reset(options={"task": TASK})
    check_info(info, TASK)
    for action in solution(TASK):
        _, reward, terminated, truncated, info = env.step(well_formed(action.upper()))
        check_info(info, TASK)
        assert info["executed_action"] == action
        assert info["format_valid"] is True
        assert info["format_problem"] is None
        assert truncated is False
    assert (reward, terminated, info["success"]) == (10.0, True, True)


def test_reset_says_that_nothing_was_executed():
    _, info = prompted().reset(options={"task": TASK})
    assert info["executed_action"] == ""
    assert info["format_valid"] is True
    assert info["format_problem"] is None
    assert info["shorter_prompts"] == []


def test_a_malformed_reply_still_acts_and_spends_a_step():
    env = prompted()
    env.reset(options={"task": TASK})
    messages, reward, terminated, _, info = env.step("<action>go to study</action>")
    assert info["executed_action"] == "go to study"
    assert (info["format_valid"], info["format_problem"]) == (False, "no_think")
    assert info["action_valid"] is True
    assert (reward, terminated) == (0.0, False)
    assert "You are in the study." in text_of(messages)
    assert "You are at step 2." in text_of(messages)


def test_an_inadmissible_action_is_well_formed():
    env = prompted()
    env.reset(options={"task": TASK})
    messages, *_, info = env.step(well_formed("fly"))
    assert info["format_valid"] is True
    assert info["action_valid"] is False
    assert "Nothing happens." in text_of(messages)


def test_cjk_is_malformed_only_on_request():
    reply = well_formed("look", thought="走")
    for forbid_cjk, problem in ((False, None), (True, "cjk")):
        env = prompted(forbid_cjk=forbid_cjk)
        env.reset(options={"task": TASK})
        assert env.step(reply)[4]["format_problem"] == problem


def test_prompts_show_the_last_pairs_and_shorter_ones_drop_the_oldest():
    env = prompted(history=3)
    env.reset(options={"task": TASK})
    for action in solution(TASK)[:5]:
        messages, *_, info = env.step(well_formed(action))
    shown = [
        [step for step in range(1, 7) if f"[step {step}] action:" in text_of(prompt)]
        for prompt in (messages, *info["shorter_prompts"])
    ]
    assert shown == [[3, 4, 5], [4, 5], [5], []]
    for prompt in (messages, *info["shorter_prompts"]):
        assert "Steps taken so far: 5." in text_of(prompt)
        assert "carry the lamp to the cellar" in text_of(prompt)
        assert "You are in the hall." in text_of(prompt)


def test_early_prompts_have_only_the_pairs_there_are():
    env = prompted()
    env.reset(options={"task": TASK})
    lengths = [len(env.step(well_formed("look"))[4]["shorter_prompts"]) for _ in range(4)]
    assert lengths == [1, 2, 2, 2]


def test_no_history_means_no_pairs_and_nothing_to_drop():
    env = prompted(history=0)
    env.reset(options={"task": TASK})
    messages, *_, info = env.step(well_formed("look"))
    assert "[step" not in text_of(messages)
    assert info["shorter_prompts"] == []


def test_a_reset_forgets_the_episode_before():
    env = prompted()
    first, _ = env.reset(options={"task": TASK})
    env.step(well_formed("look"))
    again, _ = env.reset(options={"task": TASK})
    assert again == first


def test_answers_share_nothing_with_earlier_ones():
    env = prompted()
    env.reset(options={"task": TASK})
    one, *_, info = env.step(well_formed("look"))
    kept = [dict(message) for message in one], dict(info)
    one[0]["content"] = "changed"
    info["admissible_actions"].clear()
    two, *_, after = env.step(well_formed("look"))
    assert "changed" not in text_of(two)
    assert after["admissible_actions"]
    assert kept[0][0]["content"] != "changed"


def test_the_horizon_is_gymnasiums():
    env = prompted()
    env.reset(options={"task": TASK})
    truncated = [env.step("?")[3] for _ in range(HORIZON)]
    assert truncated == [False] * (HORIZON - 1) + [True]


def test_a_step_before_the_first_reset_is_refused():
    with pytest.raises(gym.error.ResetNeeded):
        Prompted(House()).step("look")


def test_wrong_settings_fail_at_once():
    with pytest.raises(UnknownName, match="papers, compact"):
        prompted(style="paper")
    with pytest.raises(ValueError, match="history"):
        prompted(history=-1)


class Pixels(gym.Env):
    observation_space = gym.spaces.Discrete(2)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 1, 1, False, False, {"kept": True}


def test_an_environment_without_text_is_refused_with_a_remedy():
    with pytest.raises(TypeError, match="observes text"):
        Prompted(Pixels()).reset()


def test_the_spec_rebuilds_the_wrapped_environment():
    env = prompted(history=1, style="compact").spec.make()
    assert isinstance(env, Prompted)
    assert (env.template, env.unwrapped.task_ids()) == (
        House.prompt_templates["compact"],
        tuple(TASKS),
    )
    env.reset(options={"task": TASK})
    for _ in range(2):
        info = env.step(well_formed("look"))[4]
    assert len(info["shorter_prompts"]) == 1


def test_prompted_environments_can_be_vectorised():
    envs = SyncVectorEnv([prompted, prompted])
    messages, _ = envs.reset(seed=3, options={"task": TASK})
    assert [len(m) for m in messages] == [1, 1]
    messages, rewards, *_ = envs.step((well_formed("look"), "?"))
    assert "Nothing happens." in text_of(messages[1])
    assert rewards.tolist() == [0.0, 0.0]
    envs.close()


def test_any_environment_can_be_given_state_ids():
    env = StateId(Pixels(), lambda observation, info: {"cell": observation, "odd": {"b", "a"}})
    _, info = env.reset()
    assert info["state"] == {"cell": 0, "odd": ["a", "b"]}
    assert info["state_id"] == state_id(info["state"])
    _, reward, _, _, after = env.step(0)
    assert after["state_id"] != info["state_id"]
    assert after["kept"] is True
    assert (reward, type(reward)) == (1.0, float)


def test_state_ids_can_be_replaced_under_prompts():
    by_text = StateId(gym.make(HOUSE_ID), lambda observation, info: observation)
    env = Prompted(by_text)
    env.reset(options={"task": TASK})
    info = env.step("?")[4]
    assert info["state_id"] == state_id("Nothing happens.")
