"""Evaluate a model or an agent on a fixed panel: every task exactly once per seed.

    python -m scripts.evaluate --model runs/compare/cells/milegpo-seed1/model
    python -m scripts.evaluate --model FOLDER_OR_HUB_ID --eval_split valid_seen --eval_temperature 0
    python -m scripts.evaluate --model packaged --agent react --prompt_style papers
    python -m scripts.evaluate --model NAME --base_url http://127.0.0.1:8000/v1 --agent reflexion
    python -m scripts.evaluate --agent expert

Options are read from ``--config`` (a YAML file; the main job's by default, of which only the keys
below count), then from the command line. Prints tables on standard error and the row on standard
output; ``--output FILE`` also appends the row there. Of a policy in a run folder's ``model/`` the
row tells how it was trained, and so can stand in one table with others on that panel.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress
from transformers import HfArgumentParser

from baselines.agents import KINDS, SCRIPTED, Agent, run_agent
from baselines.environments import Place
from baselines.evaluation import OnEpisodes, check_seeds
from baselines.models import PackageMissing, Player, endpoint_player, local_player, nothing
from baselines.place_options import PlaceOptions
from baselines.recipe_files import MAIN_JOB, read_plan
from baselines.result_rows import engine, evaluated
from baselines.runs import RESULT, write_json
from baselines.summary_table import summary_tables
from milegpo_algo.rollout.completions import EndpointError
from milegpo_algo.rollout.episode import Episode
from milegpo_algo.rollout.spending import BudgetSpent
from milegpo_algo.rollout.trajectories import TrajectoryFolder
from milegpo_envs.errors import EnvError

if TYPE_CHECKING:
    from milegpo_envs.panels import Panel

# What a trained policy's own row says of its training.
_LINEAGE = (
    *("method", "estimator", "settings", "convention", "seed", "recipe_hash", "checkpoint_rule"),
    *("iterations", "rows_trained", "counts", "model", "model_hash", "trained_hash", "train_panel"),
)

# What says where a row came from and went to, not how it came about.
_NOT_TOLD = frozenset(("config", "environment", "trajectories", "output", "output_dir"))


@dataclass
class EvaluateOptions(PlaceOptions):
    """What is evaluated where."""

    model: str | None = field(
        default=None,
        metadata={"help": "Folder or hub id, 'packaged', or an endpoint's name; scripted: none."},
    )
    agent: str = field(default="direct", metadata={"help": f"One of {', '.join(KINDS)}."})
    trials: int = field(default=3, metadata={"help": "Trials at a task (reflexion)."})
    examples: int = field(default=1, metadata={"help": "Worked examples (react, reflexion)."})
    base_url: str | None = field(
        default=None, metadata={"help": "OpenAI-compatible endpoint that has the model."}
    )
    reply_cache: str | None = field(
        default="runs/replies", metadata={"help": "Folder of an endpoint's replies, kept."}
    )
    budget: float | None = field(
        default=None, metadata={"help": "Most to spend at an endpoint, in the prices' currency."}
    )
    prices: list[float] = field(
        default_factory=lambda: [0.0, 0.0],
        metadata={"help": "Of a million prompt tokens, and of a million completion tokens."},
    )
    requests_per_minute: float | None = field(default=None, metadata={"help": "Rate limit."})
    config: str = field(default=str(MAIN_JOB), metadata={"help": "YAML file with defaults."})
    eval_temperature: float = field(default=0.4, metadata={"help": "0 is greedy."})
    max_prompt_tokens: int = field(default=2048, metadata={"help": "Budget of a prompt."})
    max_completion_length: int = field(default=512, metadata={"help": "Longest reply, in tokens."})
    slots: int = field(default=64, metadata={"help": "Episodes at once; never moves a result."})
    trajectories: str | None = field(
        default=None, metadata={"help": "Folder for the episodes; scripts.show reads them."}
    )
    output: str | None = field(default=None, metadata={"help": "JSONL file to append the row to."})
    output_dir: str | None = field(
        default=None, metadata={"help": "Run folder to write the row to, as result.json."}
    )

    def told(self) -> dict[str, object]:
        """Return what a row says of them: ``scripts.compare --row`` gives them again."""
        return {name: value for name, value in asdict(self).items() if name not in _NOT_TOLD}


def main(argv: Sequence[str] | None = None) -> None:
    """Read the options, play the panel, print the row."""
    given = list(sys.argv[1:] if argv is None else argv)
    parser = HfArgumentParser(EvaluateOptions)  # type: ignore[arg-type]  # takes any dataclass
    try:
        parser.set_defaults(**_defaults(given))
        options: EvaluateOptions = parser.parse_args_into_dataclasses(given)[0]
        _check(options)
        place = options.place()
        agent = Agent(options.agent, options.examples, trials=options.trials)  # type: ignore[arg-type]  # checked there
        panel = place.panel(options.eval_split, options.eval_size)
        place.prompted(options.eval_split).close()
        player = _player(options)
    except (EnvError, PackageMissing, ValueError, OSError, ImportError) as error:
        parser.exit(2, f"{parser.prog}: error: {error}\n")
    try:
        row = _row(options, place, panel, agent, player)
    except (EndpointError, BudgetSpent) as error:
        parser.exit(1, f"{parser.prog}: error: {error}\n")
    if options.output is not None:
        with Path(options.output).open("a") as file:
            file.write(json.dumps(row) + "\n")
    if options.output_dir is not None:
        Path(options.output_dir).mkdir(parents=True, exist_ok=True)
        write_json(Path(options.output_dir) / RESULT, row)
    errors = Console(stderr=True)
    for table in summary_tables(row):
        errors.print(table)
    print(json.dumps({key: value for key, value in row.items() if key != "episodes"}, indent=2))


def _defaults(given: Sequence[str]) -> dict[str, object]:
    """Read those keys of the configuration that are options here."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--config", type=Path, default=MAIN_JOB)
    early.add_argument("--environment", default="")
    asked = early.parse_known_args(given)[0]
    known = {spec.name for spec in fields(EvaluateOptions)} - {"output_dir"}
    options = read_plan(asked.config).options(asked.environment)
    return {k: v for k, v in options.items() if k in known}


