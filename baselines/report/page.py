"""A page from its parts: one HTML file that asks no network for anything.

Data go in as JSON in which no character can end a script; the page's own content security policy
lets only the scripts of this package run, by their hashes, and forbids every request.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from baselines.report.charts import Chart
from baselines.report.choice import Collected
from baselines.report.sources import Run
from milegpo_envs.reports import Cell, Report

SCRIPTS = ("cytoscape.min.js", "graph.js", "panel.js", "page.js")


@dataclass(frozen=True)
class Content:
    """What a page shows; command: the one that writes it again."""

    title: str
    runs: Sequence[Run]
    results: Sequence[Report]
    comparisons: Sequence[Report]
    charts: Sequence[Chart]
    diagnostics: Sequence[Report]
    explorer: Collected
    command: str


def render(content: Content) -> str:
    """Write the page; equal content gives equal text.

    Raises:
        ModuleNotFoundError: Jinja2 is missing; names the extra that installs it.
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from markupsafe import Markup
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            'A report needs Jinja2: pip install "milegpo[report]"'
        ) from missing
    environment = Environment(
        loader=PackageLoader("baselines.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = cell
    environment.tests["numeric"] = numeric
    scripts = [_static(name).strip() for name in SCRIPTS]
    return environment.get_template("page.html").render(
        content=content,
        policy=_policy(scripts),
        scripts=[Markup(script) for script in scripts],
        style=Markup(_static("page.css")),
        graphs=Markup(for_script(content.explorer.graphs)),
        texts=[Markup(escape_json(text)) for text in content.explorer.texts],
        svg=[Markup(chart.svg) for chart in content.charts],
    )


def for_script(value: Any) -> str:  # Any: JSON
    """JSON that is safe inside a script element."""
    return escape_json(json.dumps(value, allow_nan=False, ensure_ascii=False))


def escape_json(text: str) -> str:
    r"""Write the characters that HTML gives a meaning, and line separators, as \u escapes."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate has no UTF-8


def cell(value: Cell) -> str:
    """Write a cell: at most three decimals for small numbers, one for larger, commas in counts."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


def numeric(value: Cell) -> bool:
    """Whether a cell reads as a number, so that it stands on the right."""
    return not isinstance(value, str) or value[:1].isdigit() or value[1:2].isdigit()


def _policy(scripts: Sequence[str]) -> str:
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'"
        for s in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _static(name: str) -> str:
    return (resources.files("baselines.report") / "static" / name).read_text(encoding="utf-8")
