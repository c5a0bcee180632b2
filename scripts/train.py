"""Train one policy with one estimator and evaluate it on a fixed panel.

    python -m scripts.train --env_id milegpo/ALFWorld-v0 --estimator milegpo
    python -m scripts.train --env_id milegpo/ALFWorld-v0 --estimator gigpo --model FOLDER_OR_HUB_ID
    python -m scripts.train --config baselines/recipes/tiny.yaml --environment webshop --method hgpo
    python -m scripts.train ... --resume_from_checkpoint last
    accelerate launch --config_file baselines/recipes/accelerate/zero2.yaml -m scripts.train ...

Options are read from ``--config`` (a YAML file; the main job's by default; ``--environment`` and
``--method`` choose where it names several), then from the command line, which wins. All of TRL's
and transformers' training options are options here too. Without ``--model`` a
tiny policy is warm-started on noisy expert episodes, once, and cached.

Writes to ``--output_dir``: ``metrics.jsonl`` (a line an iteration), ``evaluations.jsonl``,
``progress.json``, ``model/``, and last ``result.json``, the result row. SIGTERM or Ctrl-C end it
after the iteration, with a checkpoint to resume from and no result; once more, at once.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

from accelerate import PartialState
from transformers import (
    PreTrainedModel,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer import TRAINER_STATE_NAME
from trl import TrlParser
from trl.import_utils import is_vllm_available

from baselines.costs import read_costs
from baselines.environments import Place
from baselines.evaluation import Played, check_seeds, evaluate, summary
from baselines.models import check_model, end_ids, load_model, load_processing
from baselines.result_rows import engine, evaluated
from baselines.runs import RESULT, Progress, settings_hash, weights_hash, write_json
from baselines.train_options import Asked, TrainOptions, read_options
from baselines.warm_start import WarmStart, warm_start
from milegpo_algo.config import MultiTurnConfig
from milegpo_algo.rollout.context import prompt_budget
from milegpo_algo.rollout.generator import Generator
from milegpo_algo.rollout.vision import (
    Processing,
    codec_of,
    generator_of,
    tokenizer_of,
    vision_of,
)
from milegpo_algo.trainer import MultiTurnTrainer
from milegpo_algo.trainer.resume import last_checkpoint
from milegpo_envs.errors import EnvError

if TYPE_CHECKING:
    from peft import PeftConfig

    from milegpo_envs.panels import Panel

_EVALUATION_SLOTS = 64


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
    parser = TrlParser((TrainOptions, MultiTurnConfig))
    try:
        asked = read_options(list(sys.argv[1:] if argv is None else argv), parser)
        options = asked.options
        place = options.place()
        check_seeds(options.eval_seeds)
        _warm_settings(options)
        if options.lora_rank < 0:
            raise ValueError(f"lora_rank={options.lora_rank}: must be at least 0.")
        if Path(asked.config.output_dir).is_file():
            raise ValueError(f"output_dir={asked.config.output_dir} is a file: name a folder.")
        panel = place.panel(options.eval_split, options.eval_size)
        train_panel = place.panel(options.train_split)
        place.prompted(options.train_split).close()
        for split, size in (
            (options.validation_split, options.validation_size),
            (options.id_split, options.id_size),
        ):
            if split is not None:
                place.panel(split, size)
        if asked.config.use_vllm and not is_vllm_available():
            raise ImportError("use_vllm needs vLLM. Run: pip install 'milegpo[vllm]'")
        resume = _checkpoint(asked.config.resume_from_checkpoint, Path(asked.config.output_dir))
        if asked.config.final_checkpoint == "best" and options.validation_split in (
            None,
            options.eval_split,
        ):
            raise ValueError(
                "final_checkpoint='best' would choose on the games that the result is measured on: "
                "set validation_split to another split, such as valid_seen."
            )
        if options.model is not None:  # last, as it may ask the hub
            check_model(options.model)
    except (EnvError, ValueError, FileNotFoundError, ImportError) as error:
        parser.exit(2, f"{parser.prog}: error: {error}\n")
    _run(asked, place, panel, train_panel, resume)


def _run(asked: Asked, place: Place, panel: Panel, train_panel: Panel, resume: str | None) -> None:
    options, config = asked.options, asked.config
    started, clock = datetime.now(UTC).isoformat(), time.monotonic()
    folder = Path(config.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    if PartialState().is_main_process:
        (folder / RESULT).unlink(missing_ok=True)
    progress = Progress(folder)
    with PartialState().main_process_first():
        start_from = options.model or _warm_start(options, place, progress)
    processing = load_processing(start_from)
    start_hash = weights_hash(Path(start_from)) if Path(start_from).is_dir() else start_from
    if options.warm_start_only:
        model = load_model(start_from).eval()
        row: dict[str, object] = {
            **{"method": None, "estimator": None, "settings": {}, "seed": None},
            **{"rows_trained": 0, "iterations": 0, "checkpoint_rule": "last"},
            **{"trained_hash": start_hash, "counts": {}},
        }
    else:
        model, row = _trained(asked, place, train_panel, panel, start_from, processing, resume)
    if not PartialState().is_main_process:
        return
    played = _played(asked, place, options.eval_split, panel, model, processing, progress)
    result = {
        **row,
        "convention": config.convention,
        **evaluated(
            place,
            panel,
            played,
            seeds=options.eval_seeds,
            temperature=config.eval_temperature,
            max_completion_length=config.max_completion_length,
        ),
        **_in_distribution(asked, place, model, processing, progress),
        "train_panel": {**train_panel.describe(), "data": train_panel.data},
        "model": start_from,
        "model_hash": start_hash,
        "recipe_hash": settings_hash(_recipe(asked)),
        "options": dict(asked.given),
        "engine": engine(
            "vllm" if config.use_vllm and not options.warm_start_only else "transformers",
            model,
            place,
        ),
        "started": started,
        "seconds": time.monotonic() - clock,
    }
    write_json(folder / RESULT, result)
    said = f"{panel.name} ({panel.data})" if panel.data else panel.name
    print(f"success {result['success']:.3f} on {said}; {folder / RESULT}")


def _trained(
    asked: Asked,
    place: Place,
    train_panel: Panel,
    panel: Panel,
    start_from: str,
    processing: Processing,
    resume: str | None,
) -> tuple[PreTrainedModel, dict[str, object]]:
    """Train; return the policy, and what a result row says of the training."""
    options, config = asked.options, asked.config
    folder = Path(config.output_dir)
    episodes = config.tasks_per_iteration * config.num_generations
    pool = place.pool(options.train_split, math.ceil(episodes / config.world_size))
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
        processing,
        callbacks=[_Report(Progress(folder))],
        peft_config=_adapter(options.lora_rank),
    )
    trainer.train(resume_from_checkpoint=resume)
    if trainer.stop_request.signal is not None:
        sys.exit(128 + trainer.stop_request.signal)
    model = _save(trainer, processing, folder / "model")
    validation_pool.close()
    pool.close()
    rule = "last"
    if config.final_checkpoint == "best":
        rule = f"best success on {validated.name}, the earliest of equals"
    row: dict[str, object] = {
        "method": asked.method,
        "estimator": config.estimator,
        "settings": trainer.estimator.settings(),
        "seed": config.seed,
        "checkpoint_rule": rule,
        "iterations": trainer.state.global_step,
        "stopped": trainer.stopped,
    }
    if trainer.accelerator.is_main_process:
        spent = read_costs(folder)[-1]
        row |= {
            "trained_hash": weights_hash(folder / "model"),
            "rows_trained": spent.rows,
            "counts": spent.counts(),
        }
    return model, row


def _played(
    asked: Asked,
    place: Place,
    split: str,
    panel: Panel,
    model: PreTrainedModel,
    processing: Processing,
    progress: Progress,
) -> list[Played]:
    config = asked.config
    pool = place.pool(split, min(len(panel.task_ids), _EVALUATION_SLOTS))
    try:
        return evaluate(
            pool,
            _policy(model, processing, config),
            codec_of(processing, config.chat_template_kwargs),
            panel,
            seeds=asked.options.eval_seeds,
            max_prompt_tokens=prompt_budget(
                model.config, config.max_prompt_tokens, config.max_completion_length
            ),
            on_progress=lambda done, total: progress("evaluation", done, total),
        )
    finally:
        pool.close()


def _in_distribution(
    asked: Asked,
    place: Place,
    model: PreTrainedModel,
    processing: Processing,
    progress: Progress,
) -> dict[str, object]:
    """Evaluate on tasks like those of training, if asked to."""
    split = asked.options.id_split
    if split is None:
        return {}
    panel = place.panel(split, asked.options.id_size)
    played = _played(asked, place, split, panel, model, processing, progress)
    about = {"panel": {**panel.describe(), "data": panel.data}}
    return {"in_distribution": {**about, **summary(played)}}


def _warm_start(options: TrainOptions, place: Place, progress: Progress) -> str:
    folder = warm_start(
        lambda: place.env(options.train_split),
        options.env_id,
        _warm_settings(options),
        Path(options.warm_cache),
        progress,
    )
    return str(folder)


def _warm_settings(options: TrainOptions) -> WarmStart:
    return WarmStart(
        episodes=options.warm_episodes,
        noise=options.warm_noise,
        steps=options.warm_steps,
        style=options.prompt_style,
        history=options.history,
    )


def _checkpoint(given: str | None, folder: Path) -> str | None:
    """The checkpoint to resume from: a folder, or the 'last' complete one of the run, if any.

    Raises:
        FileNotFoundError: the folder is not a checkpoint.
    """
    if given is not None and given != "last" and not (Path(given) / TRAINER_STATE_NAME).is_file():
        raise FileNotFoundError(
            f"resume_from_checkpoint={given}: no checkpoint is there. Give a folder named "
            f"checkpoint-N in {folder}, or 'last' for its newest complete one."
        )
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


def _save(trainer: MultiTurnTrainer, processing: Processing, folder: Path) -> PreTrainedModel:
    """Save the policy, an adapter merged into it, and return it whole."""
    trainer.save_model(str(folder))
    model: PreTrainedModel = trainer.accelerator.unwrap_model(trainer.model)
    if not trainer.accelerator.is_main_process:
        return model
    processing.save_pretrained(folder)
    if trainer.is_deepspeed_enabled or trainer.is_fsdp_enabled:  # in parts; the folder is whole
        model = load_model(str(folder)).to(trainer.accelerator.device)
    elif hasattr(model, "peft_config"):
        merge = cast("Callable[[], PreTrainedModel]", model.merge_and_unload)
        model = merge()
        model.save_pretrained(folder)
        (folder / "adapter_model.safetensors").unlink(missing_ok=True)
        (folder / "adapter_config.json").unlink(missing_ok=True)
    model.eval()
    return model


def _policy(model: PreTrainedModel, processing: Processing, config: MultiTurnConfig) -> Generator:
    return generator_of(
        model,
        vision_of(processing),
        end_ids=end_ids(model, tokenizer_of(processing)),
        max_new_tokens=config.max_completion_length,
        temperature=config.eval_temperature,
    )


def _recipe(asked: Asked) -> dict[str, object]:
    """Return what cells of one comparison share."""
    everything = {**vars(asked.options), **asked.config.to_dict()}
    return asked.shared(json.loads(json.dumps(everything, default=str)))


if __name__ == "__main__":
    main()
