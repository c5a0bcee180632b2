"""Run a result row again, from what it says of itself, and compare the numbers."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from baselines.comparison import Row
from baselines.recipe_files import METHOD_OPTIONS, as_words
from baselines.rows_table import read_rows
from baselines.runs import PACKAGED, RESULT, code_version, versions, weights_hash

NUMBERS = (
    *("success", "score", "success_by", "stops", "rows_trained", "counts", "trained_hash"),
    *("episodes", "in_distribution", "settings", "model_hash", "panel", "success_by_trial"),
)
"""What of a row must come out the same; of episodes not the cost, as kept replies are free."""


def run_again(where: str, out: Path, console: Console) -> int:
    """Run a row again; 0 if its numbers came out the same, 1 if not.

    Args:
        where: FILE, FILE:N (counted from 0) or FILE:NAME (as in "milegpo-seed1").
        out: the run goes to the folder ``again/NAME`` in it.
        console: to say what differs.

    Raises:
        ValueError: there is no such row, or it does not say how it was made.
    """
    row = find_row(where)
    folder = out / "again" / row.name.replace(" ", "_")
    folder.mkdir(parents=True, exist_ok=True)
    for text in _warnings(row.logged):
        console.print(text, style="yellow", markup=False, soft_wrap=True)
    command = rerun_command(row, folder)
    console.print(shlex.join(command), markup=False, highlight=False, soft_wrap=True)
    threads = str(row.logged.get("engine", {}).get("threads", 1))
    done = subprocess.run(
        command,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads},
    )
    if done.returncode:
        console.print(f"The run failed with exit status {done.returncode}.", style="red")
        return 1
    found = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    differing = [key for key in NUMBERS if _plain(row.logged, key) != _plain(found, key)]
    if differing:
        console.print(
            f"{row.name} differs in {', '.join(differing)}: success {row.success:.4f} then, "
            f"{found['success']:.4f} now.",
            style="red",
            markup=False,
        )
        return 1
    console.print(f"{row.name}: the same numbers again, success {row.success:.4f}.")
    return 0


def find_row(where: str) -> Row:
    """Read the row of FILE, FILE:N or FILE:NAME.

    Raises:
        ValueError: there is no such row, or several and none is chosen; lists their names.
    """
    path, which = Path(where), ""
    if not path.exists() and ":" in where:
        file, _, which = where.rpartition(":")
        path = Path(file)
    rows = read_rows([path])
    named = [row for at, row in enumerate(rows) if which in ("", str(at), row.name)]
    if len(named) != 1:
        names = ", ".join(f"{at} ({row.name})" for at, row in enumerate(rows))
        raise ValueError(f"{where} names {len(named)} rows. {path} holds {names}: write FILE:N.")
    return named[0]


def rerun_command(row: Row, folder: Path) -> tuple[str, ...]:
    """Write a recipe for a row into a folder, and the command that runs it there.

    The model that it started from, or that was evaluated, is used where it still is what it was; a
    warm start that is gone is made again from the row's own options.

    Raises:
        ValueError: the row does not say with which options it was made, or its model is gone.
    """
    options = row.logged.get("options")
    if not isinstance(options, Mapping):
        raise ValueError(
            f"{row.name} does not say how it was made (no options): rows of scripts.train and "
            "scripts.evaluate do. Make it again with one of them."
        )
    file = folder / "recipe.yaml"
    if row.logged.get("agent") is not None:
        words = _evaluation(row, options, file)
    else:
        words = _training(row, options, file)
    return (sys.executable, "-m", *words, "--output_dir", str(folder))


def _training(row: Row, options: Mapping[str, Any], file: Path) -> list[str]:
    """Write the recipe and the command of a policy that was trained, or of a warm start."""
    given = {k: v for k, v in options.items() if k not in ("environment", "method", "model")}
    method = {k: given.pop(k) for k in METHOD_OPTIONS if k in given and row.trained}
    recipe: dict[str, object] = {"env_id": row.env_id}
    if row.trained:
        recipe["methods"] = {row.method: {"estimator": row.estimator, **method}}
    file.write_text(yaml.safe_dump(recipe), encoding="utf-8")
    words = ["scripts.train", "--config", str(file), *as_words(given)]
    if row.trained:
        words += ["--method", row.method]
    if (model := _start(row, options)) is not None:
        words += ["--model", model]
    return words


def _evaluation(row: Row, options: Mapping[str, Any], file: Path) -> list[str]:
    """Write the recipe and the command of what ``scripts.evaluate`` played.

    Raises:
        ValueError: the model was in a folder, and its weights are not there any more.
    """
    weights, model = row.logged.get("trained_hash"), options.get("model")
    # A hub id is its own hash; scripted agents have none.
    kept = options.get("base_url") is not None or weights in (None, model) or model == PACKAGED
    if not kept and not _holds(Path(str(model)), weights):
        raise ValueError(_gone(row.name, str(model), weights))
    file.write_text(yaml.safe_dump(dict(options)), encoding="utf-8")
    return ["scripts.evaluate", "--config", str(file)]


def _start(row: Row, options: Mapping[str, Any]) -> str | None:
    """Where the model is now that a row's training started from; None if it is to be made again."""
    folder = Path(str(row.model))
    if _holds(folder, row.model_hash):
        return str(folder)
    if row.model == row.model_hash:  # a hub id
        return row.model
    if "warm_episodes" in options:
        return None
    raise ValueError(_gone(row.name, str(row.model), row.model_hash))


def _holds(folder: Path, weights: object) -> bool:
    """Whether a folder holds these weights."""
    return folder.is_dir() and weights_hash(folder) == weights


def _gone(name: str, model: str, weights: object) -> str:
    return (
        f"{name} was made from {model} (weights {weights}), which is not there any more: put it "
        "back."
    )


def _warnings(logged: Mapping[str, Any]) -> list[str]:
    """Say what may make the numbers differ."""
    then, now = logged.get("versions", {}), versions()
    out = [
        f"The row was made with {name} {then.get(name)}; here is {now.get(name)}."
        for name in sorted({*then, *now})
        if then.get(name) != now.get(name)
    ]
    code = logged.get("code", {})
    if code.get("sources") != code_version()["sources"]:
        out.append(
            f"The row was made by other code (commit {code.get('commit')}, sources "
            f"{code.get('sources')}); here are sources {code_version()['sources']}."
        )
    return out


def _plain(row: Mapping[str, Any], key: str) -> object:
    value = json.loads(json.dumps(row.get(key)))
    if key != "episodes":
        return value
    return [{**episode, "cost": None} for episode in value]
