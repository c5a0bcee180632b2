"""Judge credit on stored rollouts, without training.

    python -m scripts.replay runs/rollouts/*.parquet --recipe webshop
    python -m scripts.replay steps.parquet --json report.json --figures figures/
    python -m scripts.replay runs/train/iteration-*.jsonl

Each file holds the steps of one iteration (`Rollouts.to_parquet`) or its episodes (`scripts.train
--trajectory_steps`). The report pools them: how many steps leave a shared state, what GraphGPO ties
and which ties MileGPO's stages break the right way, what supports milestones, which groups and rows
teach nothing, and seconds per iteration.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

from baselines.judges import Judges, judges
from baselines.report.sources import NothingToReport, Stored, rollouts_of
from milegpo_algo import RolloutError, Rollouts
from milegpo_algo.diagnostics import Diagnosis, Share, diagnose
from milegpo_algo.estimator import RECIPES
from milegpo_algo.graph import StateGraph

FIGURE_REMEDY = "Figures need matplotlib. Run: pip install 'milegpo[report]'"


def main(arguments: Sequence[str] | None = None) -> None:
    """Read, diagnose, report."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.replay",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "files", nargs="+", type=Path, help="Parquet or JSON lines, an iteration each"
    )
    parser.add_argument("--recipe", choices=RECIPES, default="alfworld")
    parser.add_argument("--convention", choices=("paper", "verl-agent"), default="paper")
    parser.add_argument("--json", metavar="FILE", default="-", help="report; - is stdout (default)")
    parser.add_argument("--figures", metavar="FOLDER", type=Path, help="one PNG per figure")
    options = parser.parse_args(arguments)
    try:
        report = replay(options.files, judges(options.recipe, options.convention))
        text = json.dumps(report | {"recipe": options.recipe, "convention": options.convention})
        if options.json == "-":
            sys.stdout.write(text + "\n")
        else:
            Path(options.json).write_text(text + "\n", encoding="utf-8")
        if options.figures is not None:
            draw(report, options.figures)
    except (NothingToReport, RolloutError, ModuleNotFoundError, OSError) as error:
        parser.exit(2, f"{parser.prog}: error: {error}\n")


def replay(files: Sequence[Path], judges: Judges) -> dict[str, object]:
    """Diagnose every file, and pool."""
    pooled: Diagnosis | None = None
    seconds: dict[str, float] = {}
    counts = {"iterations": 0, "tasks": 0, "trajectories": 0, "successes": 0, "steps": 0}
    for file in files:
        rollouts, _ = rollouts_of(Stored(file, 0))
        found = diagnose(
            rollouts,
            graphgpo=judges.graphgpo,
            milegpo=judges.milegpo,
            estimators=judges.others,
        )
        pooled = found if pooled is None else pooled + found
        for name, spent in _costs(rollouts, judges).items():
            seconds[name] = seconds.get(name, 0.0) + spent / len(files)
        counts["iterations"] += 1
        counts["tasks"] += len(rollouts.tasks)
        counts["trajectories"] += len(rollouts.trajectory_ids)
        counts["successes"] += int(rollouts.trajectory_success.sum())
        counts["steps"] += len(rollouts)
    assert pooled is not None
    return {"counts": counts, "seconds_per_iteration": seconds, **pooled.json()}


def _costs(rollouts: Rollouts, judges: Judges) -> dict[str, float]:
    """CPU seconds for the graph with its distances, and for each whole estimator."""
    work: dict[str, Callable[[], object]] = {
        "graph": lambda: StateGraph.build(rollouts).goal_distance
    }
    for name, estimator in judges.others.items():
        work[name] = partial(estimator, rollouts)
    spent = {}
    for name, run in work.items():
        begun = time.process_time()
        run()
        spent[name] = time.process_time() - begun
    return spent


def draw(report: Mapping[str, object], folder: Path) -> None:
    """Write one PNG per figure."""
    figures: dict[str, tuple[str, dict[str, object]]] = {
        "shared_states": (
            "Steps, pairs and groups",
            {
                "shared state": report["shared_states"],
                "tied pairs": report["ties"],
                "tied pairs, any action": report["ties_any"],
                "degenerate groups": report["degenerate_groups"],
            },
        ),
        "tie_correction": ("GraphGPO's ties that shaping ranks rightly", _of(report, "corrected")),
        "support": (
            "Milestone candidates by support",
            {name: report[name] for name in ("local_evidence", "coverage_only", "weak")},
        ),
        "evidence": (
            "Milestone candidates with evidence",
            {name: report[name] for name in ("positive_progress", "positive_branch")},
        ),
        "effective_rows": ("Steps with credit", _of(report, "effective_rows")),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, (title, shares) in figures.items():
        _bars(title, shares, folder / f"{name}.png")


def _of(report: Mapping[str, object], name: str) -> dict[str, object]:
    found = report[name]
    assert isinstance(found, dict)
    return found


def _bars(title: str, shares: Mapping[str, object], file: Path) -> None:
    names, heights, labels = [], [], []
    for name, share in shares.items():
        assert isinstance(share, dict)
        known = Share(share["count"], share["total"])
        names.append(name.replace("_", " "))
        heights.append(100.0 * (known.value or 0.0))
        labels.append(f"{known.count:,} of {known.total:,}")
    figure, axes = _matplotlib().subplots(figsize=(1.6 * len(names) + 1.5, 3.2))
    bars = axes.bar(names, heights, color="#4477aa", width=0.6)
    axes.bar_label(bars, labels, fontsize=8, padding=2)
    axes.set_ylim(0, 110)
    axes.set_ylabel("%")
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150, bbox_inches="tight")
    _matplotlib().close(figure)


def _matplotlib() -> ModuleType:
    try:
        matplotlib = import_module("matplotlib")
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(FIGURE_REMEDY) from missing
    matplotlib.use("Agg")
    return import_module("matplotlib.pyplot")


if __name__ == "__main__":
    main()
