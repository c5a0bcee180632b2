"""What a run leaves behind for others to read.

A run folder (``scripts.train --output_dir``, and every cell of a comparison):

    result.json         the result row, written last: a run with one is finished (``RESULT``)
    metrics.jsonl       a line an iteration: success, rates, rows, tokens, ``seconds/<phase>``
    evaluations.jsonl   a line an evaluation while training: iteration, success and its kin
    iteration-N.jsonl   where ``trajectory_steps`` asks for it, six digits: a line an episode
                        (``milegpo_algo.rollout.trajectories``), with states and advantages
    model/              the policy of the row, as ``save_pretrained`` writes it
    checkpoint-N/       to resume from, after iteration N
    progress.json       {"what", "done", "total"} while it runs
    log.txt             what it printed, where ``scripts.compare`` started it

A comparison folder (``scripts.compare --output_dir``) of one environment:

    comparison.json     the settings and versions that all of it was made with
    warm_start/         the run folder of the policy that all start from (no training)
    cells/METHOD-seedN/ run folders of the trained policies
    cells/agent-NAME/   of agents that are not trained: result.json alone
    results.jsonl       the finished rows, the warm start first
    table.md, table.csv, table.tex     a line a method
    statistics.md, statistics.csv      deviations over seeds, interquartile means, pairs of methods,
                                       costs to a given success, in and out of distribution
    curves.png          success by iteration, with bands

A comparison over several environments holds one such folder for each, by its name in the YAML, and
``table.tex``, in which they stand side by side.
``run_folders`` finds all run folders below a folder.

A result row is JSON; ``comparison.Row`` reads it. Its keys, beside those of ``evaluation.summary``:

    method, estimator, settings, convention, seed    what was trained; method is the line's name,
                        settings every setting of the estimator as it took effect; None for the
                        warm start and for agents
    agent               of ``scripts.evaluate``: {"kind", "examples", ...}
    success_by_trial    of reflexion: the share solved after each trial
    env_id, env_settings, protocol      the environment, and how it is played
    panel, train_panel  {"name", "hash", "size", "data"}
    eval_seeds          of the evaluation's replies
    in_distribution     the summary on a second panel, where one was asked for
    model, model_hash   where training started from, and the hash of its weights
    trained_hash        of the weights of the row
    recipe_hash         of every option that the cells of a comparison share
    options             those given to ``scripts.train``, or all of ``scripts.evaluate``;
                        ``scripts.compare --row`` runs it again with them
    code                {"commit", "dirty", "sources"}, see ``code_version``
    versions, engine    packages; what sampled, on which device, with how many threads
    counts              iterations, episodes, rows and tokens that were trained and evaluated
    checkpoint_rule     which policy of the run was evaluated, fixed before it
    started, seconds    the only keys in which the same run twice differs, beside the costs of
                        episodes: an endpoint's kept replies are free
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from platform import python_version

from milegpo_envs.state import canonical_json

RESULT = "result.json"
"""A run folder's result row."""

PACKAGED = "packaged"
"""The name of the packaged model, where others are a folder or a hub id."""

LIBRARIES = (
    *("torch", "transformers", "trl", "accelerate", "tokenizers", "numpy", "scipy"),
    *("textworld", "alfworld", "gymnasium"),
)
"""Whose versions can move a result."""

PACKAGES = ("baselines", "milegpo_algo", "milegpo_envs", "scripts")
"""Ours."""


class Progress:
    """Writes ``progress.json`` at most once a second: {"what", "done", "total"}."""

    def __init__(self, folder: Path, seconds: float = 1.0) -> None:
        self._path = folder / "progress.json"
        self._seconds = seconds
        self._last = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Say how far a piece of work is."""
        now = time.monotonic()
        if now - self._last >= self._seconds or done == total:
            self._last = now
            write_json(self._path, {"what": what, "done": done, "total": total})


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write a file whole or not at all."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(value) + "\n")
    os.replace(unfinished, path)


def weights_hash(folder: Path) -> str:
    """Hash a model's weights and tokenizer: 32 hex digits over the files that define them.

    Raises:
        FileNotFoundError: the folder holds no safetensors file.
    """
    files = sorted([*folder.glob("*.safetensors"), *folder.glob("tokenizer*.json")])
    if not any(path.suffix == ".safetensors" for path in files):
        raise FileNotFoundError(f"No *.safetensors in {folder}: save_pretrained writes one.")
    digest = hashlib.blake2b(digest_size=16)
    for path in files:
        digest.update(path.name.encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def settings_hash(settings: Mapping[str, object]) -> str:
    """Hash settings, whatever their order: 16 hex digits."""
    return hashlib.blake2b(canonical_json(settings).encode(), digest_size=8).hexdigest()


def versions() -> dict[str, str]:
    """Return the versions that can move a result."""
    return {"python": python_version(), **{name: version(name) for name in LIBRARIES}}


def run_folders(folder: Path) -> list[Path]:
    """Return the finished run folders at or below a folder, sorted.

    Results that ``--fresh`` moved aside and rows that were run again are left out.
    """
    found = {path.parent.relative_to(folder) for path in folder.rglob(RESULT)}
    aside = {p for p in found if any(n == "again" or n.startswith("earlier-") for n in p.parts)}
    return sorted(folder / p for p in found - aside)


@cache
def code_version() -> dict[str, str | bool | None]:
    """Return which code runs.

    Returns:
        sources: 16 hex digits over the names and contents of our packages' Python files, whether
        they are a checkout or installed. commit: git's, and dirty: whether those packages differ
        from it; both None where they are not in a git checkout, or git is not there.
    """
    roots = [_root(name) for name in PACKAGES]
    digest = hashlib.blake2b(digest_size=8)
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            digest.update(f"{root.name}/{path.relative_to(root).as_posix()}".encode() + b"\0")
            digest.update(hashlib.blake2b(path.read_bytes()).digest())
    tracked = _git(roots[0], "ls-files", "--error-unmatch", str(roots[0] / "__init__.py"))
    commit = None if tracked is None else _git(roots[0], "rev-parse", "HEAD")
    changes = None
    if commit is not None:
        changes = _git(roots[0], "status", "--porcelain", "--", *map(str, roots))
    return {
        "commit": commit,
        "dirty": None if changes is None else bool(changes),
        "sources": digest.hexdigest(),
    }


def _root(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"The package {package} is not there: pip install milegpo")
    return Path(next(iter(spec.submodule_search_locations)))


def _git(folder: Path, *command: str) -> str | None:
    """Return what git says, or None where it is missing or refuses."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *command], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
