"""Text environments with canonical state ids, under one Gymnasium contract.

Importing this package registers the environments by string entry points and imports none of their
dependencies:

    import gymnasium as gym
    import milegpo_envs  # noqa: F401

    env = gym.make("milegpo/ALFWorld-v0", split="valid_unseen")
    observation, info = env.reset(options={"task": env.unwrapped.task_ids()[0]})

Every environment takes and returns text, ends on success with reward 10.0 (0.0 on every other
step), spends a step on an invalid action without raising, and fills these info keys after ``reset``
and after every ``step``:

    task_id             str            stable name of the task instance
    state_id            str            32 hex digits, see ``milegpo_envs.state``
    state               JSON           what the id hashes, or how it differs from the first state
    admissible_actions  list[str]      sorted, as the environment accepts them
    action_valid        bool           of the action just taken; True after reset
    invalid_reason      str or None
    success             bool           the task's own criterion, never "done"
    score               float          graded where the task is graded, else success as a float

The rest of the package builds on that contract only: ``wrappers`` (chat prompts in, raw replies
out), ``pool`` (many environments in lockstep), ``vector`` (the same by ``gym.make_vec``),
``panels`` (fixed lists of tasks for evaluation).

An environment is a folder and a line in ``ENTRY_POINTS``. Its class has ``task_ids()``, takes
``reset(options={"task": id})``, fills the keys above, and may bring ``prompt_templates`` (see
``prompts``); it imports nothing from other environments.
"""

import gymnasium as gym

ENTRY_POINTS: dict[str, tuple[str, int]] = {
    "milegpo/ALFWorld-v0": ("milegpo_envs.alfworld.env:ALFWorldEnv", 50),
    "milegpo/Sokoban-v0": ("milegpo_envs.sokoban.env:SokobanEnv", 15),
    "milegpo/WebShop-v0": ("milegpo_envs.webshop.text_env:WebShopEnv", 15),
    "milegpo/WebShopBrowser-v0": ("milegpo_envs.webshop.browser_env:WebShopBrowserEnv", 15),
}
"""Registered id -> (entry point, steps until truncation)."""

for _id, (_entry_point, _horizon) in ENTRY_POINTS.items():
    if _id not in gym.registry:
        gym.register(
            id=_id,
            entry_point=_entry_point,
            max_episode_steps=_horizon,
            vector_entry_point=f"milegpo_envs.vector:{_id}",
        )
