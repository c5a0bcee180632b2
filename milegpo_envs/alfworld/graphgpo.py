"""GraphGPO's observation as a wrapper: `Prompted(GraphGPOObservation(env))`.

For an environment that is made already; where settings make it, `observation="graphgpo"` does the
same. The text is in `observations`.
"""

from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from milegpo_envs.alfworld.env import ALFWorldEnv
from milegpo_envs.alfworld.observations import with_context


class GraphGPOObservation(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Show the feedback of an ALFWorld environment with location, held object and moved objects.

    Args:
        env: ALFWorld, wrapped or not, but not yet `Prompted`.
    """

    def __init__(self, env: gym.Env[str, str]) -> None:
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        base = env.unwrapped
        if not isinstance(base, ALFWorldEnv):
            raise TypeError(f"GraphGPOObservation needs an ALFWorld environment, not {base}.")
        self._base = base

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode."""
        _, info = self.env.reset(seed=seed, options=options)
        return self._text(), info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Send one command."""
        _, reward, terminated, truncated, info = self.env.step(action)
        return self._text(), float(reward), terminated, truncated, info

    def _text(self) -> str:
        return with_context(self._base.first, self._base.now, self._base.things)
