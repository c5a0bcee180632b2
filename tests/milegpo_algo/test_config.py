import math
from dataclasses import replace
from typing import get_args

import pytest
import torch
from trl import GRPOConfig

from milegpo_algo.config import MultiTurnConfig, Penalise, parse_settings
from milegpo_algo.rollout.collect import PENALISE


def config(tmp_path, **settings) -> MultiTurnConfig:
    return MultiTurnConfig(output_dir=str(tmp_path), use_cpu=True, **settings)


def test_defaults_are_the_papers_recipe(tmp_path):
    args = config(tmp_path)
    expected = {
        "estimator": "milegpo",
        "tasks_per_iteration": 16,
        "num_generations": 8,
        "mini_batch_size": 256,
        "learning_rate": 1e-6,
        "lr_scheduler_type": "constant",
        "beta": 0.01,
        "use_bias_correction_kl": False,
        "epsilon": 0.2,
        "delta": 3.0,
        "loss_type": "dapo",
        "temperature": 1.0,
        "eval_temperature": 0.4,
        "max_completion_length": 512,
        "penalise": "format",
        "num_iterations": 1,
    }
    assert {name: getattr(args, name) for name in expected} == expected


def test_without_a_gpu_training_is_in_float32_without_checkpointing(tmp_path):
    args = config(tmp_path)
    assert args.bf16 is False
    assert args.gradient_checkpointing is False


def test_an_unknown_estimator_lists_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match=r"gigpo.*milegpo"):
        config(tmp_path, estimator="gipgo")


def test_an_unknown_setting_lists_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match="step_weight"):
        config(tmp_path, estimator="gigpo", estimator_settings=["weight=2"])


def test_a_setting_s_value_is_checked(tmp_path):
    with pytest.raises(ValueError, match="gamma"):
        config(tmp_path, estimator="gigpo", estimator_settings=["gamma=much"])


def test_unknown_conventions_and_recipes_are_refused(tmp_path):
    with pytest.raises(ValueError, match="verl-agent"):
        config(tmp_path, convention="verl")
    with pytest.raises(ValueError, match="webshop"):
        config(tmp_path, recipe="shop")


@pytest.mark.parametrize(
    ("given", "parsed"),
    [
        (["a=0.9", "b=mean", "c=True", "d=3"], {"a": 0.9, "b": "mean", "c": True, "d": 3}),
        ([" gamma = 1e-3 "], {"gamma": 1e-3}),
        ([], {}),
        ({"gamma": 0.9}, {"gamma": 0.9}),
    ],
)
def test_settings_are_key_value_pairs_or_a_mapping(given, parsed):
    assert parse_settings(given) == parsed


def test_a_setting_without_value_is_refused():
    with pytest.raises(ValueError, match="key=value"):
        parse_settings(["gamma"])


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        ({"gradient_accumulation_steps": 4}, "mini_batch_size"),
        ({"top_p": 0.9}, "whole distribution"),
        ({"top_k": 5}, "whole distribution"),
        ({"scale_rewards": "none"}, "estimator_settings"),
        ({"generation_kwargs": {"top_p": 0.5}}, "temperature"),
        ({"penalise": "none"}, "format, admissible, both"),
        ({"loss_type": "ppo"}, "dapo"),
        ({"temperature": 0.0}, "above 0"),
        ({"num_generations": 0}, "at least 1"),
        ({"mini_batch_size": 0}, "at least 1"),
        ({"kl_limit": 0.0}, "above 0"),
        ({"importance_cap": 0.0}, "above 0"),
        ({"value_clip": -1.0}, "above 0"),
        ({"flat_patience": -1}, "at least 0"),
        ({"dynamic_sampling_rounds": 0}, "at least 1"),
        ({"critic": "none"}, "separate, shared"),
        ({"importance_correction": "sequence"}, "none, token_truncate"),
        ({"final_checkpoint": "first"}, "last, best"),
        ({"final_checkpoint": "best"}, "eval_strategy"),
        ({"rollout_halves": 3}, "1, 2"),
        ({"num_iterations": 0}, "at least 1"),
        ({"beta": -0.1}, "at least 0"),
        ({"epsilon": -0.1}, "at least 0"),
        ({"epsilon_high": -0.1}, "at least 0"),
        ({"delta": 1.1, "epsilon": 0.2}, "None is no dual clip"),
        ({"tasks_per_iteration": 10**9}, "8,000,000,000 episodes"),
    ],
)
def test_what_has_no_effect_or_no_sense_is_refused_with_the_remedy(tmp_path, setting, remedy):
    with pytest.raises(ValueError, match=remedy):
        config(tmp_path, **setting)


