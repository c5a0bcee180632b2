"""Train one policy with one estimator and evaluate it on a fixed panel.

    python -m scripts.train --env_id milegpo/ALFWorld-v0 --estimator milegpo
    python -m scripts.train --env_id milegpo/ALFWorld-v0 --estimator gigpo --model FOLDER_OR_HUB_ID
    python -m scripts.train ... --resume_from_checkpoint last
    accelerate launch --config_file baselines/recipes/accelerate/zero2.yaml -m scripts.train ...

Options are read from ``--config`` (a YAML file; the main job's by default), then from the command
line, which wins. All of TRL's and transformers' training options are options here too. Without
``--model`` a tiny policy is warm-started on noisy expert episodes, once, and cached.

Writes to ``--output_dir``: ``metrics.jsonl`` (a line an iteration), ``evaluations.jsonl``,
``progress.json``, ``model/``, and last ``result.json``, the result row. SIGTERM or Ctrl-C end it
after the iteration, with a checkpoint to resume from and no result; once more, at once.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

import yaml
from accelerate import PartialState
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from trl import TrlParser

import baselines
from baselines.environments import Place, Workers, read_settings
from baselines.evaluation import evaluate, summary
from baselines.models import end_ids
from baselines.runs import Progress, settings_hash, versions, weights_hash, write_json
from baselines.warm_start import WarmStart, warm_start
from milegpo_algo.config import MultiTurnConfig
from milegpo_algo.rollout.hf_backend import ChatCodec, HFGenerator
from milegpo_algo.trainer import MultiTurnTrainer
from milegpo_algo.trainer.resume import last_checkpoint
from milegpo_envs.errors import EnvError

if TYPE_CHECKING:
    from peft import PeftConfig

    from milegpo_envs.panels import Panel

MAIN_JOB = Path(baselines.__file__).parent / "recipes" / "main_job.yaml"
# What tells the cells of a comparison apart, and where they are kept and shown.
_NOT_SHARED = frozenset(
    (
        *("seed", "estimator", "estimator_settings", "model", "warm_cache", "warm_start_only"),
        *("output_dir", "logging_dir", "run_name", "report_to", "disable_tqdm"),
        *("env_pool", "env_workers", "env_timeout", "ray_address"),
        "resume_from_checkpoint",
    )
)
_EVALUATION_SLOTS = 64


@dataclass
class TrainOptions:
    """What is trained where; the trainer's own options follow."""

    env_id: str = field(default="milegpo/ALFWorld-v0", metadata={"help": "Registered environment."})
    env_settings: list[str] = field(
        default_factory=list, metadata={"help": "Arguments of gym.make as key=value, in YAML."}
    )
    train_split: str = field(default="train", metadata={"help": "Split to train on."})
    eval_split: str = field(default="valid_unseen", metadata={"help": "Split to evaluate on."})
    eval_size: int | None = field(default=None, metadata={"help": "Tasks of the panel; None: all."})
    validation_split: str | None = field(
        default=None,
        metadata={
            "help": "Split to evaluate on while training, and to choose the best checkpoint on; "
            "None: eval_split."
        },
    )
    validation_size: int | None = field(
        default=None, metadata={"help": "Tasks of its panel; None: all."}
    )
    eval_seeds: list[int] = field(
        default_factory=lambda: [123, 456, 789], metadata={"help": "Seeds of the evaluation."}
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
    model: str | None = field(
        default=None, metadata={"help": "Hub id or folder; None: warm start."}
    )
    lora_rank: int = field(
        default=0, metadata={"help": "Train an adapter of this rank on all linear layers; 0: none."}
    )
    warm_episodes: int = field(default=2000, metadata={"help": "Demonstrated episodes."})
    warm_noise: float = field(default=0.35, metadata={"help": "Share of random steps in them."})
    warm_steps: int = field(default=1500, metadata={"help": "Optimizer steps of the warm start."})
    warm_cache: str = field(default="runs/warm_start", metadata={"help": "Where it is kept."})
    warm_start_only: bool = field(
        default=False, metadata={"help": "Make and evaluate the policy to start from; no training."}
    )


class _Report(TrainerCallback):
    """Tells ``progress.json`` about every iteration."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **_: object,
    ) -> None:
        if state.is_world_process_zero:
            self._progress("training", state.global_step, state.max_steps)


def main(argv: Sequence[str] | None = None) -> None:
    """Read the options, train, evaluate, write the result row."""
    given = _with_defaults(list(sys.argv[1:] if argv is None else argv))
    parser = TrlParser((TrainOptions, MultiTurnConfig))
    try:
        options, config = parser.parse_args_and_config(given)
        place = _place(options)
        panel = place.panel(options.eval_split, options.eval_size)
        train_panel = place.panel(options.train_split)
        place.prompted(options.train_split).close()
        if config.final_checkpoint == "best" and options.validation_split in (
            None,
            options.eval_split,
        ):
            raise ValueError(
                "final_checkpoint='best' would choose on the games that the result is measured on: "
                "set validation_split to another split, such as valid_seen."
            )
    except (EnvError, ValueError, FileNotFoundError, ImportError) as error:
        parser.exit(2, f"{parser.prog}: error: {error}\n")
    _run(options, config, place, panel, train_panel)


def _with_defaults(given: Sequence[str]) -> list[str]:
    """Name the configuration, the folder and no tracker where neither file nor command line does.

    "--name=value" becomes two words, as TrlParser finds "--config" in no other way.
    """
    words = [
        word
        for text in given
        for word in (text.split("=", 1) if text.startswith("--") and "=" in text else [text])
    ]
    if "--config" not in words:
        words = ["--config", str(MAIN_JOB), *words]
    after = words[words.index("--config") + 1 :]
    file = Path(after[0]) if after else MAIN_JOB
    said = yaml.safe_load(file.read_text()) if file.is_file() else {}
    for name, value in (("output_dir", "runs/train"), ("report_to", "none")):
        if f"--{name}" not in words and name not in (said or {}):
            words += [f"--{name}", value]
    return words


def _place(options: TrainOptions) -> Place:
    settings = read_settings(options.env_settings)
    return Place(
        options.env_id,
        settings,
        options.horizon,
        options.history,
        options.prompt_style,
        Workers(options.env_pool, options.env_workers, options.env_timeout, options.ray_address),
    )


def _run(
    options: TrainOptions,
    config: MultiTurnConfig,
    place: Place,
    panel: Panel,
    train_panel: Panel,
) -> None:
    started, clock = datetime.now(UTC).isoformat(), time.monotonic()
    folder = Path(config.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    resume = _checkpoint(config.resume_from_checkpoint, folder)
    if PartialState().is_main_process:
        (folder / "result.json").unlink(missing_ok=True)
    progress = Progress(folder)
    with PartialState().main_process_first():
        start_from = options.model or _warm_start(options, place, progress)
    tokenizer = AutoTokenizer.from_pretrained(start_from, padding_side="left")
    eval_pool = place.pool(options.eval_split, min(len(panel.task_ids), _EVALUATION_SLOTS))
    row: dict[str, object] = {"estimator": None, "settings": {}, "seed": None, "rows_trained": 0}
    rule, iterations = "last", 0
    if options.warm_start_only:
        model = AutoModelForCausalLM.from_pretrained(start_from).eval()
    else:
        pool = place.pool(options.train_split, config.tasks_per_iteration * config.num_generations)
        validated = panel
        if options.validation_split is not None:
            validated = place.panel(options.validation_split, options.validation_size)
        validation_pool = place.pool(
            options.validation_split or options.eval_split,
            min(len(validated.task_ids), _EVALUATION_SLOTS),
        )
        trainer = MultiTurnTrainer(
            start_from,
            pool,
            config,
            train_panel.task_ids,
            validated.task_ids,
            validation_pool,
            tokenizer,
            callbacks=[_Report(progress)],
            peft_config=_adapter(options.lora_rank),
        )
        trainer.train(resume_from_checkpoint=resume)
        if trainer.stop_request.signal is not None:
            sys.exit(128 + trainer.stop_request.signal)
        model = _save(trainer, tokenizer, folder / "model")
        if config.final_checkpoint == "best":
            rule = f"best success on {validated.name}, the earliest of equals"
        iterations = trainer.state.global_step
        row = {
            "estimator": config.estimator,
            "settings": trainer.estimator.settings(),
            "seed": config.seed,
            "rows_trained": sum(_read(folder / "metrics.jsonl", "rows")),
            "stopped": trainer.stopped,
        }
        validation_pool.close()
        pool.close()
    if not PartialState().is_main_process:
        return
    played = evaluate(
        eval_pool,
        _policy(model, tokenizer, config),
        ChatCodec(tokenizer, config.chat_template_kwargs),
        panel,
        seeds=options.eval_seeds,
        max_prompt_tokens=config.max_prompt_tokens,
        on_progress=lambda done, total: progress("evaluation", done, total),
    )
    eval_pool.close()
    result = {
        **row,
        "convention": config.convention,
        "env_id": options.env_id,
        "env_settings": dict(place.settings),
        "panel": panel.describe(),
        "data": panel.data,
        "train_panel": {**train_panel.describe(), "data": train_panel.data},
        "eval_seeds": options.eval_seeds,
        "model": start_from,
        "model_hash": weights_hash(Path(start_from)) if Path(start_from).is_dir() else start_from,
        "recipe_hash": settings_hash(_recipe(options, config)),
        "iterations": iterations,
        "checkpoint_rule": rule,
        "versions": versions(),
        **summary(played),
        "started": started,
        "seconds": time.monotonic() - clock,
    }
    write_json(folder / "result.json", result)
    print(f"success {result['success']:.3f} on {panel.name}; {folder / 'result.json'}")


def _warm_start(options: TrainOptions, place: Place, progress: Progress) -> str:
    folder = warm_start(
        lambda: place.env(options.train_split),
        options.env_id,
        WarmStart(
            episodes=options.warm_episodes,
            noise=options.warm_noise,
            steps=options.warm_steps,
            style=options.prompt_style,
            history=options.history,
        ),
        Path(options.warm_cache),
        progress,
    )
    return str(folder)


def _checkpoint(given: str | None, folder: Path) -> str | None:
    """The checkpoint to resume from: a folder, or the 'last' complete one of the run, if any."""
    if given != "last":
        return given
    found = last_checkpoint(folder)
    return None if found is None else str(found)


def _adapter(rank: int) -> PeftConfig | None:
    if rank == 0:
        return None
    try:
        from peft import LoraConfig
    except ImportError as error:
        raise SystemExit("lora_rank needs peft. Run: pip install peft") from error
    return LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear")


def _save(
    trainer: MultiTurnTrainer, tokenizer: PreTrainedTokenizerBase, folder: Path
) -> PreTrainedModel:
    """Save the policy, an adapter merged into it, and return it whole."""
    trainer.save_model(str(folder))
    model: PreTrainedModel = trainer.accelerator.unwrap_model(trainer.model)
    if not trainer.accelerator.is_main_process:
        return model
    tokenizer.save_pretrained(folder)
    if trainer.is_deepspeed_enabled or trainer.is_fsdp_enabled:  # in parts; the folder is whole
        model = AutoModelForCausalLM.from_pretrained(folder).to(trainer.accelerator.device)
    elif hasattr(model, "peft_config"):
        merge = cast("Callable[[], PreTrainedModel]", model.merge_and_unload)
        model = merge()
        model.save_pretrained(folder)
        (folder / "adapter_model.safetensors").unlink(missing_ok=True)
        (folder / "adapter_config.json").unlink(missing_ok=True)
    model.eval()
    return model


def _policy(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, config: MultiTurnConfig
) -> HFGenerator:
    return HFGenerator(
        model,
        end_ids=end_ids(model, tokenizer),
        max_new_tokens=config.max_completion_length,
        temperature=config.eval_temperature,
    )


def _recipe(options: TrainOptions, config: MultiTurnConfig) -> dict[str, object]:
    """Return what cells of one comparison share: every option but those that tell them apart."""
    shared = {**vars(options), **config.to_dict()}
    return {
        name: value
        for name, value in json.loads(json.dumps(shared, default=str)).items()
        if name not in _NOT_SHARED
    }


def _read(path: Path, key: str) -> list[int]:
    return [int(json.loads(line)[key]) for line in path.read_text().splitlines()]


if __name__ == "__main__":
    main()
