"""Write one HTML page about runs: tables, curves, diagnostics, an explorer of rollout graphs.

    python -m scripts.report runs/compare
    python -m scripts.report runs/train --output train.html --iterations 10 20 --tasks TASK_ID
    python -m scripts.report steps.parquet --recipe webshop

RUN is an output folder of scripts.train or scripts.compare, finished or going on, or a file of
rollouts. The page needs no network and no other file. The explorer shows stored rollouts: train
with --trajectory_steps N to have those of every N-th iteration.
"""

from __future__ import annotations

import argparse
import math
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from baselines.report.charts import charts
from baselines.report.choice import Wanted, collect
from baselines.report.page import Content, render
from baselines.report.sources import NothingToReport, find
from baselines.report.tables import diagnostics, results
from milegpo_algo.estimator import RECIPES


def main(arguments: Sequence[str] | None = None) -> None:
    """Read runs, write the page."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        if not 0 < options.max_mb < math.inf:
            raise NothingToReport(f"--max_mb {options.max_mb:g}: give a number above 0.")
        sources = find(options.runs)
        wanted = Wanted(
            options.tasks, options.iterations, options.recipe, int(1_000_000 * options.max_mb)
        )
        explorer = collect(sources, wanted)
        title = ", ".join(dict.fromkeys(path.absolute().name for path in options.runs))
        given = [str(path) for path in options.runs]
        page = render(
            Content(
                title=options.title or f"MileGPO: {title}",
                runs=sources.runs,
                results=results(sources.runs),
                comparisons=sources.tables,
                charts=charts(sources.runs),
                diagnostics=diagnostics(explorer.diagnoses),
                explorer=explorer,
                command=shlex.join(["python", "-m", "scripts.report", *given]),
            )
        )
        unfinished = options.output.with_name(f"{options.output.name}.unfinished")
        unfinished.write_text(page, encoding="utf-8")
        unfinished.replace(options.output)
    except (NothingToReport, ModuleNotFoundError, OSError) as error:
        parser.exit(2, f"{parser.prog}: error: {error}\n")
    size = options.output.stat().st_size / 1e6
    sys.stdout.write(
        f"{options.output}: {len(sources.runs)} runs, {len(explorer.texts)} task graphs, "
        f"{size:.1f} MB\n"
    )
    for note in explorer.notes:
        sys.stdout.write(f"{note}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folders or files")
    parser.add_argument("--output", type=Path, default=Path("report.html"), metavar="FILE")
    parser.add_argument("--title", help="of the page")
    parser.add_argument("--tasks", nargs="+", default=[], metavar="ID", help="graphs of these only")
    parser.add_argument(
        "--iterations", nargs="+", type=int, default=[], metavar="N", help="default: the last"
    )
    parser.add_argument(
        "--recipe", choices=RECIPES, help="settings of the estimators (default: the run's)"
    )
    parser.add_argument(
        "--max_mb", type=float, default=12.0, metavar="MB", help="of graphs in the page (12)"
    )
    return parser


if __name__ == "__main__":
    main()
