"""Settings of a training run: TRL's `GRPOConfig`, the papers' recipe, multi-turn credit.

What is wrong fails here, by name, before a model is loaded.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import torch
from trl import GRPOConfig

from milegpo_algo import make_estimator
from milegpo_algo.config_checks import Penalise, check


@dataclass
class MultiTurnConfig(GRPOConfig):  # type: ignore[misc]  # trl ships no types
    """Settings of `MultiTurnTrainer`; everything not listed is TRL's or transformers' own.

    One optimizer-loop step of transformers is one iteration: `tasks_per_iteration` tasks are rolled
    out `num_generations` times each, and every environment step becomes a row. `max_steps`,
    `save_steps`, `logging_steps`, `eval_steps` and the learning rate schedule count iterations.
    `per_device_train_batch_size` is the largest number of rows in one backward
    pass: it decides memory and speed, never the result.

    Defaults follow the training recipe of GiGPO (arXiv:2505.10978) and its successors: AdamW at
    1e-6, constant; clip 0.2 on both sides and 3.0 for negative advantages (`delta` is the dual clip
    of arXiv:1912.09729); mean over tokens ("dapo"); KL k3 to the reference policy, 0.01, without
    importance ratio; temperature 1.0 in rollouts and 0.4 in evaluation.
    """

    estimator: str = field(
        default="milegpo",
        metadata={"help": "Credit estimator, one of `milegpo_algo.estimator_names()`."},
    )
    convention: str = field(
        default="paper",
        metadata={"help": "Where papers and reference code disagree: 'paper' or 'verl-agent'."},
    )
    recipe: str | None = field(
        default=None,
        metadata={"help": "The papers' estimator settings for 'alfworld', 'webshop' or 'sokoban'."},
    )
    estimator_settings: list[str] = field(
        default_factory=list,
        metadata={
            "help": "Settings of the estimator as key=value, such as eta=0.2. In Python a mapping "
            "will do too."
        },
    )
    penalise: Penalise = field(
        default="format",
        metadata={
            "help": "What makes a row invalid for the estimator's penalty: a malformed reply "
            "('format', the papers'), an inadmissible action ('admissible'), or either ('both')."
        },
    )
    tasks_per_iteration: int = field(
        default=16, metadata={"help": "Tasks rolled out in an iteration."}
    )
    num_generations: int = field(
        default=8, metadata={"help": "Rollouts of each task (the papers' K); 1 is allowed."}
    )
    mini_batch_size: int = field(
        default=256,
        metadata={
            "help": "Most rows, over all processes, that an optimizer step averages over. An "
            "iteration takes as few steps as this allows, on mini-batches of even size."
        },
    )
    max_prompt_tokens: int = field(
        default=2048,
        metadata={
            "help": "Budget of a prompt. Oldest history is dropped first; if nothing fits, the "
            "episode is cut."
        },
    )
    dataloader_pin_memory: bool = field(
        default=False, metadata={"help": "Of the data loader, which only counts iterations here."}
    )
    eval_temperature: float = field(
        default=0.4, metadata={"help": "Sampling temperature of evaluation; 0 is greedy."}
    )
    eval_seed: int = field(
        default=0,
        metadata={"help": "Names the randomness of evaluation, whatever `seed` trains with."},
    )
    use_sampled_logprobs: bool | None = field(
        default=None,
        metadata={
            "help": "Use the log-probs recorded while sampling as the old log-probs. None: yes, "
            "where the model that samples is the model that is trained. The gap between the two "
            "is logged in every iteration."
        },
    )
    kl_limit: float = field(
        default=2.6,
        metadata={
            "help": "The log-ratio of reference to sampling policy is cut at this before the KL "
            "term, whose exponential is unbounded; cuts are counted in `kl_cuts`. At the default "
            "the term is 10, where verl cuts it."
        },
    )
    importance_correction: str | None = field(
        default=None,
        metadata={
            "help": "Weighs each token by its probability when trained over that when sampled: "
            "'token_truncate', cut at importance_cap, or 'none'. None: 'token_truncate' where an "
            "engine of its own samples (use_vllm) and old log-probs are recomputed."
        },
    )
    importance_cap: float = field(
        default=2.0, metadata={"help": "Largest weight of importance_correction."}
    )
    dynamic_sampling_rounds: int = field(
        default=1,
        metadata={
            "help": "Rounds of rollouts an iteration may take to find groups whose returns differ: "
            "those whose returns are equal are replaced by fresh tasks, but not in the last round. "
            "1 replaces none; the papers' dynamic sampling is 10."
        },
    )
    degenerate_kl: bool = field(
        default=True,
        metadata={
            "help": "Whether rows without advantage of groups with equal returns are trained on, "
            "by the KL term alone. They count in the mean either way."
        },
    )
    flat_patience: int = field(
        default=10,
        metadata={
            "help": "Stop after so many iterations in a row that had nothing to learn from: no "
            "advantage, or every reply cut, or every ratio clipped. 0: never."
        },
    )
    critic: str = field(
        default="separate",
        metadata={
            "help": "Of estimators that need values: a model of its own ('separate'), or a value "
            "head on the policy's last hidden states ('shared')."
        },
    )
    critic_model: str | None = field(
        default=None,
        metadata={"help": "Where a separate critic starts from; None: where the policy does."},
    )
    critic_learning_rate: float = field(
        default=1e-5, metadata={"help": "Of a separate critic, or of the value head."}
    )
    value_clip: float = field(
        default=0.5, metadata={"help": "A value moves at most so far from its old one per update."}
    )
    value_coefficient: float = field(
        default=0.1, metadata={"help": "Weight of a shared critic's loss beside the policy's."}
    )
    final_checkpoint: str = field(
        default="last",
        metadata={
            "help": "Which policy a run ends with: the 'last', or the 'best' evaluation's (success "
            "on eval_tasks; the earliest of equals). Decide before the run."
        },
    )
    trajectory_steps: int = field(
        default=0,
        metadata={"help": "Iterations between those whose episodes are written out; 0: none are."},
    )
    rollout_halves: int = field(
        default=1,
        metadata={
            "help": "2: half of the environments step while the other half is answered. Pays where "
            "stepping is slow and does not compete with the model."
        },
    )
    vllm_seeded: bool = field(
        default=True,
        metadata={
            "help": "Each row draws from its own random numbers, whatever the batch; of a server, "
            "one request a row."
        },
    )
    generation_rows: int = field(
        default=128, metadata={"help": "Most rows sampled at once by the transformers backend."}
    )

    # Defaults of TRL and transformers that the papers' recipe, or one log line an iteration,
    # changes.
    beta: float = field(
        default=0.01, metadata={"help": "Coefficient of the KL term; 0 needs no reference model."}
    )
    delta: float | None = field(
        default=3.0, metadata={"help": "Largest ratio that counts where the advantage is negative."}
    )
    use_bias_correction_kl: bool = field(
        default=False, metadata={"help": "Multiply the KL term by the importance ratio."}
    )
    disable_dropout: bool = field(
        default=True, metadata={"help": "Sampling and training must see the same model."}
    )
    lr_scheduler_type: str = field(
        default="constant", metadata={"help": "Learning rate schedule, by iteration."}
    )
    logging_steps: float = field(default=1, metadata={"help": "Iterations between log lines."})
    per_device_train_batch_size: int = field(
        default=16, metadata={"help": "Most rows in one backward pass, on one process."}
    )
    bf16: bool | None = field(
        default=None, metadata={"help": "Mixed precision. None: on where there is a GPU."}
    )
    gradient_checkpointing: bool | None = field(
        default=None, metadata={"help": "Trade time for memory. None: on where there is a GPU."}
    )

    def __post_init__(self) -> None:
        """Check the settings and derive TRL's batch sizes."""
        self.estimator_arguments: dict[str, object] = parse_settings(self.estimator_settings)
        make_estimator(
            self.estimator,
            convention=self.convention,
            recipe=self.recipe,
            **self.estimator_arguments,
        )
        check(vars(self))
        on_gpu = torch.cuda.is_available() and not self.use_cpu
        if self.bf16 is None and not self.fp16:
            self.bf16 = on_gpu
        if self.gradient_checkpointing is None:
            self.gradient_checkpointing = on_gpu
        self._choose_logprobs()
        if self.final_checkpoint == "best":
            self._keep_best()
        self._derive()

    @property
    def device(self) -> torch.device:
        """Where this process computes: "cpu" for accelerate's "cpu:0", which torch.load refuses."""
        device = cast(torch.device, super().device)
        return torch.device("cpu") if device.type == "cpu" else device

    def _choose_logprobs(self) -> None:
        """Decide whose log-probs are the old ones, and whether the engine's are corrected."""
        if self.importance_correction is None:
            recompute = self.use_vllm and self.use_sampled_logprobs is not True
            self.importance_correction = "token_truncate" if recompute else "none"
        corrects = self.importance_correction != "none"
        if self.use_sampled_logprobs is None:
            self.use_sampled_logprobs = not self.use_vllm and not corrects
        if corrects and self.use_sampled_logprobs:
            raise ValueError(
                "importance_correction compares recomputed with sampled log-probs: leave "
                "use_sampled_logprobs off, whose ratio already starts from the sampled ones."
            )
        self.vllm_importance_sampling_correction = False  # TRL's; ours needs no vLLM

    def _keep_best(self) -> None:
        if self.eval_strategy == "no":
            raise ValueError("final_checkpoint='best': set eval_strategy and eval_steps.")
        self.load_best_model_at_end = True
        self.metric_for_best_model, self.greater_is_better = "eval_success", True
        self.save_strategy, self.save_steps = self.eval_strategy, self.eval_steps

    def _derive(self) -> None:
        """Derive TRL's sizes, which know one row a rollout and at least two rollouts a task."""
        rows, rollouts = self.per_device_train_batch_size, self.num_generations
        self.steps_per_generation = self.generation_batch_size = None
        self.per_device_train_batch_size = self.num_generations = max(2, rollouts)
        self.num_generations_eval = 1
        super().__post_init__()
        self.per_device_train_batch_size, self.num_generations = rows, rollouts
        episodes = math.ceil(self.tasks_per_iteration * rollouts / self.world_size)
        self.steps_per_generation = math.ceil(episodes / rows)
        self.generation_batch_size = self.steps_per_generation * rows * self.world_size


def parse_settings(settings: object) -> dict[str, object]:
    """Read `["eta=0.2", "norm=mean"]`, or a mapping; values are Python literals or plain words."""
    if isinstance(settings, Mapping):
        return dict(settings)
    pairs: dict[str, object] = {}
    for item in cast(list[str], settings):
        key, equals, text = item.partition("=")
        if not equals:
            raise ValueError(f"estimator_settings: {item!r} is not of the form key=value.")
        try:
            pairs[key.strip()] = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError):  # a bare word
            pairs[key.strip()] = text.strip()
    return pairs