def _check(options: EvaluateOptions) -> None:
    """Refuse numbers that nothing can be evaluated with.

    Raises:
        ValueError: names the option.
    """
    check_seeds(options.eval_seeds)
    for name in ("slots", "max_prompt_tokens", "max_completion_length"):
        if (value := getattr(options, name)) < 1:
            raise ValueError(f"{name}={value}: must be at least 1.")
    if not options.eval_temperature >= 0:
        raise ValueError(f"eval_temperature={options.eval_temperature}: must be at least 0.")
    if options.base_url is not None and not options.base_url.startswith(("http://", "https://")):
        raise ValueError(f"base_url={options.base_url!r}: must begin with http:// or https://.")
    rate = options.requests_per_minute
    if rate is not None and not rate > 0:
        raise ValueError(f"requests_per_minute={rate}: must be above 0; None is no limit.")
    if len(options.prices) != 2 or not min(options.prices) >= 0:
        raise ValueError(
            f"prices={options.prices}: give two, of a million prompt and completion tokens."
        )


def _player(options: EvaluateOptions) -> Player | None:
    """Make the model ready, if the agent needs one."""
    if options.agent in SCRIPTED:
        return None
    if options.model is None:
        raise ValueError(
            f"The agent {options.agent} needs --model; {' and '.join(SCRIPTED)} do not."
        )
    if options.base_url is None:
        return local_player(
            options.model,
            temperature=options.eval_temperature,
            max_completion_length=options.max_completion_length,
            max_prompt_tokens=options.max_prompt_tokens,
        )
    prompt_price, completion_price = options.prices
    return endpoint_player(
        options.model,
        options.base_url,
        temperature=options.eval_temperature,
        max_completion_length=options.max_completion_length,
        max_prompt_tokens=options.max_prompt_tokens,
        cache=None if options.reply_cache is None else Path(options.reply_cache),
        budget=options.budget,
        prices=(prompt_price, completion_price),
        requests_per_minute=options.requests_per_minute,
    )


def _writer(options: EvaluateOptions, player: Player | None) -> OnEpisodes | None:
    """Write one file of episodes a seed, if asked to."""
    if options.trajectories is None:
        return None
    decode = nothing if player is None else player.decode
    folder = TrajectoryFolder(Path(options.trajectories), decode)

    def write(seed: int, episodes: Sequence[Episode]) -> None:
        folder.write(seed, episodes)

    return write


def _row(
    options: EvaluateOptions, place: Place, panel: Panel, agent: Agent, player: Player | None
) -> dict[str, object]:
    with Progress(console=Console(stderr=True)) as bars:
        bar = bars.add_task(f"{agent.kind} on {panel.name}")
        outcome = run_agent(
            agent,
            place,
            options.eval_split,
            panel,
            seeds=options.eval_seeds,
            slots=options.slots,
            policy=None if player is None else player.policy,
            chat=None if player is None else player.chat,
            on_progress=lambda done, total: bars.update(bar, completed=done, total=total),
            on_episodes=_writer(options, player),
        )
    trained = _training(options.model, player)
    return {
        **{"method": None, "estimator": None, "settings": {}, "convention": None, "seed": None},
        **{"recipe_hash": None, "checkpoint_rule": None, "iterations": 0, "rows_trained": 0},
        "agent": asdict(agent),
        "model": None if player is None else player.name,
        "model_hash": None if player is None else player.hash,
        "trained_hash": None if player is None else player.hash,
        "max_prompt_tokens": options.max_prompt_tokens,
        **trained,
        "options": options.told(),
        "engine": engine(options.base_url or "transformers", None, place),
        **evaluated(
            place,
            panel,
            outcome.played,
            seeds=options.eval_seeds,
            temperature=options.eval_temperature,
            max_completion_length=options.max_completion_length,
        ),
        **({"success_by_trial": outcome.success_by_trial} if outcome.success_by_trial else {}),
    }


def _training(model: str | None, player: Player | None) -> Mapping[str, object]:
    """Return what the row beside a trained policy's folder says of it, if these are its weights."""
    beside = None if model is None else Path(model).parent / RESULT
    if beside is None or player is None or not beside.is_file():
        return {}
    row = json.loads(beside.read_text(encoding="utf-8"))
    if row.get("trained_hash") != player.hash:
        return {}
    return {key: row[key] for key in _LINEAGE if key in row}


if __name__ == "__main__":
    main()
