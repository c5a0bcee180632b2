"""Learning curves as SVG that goes into a page: equal input, equal bytes; the page colours text."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from baselines.report.sources import Run

# Okabe and Ito's palette, told apart with any colour vision, without black and the faint yellow.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_DASHES = ("solid", "dashed", "dotted", "dashdot")
_INK = "#010203"  # stands for the page's own colour of text

TRAINING = (
    ("success", "success in training rollouts", 100.0, "%"),
    ("episode_length", "steps an episode", 1.0, ""),
    ("ties", "ties among different actions", 100.0, "%"),
    ("zero_advantage", "steps without advantage", 100.0, "%"),
    ("degenerate_groups", "tasks with equal returns", 100.0, "%"),
    ("advantage_abs", "mean size of an advantage", 1.0, ""),
    ("format_valid", "well-formed replies", 100.0, "%"),
    ("action_valid", "admissible actions", 100.0, "%"),
    ("entropy", "entropy, nats a token", 1.0, ""),
    ("kl", "KL to the reference policy", 1.0, ""),
    ("loss", "loss", 1.0, ""),
    ("completion_tokens", "tokens a reply", 1.0, ""),
    ("seconds/total", "seconds an iteration", 1.0, ""),
)
"""Key in ``metrics.jsonl``, title, factor, unit."""


@dataclass(frozen=True)
class Series:
    """Runs of one method: the mean at each iteration, and the lowest and highest run."""

    name: str
    at: Sequence[float]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True)
class Chart:
    """A drawn chart, and its numbers for those who read them rather."""

    title: str
    unit: str
    svg: str
    series: Sequence[Series]


def charts(runs: Sequence[Run]) -> list[Chart]:
    """Draw success on the held-out panel, then what was measured in training."""
    places = sorted({run.place for run in runs if run.evaluations})
    found = []
    for place in places:
        own = [run for run in runs if run.place == place and run.evaluations]
        named = (place[0], place[1].rsplit(" ", 1)[0])  # without the hash
        title = ", ".join(x for x in ("success on held-out tasks", *named) if x)
        found.append(_chart(title, "%", _grouped(own, _evaluated)))
    environments = sorted({run.place[0] for run in runs if run.metrics})
    for name, title, factor, unit in TRAINING:
        for environment in environments:
            own = [run for run in runs if run.place[0] == environment and run.metrics]
            several = f" ({environment or 'not finished'})" if len(environments) > 1 else ""
            series = _grouped(own, lambda run, n=name, f=factor: _trained(run, n, f))
            if any(len(s.at) > 0 for s in series):
                found.append(_chart(title + several, unit, series))
    return found


def _evaluated(run: Run) -> dict[float, float]:
    """Success by iteration, the result as the last point."""
    points = {
        float(line["iteration"]): 100.0 * float(line["success"])
        for line in run.evaluations
        if line.get("success") is not None
    }
    iterations = (run.row or {}).get("iterations")
    if run.row is not None and isinstance(iterations, int):
        points[float(iterations)] = 100.0 * float(run.row["success"])
    return points


def _trained(run: Run, name: str, factor: float) -> dict[float, float]:
    return {
        float(line["iteration"]): factor * float(line[name])
        for line in run.metrics
        if isinstance(line.get(name), (int, float))
    }


def _grouped(runs: Sequence[Run], read: object) -> list[Series]:
    assert callable(read)
    methods: dict[str, list[Mapping[float, float]]] = {}
    for run in runs:
        points = read(run)
        if points:
            methods.setdefault(run.method, []).append(points)
    out = []
    for name, lines in methods.items():
        at = sorted(set.intersection(*(set(line) for line in lines)))
        columns = [[line[x] for line in lines] for x in at]
        label = name if len(lines) == 1 else f"{name} ({len(lines)} runs)"
        out.append(
            Series(label, at, [*map(fmean, columns)], [*map(min, columns)], [*map(max, columns)])
        )
    return out


def _chart(title: str, unit: str, series: Sequence[Series]) -> Chart:
    """Draw lines with bands.

    Raises:
        ModuleNotFoundError: matplotlib is missing; names the extra that installs it.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            'A report needs matplotlib: pip install "milegpo[report]"'
        ) from missing
    style: dict[Any, Any] = {  # Any: matplotlib lists every key as a literal
        "svg.fonttype": "none",
        "svg.hashsalt": title,
        "text.parse_math": False,
        "font.family": "sans-serif",
        "font.size": 10,
        **{f"{k}.color": _INK for k in ("text", "xtick", "ytick")},
        **{f"axes.{k}color": _INK for k in ("edge", "label")},
        "path.simplify": False,
    }
    out = io.StringIO()
    with rc_context(style):
        figure = Figure(figsize=(5.2, 3.1), layout="constrained")
        axes = figure.subplots()
        for number, line in enumerate(series):
            colour = _COLOURS[number % len(_COLOURS)]
            dash = _DASHES[number // len(_COLOURS) % len(_DASHES)]
            axes.plot(
                *(line.at, line.mean),
                color=colour,
                linestyle=dash,
                marker="o",
                markersize=3.5,
                label=line.name,
            )
            if line.low != line.high:
                axes.fill_between(line.at, line.low, line.high, color=colour, alpha=0.18, lw=0)
        axes.set_xlabel("training iteration")
        axes.set_ylabel(unit)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.18, color=_INK)
        if series:
            axes.legend(frameon=False, fontsize=8.5)
        names = ("Date", "Creator", "Format", "Type")
        figure.savefig(out, format="svg", transparent=True, metadata=dict.fromkeys(names))
    return Chart(title, unit, _inline(out.getvalue()), series)


def _inline(svg: str) -> str:
    """Only the drawing, as wide as its place, without names that would collide in a page."""
    svg = svg[svg.index("<svg") :].replace(_INK, "currentColor")
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<style type="text/css">.*?</style>', "", svg, flags=re.DOTALL)
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))
    return re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", svg).strip()
