"""Train every method with every seed from one warm start, and compare them on one panel.

    python -m scripts.compare
    python -m scripts.compare --estimators grpo milegpo --seeds 1 2 --output_dir runs/two
    python -m scripts.compare --config baselines/recipes/tiny.yaml --environments sokoban --dry-run
    python -m scripts.compare --rows runs/a/results.jsonl runs/b/cells/*/result.json
    python -m scripts.compare --row runs/compare/results.jsonl:milegpo-seed1

The YAML says methods, seeds and environments (``baselines.recipe_files``); without one it is the
main job's. Cells are ``scripts.train`` processes of one thread each, ``--jobs`` side by side, seed
by seed. A finished cell is not run again, and one that left a checkpoint goes on from it: start the
same command after a stop, and the table is that of a run without a stop. After every finished cell
rows, tables (Markdown, CSV, LaTeX), statistics and curves are written to ``--output_dir``, for
several environments to a folder of each, and one LaTeX table of all (``baselines.runs``). Rows of
another recipe, model, panel, convention, checkpoint rule, or of other code or versions are never
mixed in, nor deleted: ``--fresh`` moves them aside.

``--rows`` makes a table of rows from anywhere, ``scripts.evaluate``'s too. ``--row`` runs one again
and says whether its numbers came out the same.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from baselines.cells import Command, train_command
from baselines.comparing import Chosen, Comparison, Stale
from baselines.comparison import MixedRows
from baselines.jobs import InUse, alone_in, signals_interrupt
from baselines.outputs import write_joint_table
from baselines.recipe_files import MAIN_JOB, Plan, default_methods, read_plan
from baselines.rerun import run_again
from baselines.rows_table import write_table


def main(argv: Sequence[str] | None = None, command: Command = train_command) -> int:
    """Run what is missing. 0: all finished; 1: a cell failed; 2: refused; 130: interrupted."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    console = Console()
    try:
        if arguments.rows is not None:
            return write_table(arguments.rows, Path(arguments.output_dir), console)
        if arguments.row is not None:
            return run_again(arguments.row, Path(arguments.output_dir), console)
        plan = read_plan(arguments.config)
        chosen = _chosen(arguments, plan)
        environments = _environments(arguments, plan)
    except MixedRows as refusal:
        console.print(str(refusal), style="red", markup=False, soft_wrap=True)
        return 2
    except ValueError as error:
        parser.error(str(error))
    comparisons = [Comparison(plan, name, chosen, command, console) for name in environments]
    if arguments.dry_run:
        for comparison in comparisons:
            comparison.show_plan()
        return 0
    try:
        with signals_interrupt(), alone_in(chosen.out) as lock:
            codes = [comparison.run(lock, arguments.fresh) for comparison in comparisons]
            _join(plan, chosen, command, console)
            return max(codes)
    except (Stale, InUse) as refusal:
        console.print(str(refusal), style="red", markup=False, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("Interrupted; the same command goes on from here.")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", type=Path, default=MAIN_JOB, help="recipe file")
    parser.add_argument("--environments", nargs="+", metavar="NAME", help="of the recipe file's")
    parser.add_argument(
        *("--methods", "--estimators"),
        nargs="+",
        metavar="NAME",
        help="of the recipe file's, or estimators where it names none",
    )
    parser.add_argument("--seeds", nargs="+", type=int, metavar="N", help="of training")
    parser.add_argument("--model", help="folder or hub id that all start from")
    parser.add_argument("--output_dir", default="runs/compare")
    parser.add_argument(
        "--jobs", type=int, default=min(2, os.cpu_count() or 1), help="cells side by side"
    )
    parser.add_argument(
        *("--dry_run", "--dry-run"), action="store_true", help="list the cells and stop"
    )
    parser.add_argument("--fresh", action="store_true", help="move earlier results aside first")
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--row", metavar="FILE[:N|:NAME]", help="run one row again, and compare")
    one.add_argument(
        "--rows", nargs="+", type=Path, metavar="FILE", help="only make a table of these rows"
    )
    return parser


def _chosen(arguments: argparse.Namespace, plan: Plan) -> Chosen:
    """Check what is asked for against the plan."""
    methods = tuple(dict.fromkeys(arguments.methods or default_methods(plan)))
    what = "method" if plan.declared else "estimator"
    valid = next(iter(plan.methods.values()))
    if wrong := [name for name in methods if name not in valid]:
        raise ValueError(f"unknown {what} {', '.join(wrong)}. Valid: {', '.join(valid)}")
    if arguments.jobs < 1:
        raise ValueError("--jobs is at least 1")
    if min(arguments.seeds or plan.seeds) < 0:
        raise ValueError("--seeds are numbers from 0")
    if Path(arguments.output_dir).is_file():
        raise ValueError(f"--output_dir {arguments.output_dir} is a file: name a folder")
    return Chosen(
        Path(arguments.output_dir),
        methods,
        tuple(dict.fromkeys(arguments.seeds or plan.seeds)),
        plan.agents,
        arguments.jobs,
        arguments.model,
    )


def _join(plan: Plan, chosen: Chosen, command: Command, console: Console) -> None:
    """Write one LaTeX table of all environments of the plan that have finished rows."""
    if len(plan.environments) < 2:
        return
    path = chosen.out / "table.tex"
    try:
        found = {n: Comparison(plan, n, chosen, command, console).rows() for n in plan.environments}
        write_joint_table(path, {name: rows for name, rows in found.items() if rows})
    except ValueError as refusal:
        path.unlink(missing_ok=True)
        text = f"No table of all environments: {refusal}"
        console.print(text, style="yellow", markup=False, soft_wrap=True)
        return
    console.print(f"Table of all environments: {path}", markup=False, soft_wrap=True)


def _environments(arguments: argparse.Namespace, plan: Plan) -> list[str]:
    asked = arguments.environments or list(plan.environments)
    for name in asked:
        plan.options(name)
    return list(dict.fromkeys(asked))


if __name__ == "__main__":
    sys.exit(main())
