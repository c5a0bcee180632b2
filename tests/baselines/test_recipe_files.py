import subprocess
import sys

import pytest
from trl import TrlParser

from baselines.recipe_files import (
    ESTIMATORS,
    MAIN_JOB,
    RECIPES,
    as_words,
    default_methods,
    read_plan,
)
from baselines.train_options import TrainOptions, read_options
from milegpo_algo import make_estimator
from milegpo_algo.config import MultiTurnConfig

FILES = [path for path in sorted(RECIPES.glob("*.yaml")) if path.name != "methods.yaml"]
CELLS = [
    (path, environment, method)
    for path in FILES
    for plan in [read_plan(path)]
    for environment in plan.environments
    for method in plan.methods[environment]
    if plan.declared
]
METHODS = (
    *("grpo", "rloo", "ppo", "gigpo", "hgpo", "graphgpo", "graphgpo-dynamic", "progpo", "milegpo"),
    *("milegpo-without-pcc", "milegpo-without-pcc-rcs"),
)


def options(path, environment, method):
    words = ["--config", str(path), "--method", method]
    words += ["--environment", environment] if environment else []
    return read_options(words, TrlParser((TrainOptions, MultiTurnConfig)))


@pytest.mark.parametrize(
    ("path", "environment", "method"), CELLS, ids=lambda value: getattr(value, "stem", value)
)
def test_every_method_of_every_comparison_is_read(path, environment, method):
    asked = options(path, environment, method)
    assert asked.method == method
    assert asked.config.estimator == method.split("-")[0]
    assert asked.options.place().env_id in (
        "milegpo/ALFWorld-v0",
        "milegpo/WebShop-v0",
        "milegpo/Sokoban-v0",
    )
    if path.name == "papers.yaml":
        assert (asked.config.final_checkpoint, asked.config.learning_rate) == ("best", 1e-6)
        assert asked.options.validation_split not in (None, asked.options.eval_split)


def test_the_comparisons_hold_every_method_on_every_environment():
    for name in ("papers.yaml", "tiny.yaml"):
        plan = read_plan(RECIPES / name)
        assert {"alfworld", "webshop", "sokoban"} <= set(plan.environments)
        assert all(tuple(methods) == METHODS for methods in plan.methods.values())
        assert default_methods(plan) == METHODS


def test_methods_have_the_settings_of_their_papers():
    def made(environment, method):
        asked = options(RECIPES / "papers.yaml", environment, method).config
        return make_estimator(
            asked.estimator, recipe=asked.recipe, **asked.estimator_arguments
        ).settings()

    assert made("alfworld", "graphgpo")["omega"] == 0.10
    assert made("webshop", "graphgpo")["omega"] == 0.20
    assert made("sokoban", "graphgpo")["omega"] == 0.80
    assert made("webshop", "gigpo")["norm"] == "mean"
    assert made("alfworld", "milegpo")["eta"] == 0.20
    assert made("webshop", "milegpo")["eta"] == 1.00
    assert made("sokoban", "milegpo") == made("alfworld", "milegpo")
    assert made("webshop", "milegpo-without-pcc")["stage"] == "rcs"
    assert made("webshop", "milegpo-without-pcc-rcs")["stage"] == "md"
    dynamic = options(RECIPES / "papers.yaml", "webshop", "graphgpo-dynamic").config
    assert dynamic.dynamic_sampling_rounds == 10
    assert options(RECIPES / "papers.yaml", "alfworld-300", "milegpo").config.max_steps == 300
    assert options(RECIPES / "papers.yaml", "webshop-30", "milegpo").options.horizon == 30


def test_a_recipe_that_names_no_methods_compares_four_estimators():
    plan = read_plan(MAIN_JOB)
    assert (default_methods(plan), plan.seeds) == (ESTIMATORS, (1, 2, 3))
    assert plan.varied == ()
    assert plan.options("")["env_id"] == "milegpo/ALFWorld-v0"


def test_an_environment_completes_its_base(tmp_path):
    (tmp_path / "base.yaml").write_text("env_id: a\nhorizon: 15\n")
    (tmp_path / "all.yaml").write_text(
        "beta: 0\nmethods: [grpo]\nenvironments:\n  one: {base: base.yaml, horizon: 30}\n"
    )
    plan = read_plan(tmp_path / "all.yaml")
    assert plan.options("one") == {"beta": 0, "env_id": "a", "horizon": 30}
    assert plan.options("one", "grpo")["estimator"] == "grpo"


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("methods: {long: {max_steps: 300}}", "max_steps, which all methods share"),
        ("methods: {grp: {}}", "did you mean 'grpo'"),
        ("methods: {milegpo: {estimator_settings: {etaa: 1}}}", "did you mean 'eta'"),
        ("methods: {hgpo: {recipe: sokoban}}", "hgpo recipe"),
        ("methods: 3", "name: value"),
        ("environments: {a: {methods: {grpo: {}}}}\nmethods: [rloo]", "there are not"),
        ("[", "not YAML"),
        ("- 1", "name: value"),
    ],
)
def test_what_is_wrong_is_named_before_anything_runs(tmp_path, text, remedy):
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=remedy):
        read_plan(path)


def test_unknown_environments_and_methods_are_listed():
    plan = read_plan(RECIPES / "tiny.yaml")
    with pytest.raises(ValueError, match="Valid: alfworld, webshop, sokoban"):
        plan.options("doom")
    with pytest.raises(ValueError, match="Valid: grpo, rloo"):
        plan.options("webshop", "grp")
    with pytest.raises(ValueError, match="choose one with --environment"):
        options(RECIPES / "tiny.yaml", "", "grpo")


def test_options_become_words():
    given = {"seeds": [1, 2], "flag": True, "none": None, "beta": 0.5}
    assert as_words(given) == ["--seeds", "1", "2", "--flag", "true", "--beta", "0.5"]


def test_no_recipe_waits_for_torch():
    code = "import sys, baselines.recipe_files; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
