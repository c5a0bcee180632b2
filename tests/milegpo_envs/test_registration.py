import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import gymnasium as gym
import pytest

import milegpo_envs

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("env_id", milegpo_envs.ENTRY_POINTS)
def test_every_id_is_registered_with_its_horizon_and_its_folder_exists(env_id):
    entry_point, horizon = milegpo_envs.ENTRY_POINTS[env_id]
    spec = gym.spec(env_id)
    assert (spec.entry_point, spec.max_episode_steps) == (entry_point, horizon)
    assert find_spec(entry_point.partition(":")[0]) is not None


def test_importing_the_package_imports_no_environment_and_no_model_library():
    code = "import sys, milegpo_envs; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    unwanted = {"alfworld", "textworld", "torch", "transformers", "trl", "flask", "selenium"}
    assert unwanted.isdisjoint(out.stdout.split())


def test_importing_the_shared_modules_imports_no_environment():
    modules = [
        "errors",
        "state",
        "spaces",
        "replies",
        "prompts",
        "wrappers",
        "pool",
        "panels",
        "vector",
    ]
    code = "import sys\n" + "\n".join(f"import milegpo_envs.{m}" for m in modules)
    code += "\nprint(*(m for m in sys.modules if m.startswith('milegpo_envs.')))"
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    environments = {point.split(".")[1] for point, _ in milegpo_envs.ENTRY_POINTS.values()}
    assert not {name.split(".")[1] for name in out.stdout.split()} & environments
