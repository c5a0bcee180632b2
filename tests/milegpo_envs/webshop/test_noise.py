import gymnasium as gym
import pytest

import milegpo_envs  # noqa: F401  # registers the environments
from milegpo_envs.errors import UnknownName
from milegpo_envs.webshop.noise import ADVERTISEMENTS, Advertised
from milegpo_envs.webshop.prompt import instruction
from milegpo_envs.webshop.render import SEPARATOR
from milegpo_envs.wrappers import Prompted, StateId
from tests.milegpo_envs.contract import check_info

WALK = ["search[small]", "click[next >]", "click[< prev]", "nonsense", "click[back to search]"]


def make(observation="text_rich", **arguments):
    env = gym.make("milegpo/WebShop-v0", products=200, observation=observation)
    return Advertised(env, **{"probability": 1.0, "count": 3, **arguments})


def walk(env, task=0):
    return [env.reset(options={"task": task})] + [
        (observation, info) for observation, *_, info in map(env.step, WALK)
    ]


@pytest.mark.parametrize("place", ["page", "observation"])
@pytest.mark.parametrize("observation", ["text_rich", "text", "html"])
def test_advertisements_are_in_the_page_and_never_in_the_state(observation, place):
    plain = gym.make("milegpo/WebShop-v0", products=200, observation=observation)
    for (seen, info), (bare, quiet) in zip(
        walk(make(observation, place=place)), walk(plain), strict=True
    ):
        check_info(info, quiet["task_id"])
        assert len(set(info["advertisements"])) == 3
        assert all(ad in seen and ad not in bare for ad in info["advertisements"])
        assert (info["state"], info["state_id"]) == (quiet["state"], quiet["state_id"])
        added = set(info["admissible_actions"]) - set(quiet["admissible_actions"])
        assert len(added) == (3 if place == "page" else 0)


@pytest.mark.parametrize("observation", ["text_rich", "text"])
def test_without_its_advertisements_a_page_is_what_it_was(observation):
    plain = gym.make("milegpo/WebShop-v0", products=200, observation=observation)
    glue = SEPARATOR if observation == "text" else "\n"
    noisy = walk(make(observation, place="observation"))
    for (seen, info), (bare, _) in zip(noisy, walk(plain), strict=True):
        kept = [line for line in seen.split(glue) if line not in info["advertisements"]]
        assert glue.join(kept) == bare
        assert instruction(seen) == instruction(bare)


def test_advertisements_depend_on_seed_task_and_step_alone():
    assert walk(make()) == walk(make())
    env = make()
    walk(env, task=3)
    assert walk(env) == walk(make())
    ads = {
        tuple(info["advertisements"])
        for env, task in ((make(), 0), (make(), 1), (make(seed=1), 0))
        for _, info in walk(env, task)
    }
    assert len(ads) > 15


def test_the_probability_is_one_of_pages():
    env = make(probability=0.3, count=1)
    shown = []
    for task in range(60):
        shown += [bool(info["advertisements"]) for _, info in walk(env, task)]
    assert 0.2 < sum(shown) / len(shown) < 0.4
    assert not any(info["advertisements"] for _, info in walk(make(probability=0.0)))


def test_a_clicked_advertisement_leads_nowhere_and_is_no_mistake():
    env = make()
    _, start = env.reset(options={"task": 0})
    target = start["advertisements"][0]
    _, reward, terminated, _, info = env.step(f"click[{target}]")
    assert (reward, terminated, info["action_valid"]) == (0.0, False, True)
    assert info["state_id"] == start["state_id"]
    quiet = make(place="observation")
    _, start = quiet.reset(options={"task": 0})
    assert not quiet.step(f"click[{start['advertisements'][0]}]")[4]["action_valid"]


def test_what_cannot_be_is_refused():
    with pytest.raises(UnknownName, match="page, observation"):
        make(place="wall")
    with pytest.raises(UnknownName, match="text_rich"):
        make("url")
    with pytest.raises(ValueError, match="probability"):
        make(probability=1.5)
    with pytest.raises(ValueError, match="count"):
        make(count=len(ADVERTISEMENTS) + 1)


def test_it_works_under_prompts_and_states_by_what_is_seen():
    messages, _ = Prompted(make()).reset(options={"task": 0})
    assert "Sponsored: " in messages[0]["content"]
    ids = {
        StateId(make(seed=seed), lambda seen, _: seen).reset(options={"task": 0})[1]["state_id"]
        for seed in range(4)
    }
    assert len(ids) == 4


def test_the_wrapped_environment_can_be_made_again_from_its_spec():
    env = make(seed=4)
    assert walk(env.spec.make()) == walk(env)
