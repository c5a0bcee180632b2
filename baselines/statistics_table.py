"""Statistics of a comparison beside its table: spread, robust means, pairs, gaps and costs."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from statistics import fmean, pstdev

from baselines.comparison import Row, runs
from baselines.costs import cost_to
from baselines.estimates import RESAMPLES, Interval, bootstrap, improvement, interquartile_mean

PAIR_RESAMPLES = 2000


@dataclass(frozen=True)
class MethodStatistics:
    """Of one method; rates are shares, costs means over the runs that reached the target.

    deviation: population standard deviation over training seeds (of what is not trained, over
    evaluation seeds). reached: runs that reached the target while training, of so many.
    """

    method: str
    seeds: int
    success: float
    deviation: float
    interquartile: float
    interquartile_interval: Interval | None
    in_distribution: float | None
    gap: float | None
    reached: int
    seconds: float | None
    tokens: float | None


@dataclass(frozen=True)
class PairStatistics:
    """P(a run of ``method`` beats one of ``other`` on a game), ties half."""

    method: str
    other: str
    probability: float
    interval: Interval | None


@dataclass(frozen=True)
class Statistics:
    """Of a comparison."""

    methods: tuple[MethodStatistics, ...]
    pairs: tuple[PairStatistics, ...]


def statistics(rows: Sequence[Row], folders: Mapping[str, Path], target: float) -> Statistics:
    """Compute them.

    Args:
        rows: that match; see ``comparison.check_rows``.
        folders: run folder of each row, by the row's name.
        target: success to which costs are counted.
    """
    methods = list(dict.fromkeys(row.method for row in rows))
    own = {method: [row for row in rows if row.method == method] for method in methods}
    trained = [method for method in methods if own[method][0].trained]
    scores = {method: runs(own[method]) for method in methods}
    pairs = tuple(
        PairStatistics(
            one,
            other,
            float(improvement(scores[one], scores[other])),
            bootstrap(
                improvement,
                scores[one],
                scores[other],
                resamples=PAIR_RESAMPLES,
            ),
        )
        for at, one in enumerate(trained)
        for other in trained[at + 1 :]
    )
    return Statistics(tuple(_of(m, own[m], folders, target) for m in methods), pairs)


def _of(
    method: str, cells: Sequence[Row], folders: Mapping[str, Path], target: float
) -> MethodStatistics:
    scores = runs(cells)
    similar = [row.in_distribution for row in cells if row.in_distribution is not None]
    success = float(scores.mean())
    inside = fmean(similar) if similar else None
    costs = [cost_to(folders[row.name], target) for row in cells if row.trained]
    reached = [cost for cost in costs if cost is not None]
    return MethodStatistics(
        method=method,
        seeds=len(scores),
        success=success,
        deviation=pstdev(scores.mean(axis=1).tolist()),
        interquartile=float(interquartile_mean(scores)),
        interquartile_interval=bootstrap(interquartile_mean, scores),
        in_distribution=inside,
        gap=None if inside is None else inside - success,
        reached=len(reached),
        seconds=fmean(cost.seconds for cost in reached) if reached else None,
        tokens=fmean(cost.tokens for cost in reached) if reached else None,
    )


def markdown(found: Statistics, rows: Sequence[Row], target: float) -> str:
    """Write the statistics as Markdown, with what they mean."""
    inside = any(line.in_distribution is not None for line in found.methods)
    goal = f"{100 * target:g} %"
    head = ["method", "runs", "success % (sd)", "interquartile mean %", "95 % interval"]
    head += ["in distribution %", "gap"] if inside else []
    head += [f"reached {goal}", f"minutes to {goal}", f"million tokens to {goal}"]
    body = [
        [
            line.method,
            str(line.seeds),
            f"{100 * line.success:.1f} ({100 * line.deviation:.1f})",
            f"{100 * line.interquartile:.1f}",
            _bounds(line.interquartile_interval),
            *([_percent(line.in_distribution), _percent(line.gap)] if inside else []),
            f"{line.reached} of {line.seeds}" if _is_trained(line, rows) else "",
            "" if line.seconds is None else f"{line.seconds / 60:.1f}",
            "" if line.tokens is None else f"{line.tokens / 1e6:.2f}",
        ]
        for line in found.methods
    ]
    parts = [_table(head, body)]
    if found.pairs:
        pairs = [
            [pair.method, pair.other, f"{pair.probability:.2f}", _share_bounds(pair.interval)]
            for pair in found.pairs
        ]
        parts.append(_table(["method", "other", "P(method > other)", "95 % interval"], pairs))
    notes = [
        "sd: population standard deviation of success over training seeds; of what is not trained, "
        "over evaluation seeds.",
        "Interquartile mean: of the middle half of all runs x games. P(method > other): a run of "
        "each on one game, ties half, mean over games. Both, and the intervals (stratified "
        f"bootstrap, {RESAMPLES:,} resamples, of pairs {PAIR_RESAMPLES:,}, generator seed 0): "
        "arXiv:2108.13264. An interval of P that includes 0.50 ranks nobody.",
        *(["Gap: success in distribution minus success on the panel, points."] if inside else []),
        f"Costs to {goal}: until the first evaluation while training that reached it; mean over "
        "the runs that did. Minutes of training iterations on the machine that ran them; tokens of "
        "prompts and replies of all rollouts.",
    ]
    return "\n".join(parts) + "\n" + "\n".join(f"- {note}" for note in notes) + "\n"


def csv_text(found: Statistics) -> str:
    """Write the methods, unrounded, then the pairs, with a head each."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n")
    for kind, lines in ((MethodStatistics, found.methods), (PairStatistics, found.pairs)):
        write.writerow([spec.name for spec in fields(kind)])
        write.writerows([_cell(value) for value in astuple(line)] for line in lines)
    return out.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "" if value is None else value


def _is_trained(line: MethodStatistics, rows: Sequence[Row]) -> bool:
    return any(row.trained for row in rows if row.method == line.method)


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---", *["---:"] * (len(head) - 1)], *body]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def _bounds(bounds: Interval | None) -> str:
    return "n/a" if bounds is None else f"{100 * bounds[0]:.1f} to {100 * bounds[1]:.1f}"


def _share_bounds(bounds: Interval | None) -> str:
    return "n/a" if bounds is None else f"{bounds[0]:.2f} to {bounds[1]:.2f}"
