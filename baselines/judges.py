"""The estimators that stored rollouts are judged by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from milegpo_algo import StepEstimator, estimator_names, make_estimator
from milegpo_algo.estimators.graphgpo import GraphGPO
from milegpo_algo.estimators.milegpo import MileGPO


@dataclass(frozen=True)
class Judges:
    """The estimators a replay asks."""

    graphgpo: GraphGPO
    milegpo: MileGPO
    others: Mapping[str, StepEstimator]


def judges(recipe: str | None, convention: str) -> Judges:
    """Every step-level estimator under one recipe; its own defaults where it has no such recipe."""
    made: dict[str, StepEstimator] = {}
    for name in estimator_names():
        known = recipe in type(make_estimator(name)).recipes
        one = make_estimator(name, convention=convention, recipe=recipe if known else None)
        if isinstance(one, StepEstimator):
            made[name] = one
    graphgpo, milegpo = made["graphgpo"], made["milegpo"]
    assert isinstance(graphgpo, GraphGPO)
    assert isinstance(milegpo, MileGPO)
    return Judges(graphgpo, milegpo, made)
