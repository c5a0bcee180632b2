"""Options of the scripts that play: the environment, where its copies live, the panel."""

from __future__ import annotations

from dataclasses import dataclass, field

from baselines.environments import Place, Workers, read_settings


@dataclass
class PlaceOptions:
    """Where an experiment takes place, and what it is evaluated on."""

    environment: str | None = field(
        default=None, metadata={"help": "Which of the environments that the recipe file names."}
    )
    env_id: str = field(default="milegpo/ALFWorld-v0", metadata={"help": "Registered environment."})
    env_settings: list[str] = field(
        default_factory=list, metadata={"help": "Arguments of gym.make as key=value, in YAML."}
    )
    eval_split: str = field(default="valid_unseen", metadata={"help": "Split to evaluate on."})
    eval_size: int | None = field(default=None, metadata={"help": "Tasks of the panel; None: all."})
    eval_seeds: list[int] = field(
        default_factory=lambda: [123, 456, 789],
        metadata={"help": "Seeds of the evaluation's replies."},
    )
    horizon: int | None = field(default=None, metadata={"help": "Steps an episode may take."})
    history: int = field(default=2, metadata={"help": "Past steps in a prompt."})
    prompt_style: str = field(default="papers", metadata={"help": "'papers' or 'compact'."})
    env_pool: str = field(
        default="auto",
        metadata={"help": "Where environments live: 'auto', 'local', 'processes' or 'ray'."},
    )
    env_workers: int = field(
        default=0,
        metadata={"help": "Processes or actors for them; 0: as they want, most in this process."},
    )
    env_timeout: float = field(
        default=300.0, metadata={"help": "Seconds a worker has for one step of its environments."}
    )
    ray_address: str | None = field(
        default=None, metadata={"help": "Of a Ray cluster, such as 'auto'; None: starts one here."}
    )

    def place(self) -> Place:
        """Return the environment that they name.

        Raises:
            UnknownName: there is no such environment or kind of pool.
            ValueError: a setting is not of the form key=value, or a number makes no sense.
        """
        return Place(
            self.env_id,
            read_settings(self.env_settings),
            self.horizon,
            self.history,
            self.prompt_style,
            Workers(self.env_pool, self.env_workers, self.env_timeout, self.ray_address),
        )