@pytest.mark.parametrize(
    "name",
    [
        "beta",
        "delta",
        "epsilon",
        "entropy_coef",
        "eval_temperature",
        "importance_cap",
        "kl_limit",
        "learning_rate",
        "max_grad_norm",
        "temperature",
        "value_clip",
        "value_coefficient",
    ],
)
def test_what_is_not_a_number_is_refused_by_name(tmp_path, name):
    with pytest.raises(ValueError, match=f"{name}=nan"):
        config(tmp_path, **{name: math.nan})


def test_a_device_is_named_as_torch_load_takes_it(tmp_path, monkeypatch):
    """Among several processes accelerate says "cpu:0", of which torch.load knows nothing."""
    args = config(tmp_path)
    monkeypatch.setattr(GRPOConfig, "device", torch.device("cpu", 0))
    torch.save(torch.ones(2), tmp_path / "ones.pt")
    loaded = torch.load(tmp_path / "ones.pt", map_location=args.device, weights_only=True)
    assert loaded.tolist() == [1.0, 1.0]
    monkeypatch.setattr(GRPOConfig, "device", torch.device("cuda", 1))
    assert args.device == torch.device("cuda", 1)


@pytest.mark.parametrize("rollouts", [1, 2, 8])
def test_any_number_of_rollouts_and_rows_will_do(tmp_path, rollouts):
    args = config(
        tmp_path, num_generations=rollouts, tasks_per_iteration=3, per_device_train_batch_size=7
    )
    assert (args.num_generations, args.per_device_train_batch_size) == (rollouts, 7)
    assert args.steps_per_generation == -(-3 * rollouts // 7)


def test_evaluation_needs_no_divisible_batch(tmp_path):
    config(tmp_path, eval_strategy="steps", eval_steps=5, per_device_eval_batch_size=3)


def test_a_config_can_be_changed_and_checked_again(tmp_path):
    args = replace(config(tmp_path, estimator="gigpo", num_generations=4), num_generations=6)
    assert (args.num_generations, args.estimator) == (6, "gigpo")


def test_both_lists_of_penalties_agree():
    assert get_args(Penalise) == PENALISE


def test_every_setting_of_its_own_has_a_help_text():
    every = MultiTurnConfig.__dataclass_fields__
    helps = [every[name].metadata["help"] for name in MultiTurnConfig.__annotations__]
    assert len(helps) > 15
    assert all(text.endswith(".") for text in helps)


def test_an_engine_of_its_own_is_corrected_for_and_old_logprobs_recomputed(tmp_path):
    own = config(tmp_path)
    engine = config(tmp_path, use_vllm=True)
    assert (own.use_sampled_logprobs, own.importance_correction) == (True, "none")
    assert (engine.use_sampled_logprobs, engine.importance_correction) == (False, "token_truncate")
    told = config(tmp_path, use_vllm=True, use_sampled_logprobs=True)
    assert told.importance_correction == "none"


def test_the_best_checkpoint_is_saved_as_often_as_evaluated(tmp_path):
    args = config(tmp_path, final_checkpoint="best", eval_strategy="steps", eval_steps=5)
    assert (args.save_steps, args.metric_for_best_model) == (5, "eval_success")
    assert args.load_best_model_at_end
