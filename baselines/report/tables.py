"""The tables of a page: finished runs side by side, and what their rollouts say about credit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from baselines.panel_words import panel_size
from baselines.report.sources import Run
from milegpo_algo.diagnostics import Diagnosis, Share
from milegpo_envs.reports import Cell, Report

SAME = ("env_id", "env_settings", "panel", "eval_seeds", "model_hash", "convention", "versions")
"""Rows that differ in one of these stand in different tables."""

_SHARES = (
    ("shared states", "shared_states"),
    ("ties", "ties"),
    ("ties, any action", "ties_any"),
    ("equal returns", "degenerate_groups"),
    ("local evidence", "local_evidence"),
    ("coverage only", "coverage_only"),
    ("weak", "weak"),
    ("positive progress", "positive_progress"),
    ("positive branch", "positive_branch"),
)
_READING = (
    "Shared states: steps that leave a state which several trajectories visit. Ties: pairs of "
    "steps out of one state that GraphGPO's step term cannot tell apart; of different actions, "
    "then of any. Equal returns: tasks whose trajectories score the same.",
    "Local evidence, coverage only, weak: what supports milestone candidates. Ranked rightly: of "
    "GraphGPO's ties between a step of a success and one of a failure, those that the shaping of "
    "this stage decides for the success.",
    "Steps with credit: steps whose advantage is not 0.",
)


def results(runs: Sequence[Run]) -> list[Report]:
    """One table for each set of finished runs that can be compared."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        if run.row is not None:
            groups.setdefault(repr([run.row.get(key) for key in SAME]), []).append(run)
    return [_results(own) for own in groups.values()]


def _results(runs: Sequence[Run]) -> Report:
    rows = [run.row for run in runs if run.row is not None]
    kinds = sorted({kind for row in rows for kind in row.get("success_by") or {}})
    scored = any(row.get("score", row["success"]) != row["success"] for row in rows)
    head = ["run", "method", "seed", "success %", *(["score"] if scored else [])]
    head += [f"{kind.replace('_', ' ')} %" for kind in kinds]
    head += ["steps an episode", "well-formed %", "admissible %", "iterations", "rows trained"]
    body: list[tuple[Cell, ...]] = []
    for run, row in zip(runs, rows, strict=True):
        by: Mapping[str, float] = row.get("success_by") or {}
        cells: list[Cell] = [run.name, run.method, _text(row.get("seed"))]
        cells += [_percent(row["success"]), *([row.get("score")] if scored else [])]
        cells += [_percent(by.get(kind)) for kind in kinds]
        cells += [row.get("steps"), _percent(row.get("format_valid"))]
        cells += [_percent(row.get("action_valid")), row.get("iterations")]
        body.append((*cells, row.get("rows_trained")))
    one = rows[0]
    panel = one.get("panel") or {}
    versions = ", ".join(f"{k} {v}" for k, v in (one.get("versions") or {}).items())
    settings = ", ".join(f"{k}={v}" for k, v in (one.get("env_settings") or {}).items())
    rules = sorted({str(row["checkpoint_rule"]) for row in rows if row.get("checkpoint_rule")})
    notes = (
        f"Panel {panel.get('name')}: {panel_size(panel)}, hash {panel.get('hash')}; each "
        f"once per evaluation seed ({', '.join(map(str, one.get('eval_seeds') or []))}). "
        f"Environment settings: {settings or 'default'}.",
        f"Start: weights {one.get('model_hash')}; convention {one.get('convention')}; evaluated "
        f"checkpoint: {', '.join(rules) or 'not said'}.",
        f"Versions: {versions or 'not said'}.",
    )
    return Report(
        f"{one.get('env_id')}: {len(rows)} finished runs", tuple(head), tuple(body), notes
    )


def diagnostics(found: Mapping[str, Diagnosis]) -> list[Report]:
    """Tables of shares, a line a run; empty without rollouts."""
    if not found:
        return []
    first = next(iter(found.values()))
    head = ("run", *(title for title, _ in _SHARES))
    body = tuple(
        (name, *(_share(getattr(one, key)) for _, key in _SHARES)) for name, one in found.items()
    )
    stages, estimators = list(first.corrected), list(first.effective_rows)
    shaping = tuple(
        (name, *(_share(one.corrected[stage]) for stage in stages)) for name, one in found.items()
    )
    effective = tuple(
        (name, *(_share(one.effective_rows[e]) for e in estimators)) for name, one in found.items()
    )
    return [
        Report("Shares of steps, pairs and candidates", head, body, _READING[:1]),
        Report("GraphGPO's ties ranked rightly", ("run", *stages), shaping, _READING[1:2]),
        Report("Steps with credit", ("run", *estimators), effective, _READING[2:]),
    ]


def _share(share: Share) -> str:
    if share.value is None:
        return "none"
    return f"{100 * share.value:.1f} % of {share.total:,}"


def _percent(share: object) -> str:
    return f"{100.0 * share:.1f}" if isinstance(share, (int, float)) else ""


def _text(value: object) -> str:
    return "" if value is None else str(value)
