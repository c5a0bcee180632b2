"""Evaluate a model on a fixed panel: every task exactly once per seed.

    python -m scripts.evaluate --model runs/compare/cells/milegpo-seed1/model
    python -m scripts.evaluate --model FOLDER_OR_HUB_ID --eval_split valid_seen --eval_temperature 0

Options are read from ``--config`` (a YAML file; the main job's by default, of which only the keys
below count), then from the command line. Prints the row; ``--output FILE`` also appends it there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from rich.console import Console
from rich.progress import Progress
from transformers import AutoModelForCausalLM, AutoTokenizer, HfArgumentParser

import baselines
from baselines.environments import Place, read_settings
from baselines.evaluation import evaluate, summary
from baselines.runs import versions, weights_hash
from milegpo_algo.rollout.hf_backend import ChatCodec, HFGenerator
from milegpo_envs.errors import EnvError

if TYPE_CHECKING:
    from milegpo_envs.panels import Panel

MAIN_JOB = Path(baselines.__file__).parent / "recipes" / "main_job.yaml"


@dataclass
class EvaluateOptions:
    """What is evaluated where."""

    model: str = field(metadata={"help": "Hub id or folder of a causal language model."})
    config: str = field(default=str(MAIN_JOB), metadata={"help": "YAML file with defaults."})
    env_id: str = field(default="milegpo/ALFWorld-v0", metadata={"help": "Registered environment."})
    env_settings: list[str] = field(
        default_factory=list, metadata={"help": "Arguments of gym.make as key=value, in YAML."}
    )
    eval_split: str = field(default="valid_unseen", metadata={"help": "Split to evaluate on."})
    eval_size: int | None = field(default=None, metadata={"help": "Tasks of the panel; None: all."})
    eval_seeds: list[int] = field(
        default_factory=lambda: [123, 456, 789], metadata={"help": "Seeds of the replies."}
    )
    eval_temperature: float = field(default=0.4, metadata={"help": "0 is greedy."})
    horizon: int | None = field(default=None, metadata={"help": "Steps an episode may take."})
    history: int = field(default=2, metadata={"help": "Past steps in a prompt."})
    prompt_style: str = field(default="papers", metadata={"help": "'papers' or 'compact'."})
    max_prompt_tokens: int = field(default=2048, metadata={"help": "Budget of a prompt."})
    max_completion_length: int = field(default=512, metadata={"help": "Longest reply, in tokens."})
    slots: int = field(default=64, metadata={"help": "Episodes at once; never moves a result."})
    output: str | None = field(default=None, metadata={"help": "JSONL file to append the row to."})


def main(argv: Sequence[str] | None = None) -> None:
    """Read the options, play the panel, print the row."""
    given = list(sys.argv[1:] if argv is None else argv)
    parser = HfArgumentParser(EvaluateOptions)  # type: ignore[arg-type]  # takes any dataclass
    try:
        parser.set_defaults(**_defaults(given))
        options: EvaluateOptions = parser.parse_args_into_dataclasses(given)[0]
        settings = read_settings(options.env_settings)
        place = Place(
            options.env_id, settings, options.horizon, options.history, options.prompt_style
        )
        panel = place.panel(options.eval_split, options.eval_size)
        place.prompted(options.eval_split).close()
    except (EnvError, ValueError, FileNotFoundError) as error:
        parser.exit(2, f"{parser.prog}: error: {error}\n")
    row = _row(options, place, panel)
    text = json.dumps(row)
    if options.output is not None:
        with Path(options.output).open("a") as file:
            file.write(text + "\n")
    print(json.dumps({key: value for key, value in row.items() if key != "episodes"}, indent=2))


def _defaults(given: Sequence[str]) -> dict[str, object]:
    """Read those keys of the configuration that are options here."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--config", type=Path, default=MAIN_JOB)
    path = early.parse_known_args(given)[0].config
    known = {spec.name for spec in fields(EvaluateOptions)}
    return {k: v for k, v in yaml.safe_load(path.read_text()).items() if k in known}


def _row(options: EvaluateOptions, place: Place, panel: Panel) -> dict[str, object]:
    tokenizer = AutoTokenizer.from_pretrained(options.model, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(options.model).eval()
    pool = place.pool(options.eval_split, min(options.slots, len(panel.task_ids)))
    with Progress(console=Console(stderr=True)) as bars:
        bar = bars.add_task(panel.name)
        played = evaluate(
            pool,
            HFGenerator(
                model,
                end_ids=[tokenizer.eos_token_id],
                max_new_tokens=options.max_completion_length,
                temperature=options.eval_temperature,
            ),
            ChatCodec(tokenizer),
            panel,
            seeds=options.eval_seeds,
            max_prompt_tokens=options.max_prompt_tokens,
            on_progress=lambda done, total: bars.update(bar, completed=done, total=total),
        )
    pool.close()
    folder = Path(options.model)
    return {
        "model": options.model,
        "model_hash": weights_hash(folder) if folder.is_dir() else options.model,
        "env_id": options.env_id,
        "env_settings": dict(place.settings),
        "panel": {"name": panel.name, "hash": panel.hash, "size": len(panel.task_ids)},
        "eval_seeds": options.eval_seeds,
        "eval_temperature": options.eval_temperature,
        "versions": versions(),
        **summary(played),
    }


if __name__ == "__main__":
    main()
