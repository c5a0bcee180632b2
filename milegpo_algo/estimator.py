"""What all credit estimators share: settings, conventions, recipes, the registry, the episode term.

An estimator is a frozen dataclass under `@register("name")`; its fields are its settings. Papers
and reference code disagree on points that move results, so those points are settings too, bundled
as the conventions "paper" and "verl-agent"; one given by name overrides the bundle.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, cast, overload

import numpy as np

from milegpo_algo.data import FloatArray, IntArray, Rollouts
from milegpo_algo.returns import (
    STD_EPSILON,
    SUM_NOISE,
    Moments,
    NormKind,
    moments,
    row_scores,
    trajectory_scores,
)

Json: TypeAlias = str | int | float | bool | list["Json"] | dict[str, "Json"] | None
Preset: TypeAlias = Mapping[str, object]

BY_CONVENTION: Literal["convention"] = "convention"
"""The default of a setting on which paper and reference code disagree."""

CONVENTIONS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "paper": {
            "episode_statistics": "trajectories",
            "episode_score": "trajectory",
            "episode_singleton": "zero",
            "depth_weights": "k",
            "depth_average": "exact",
            "exponent": "d+1",
        },
        "verl-agent": {
            "episode_statistics": "rows",
            "episode_score": "row",
            "episode_singleton": "raw",
            "depth_weights": "k+1",
            "depth_average": "epsilon",
            "exponent": "d",
        },
    }
)

RECIPES = ("alfworld", "webshop", "sokoban")


class SettingError(ValueError):
    """A setting has a value that it cannot take."""


class UnknownSetting(SettingError):
    """A setting, recipe or convention that does not exist; the text lists those that do."""


class UnknownEstimator(ValueError):
    """No estimator is registered under this name; the text lists those that are."""


def setting(
    default: Any,
    *,
    choices: tuple[str, ...] = (),
    above: float = -math.inf,
    at_least: float = -math.inf,
    below: float = math.inf,
    at_most: float = math.inf,
) -> Any:
    """Declare a field, its default and its limits; typed as `dataclasses.field` is."""
    bounds = {"above": above, "at_least": at_least, "below": below, "at_most": at_most}
    return field(default=default, metadata={"choices": choices, **bounds})


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """Settings that every estimator has.

    Attributes:
        convention: Which bundle fills the settings on which paper and reference code disagree.
        penalty: Subtracted for a malformed reply.
    """

    name: ClassVar[str] = ""
    recipes: ClassVar[Mapping[str, Preset]] = {recipe: {} for recipe in RECIPES}

    convention: str = "paper"
    penalty: float = setting(0.1, at_least=0.0)

    def __post_init__(self) -> None:
        bundle = CONVENTIONS.get(self.convention)
        if bundle is None:
            raise UnknownSetting(_unknown("convention", self.convention, CONVENTIONS))
        for spec in fields(self):
            value = getattr(self, spec.name)
            if value == BY_CONVENTION and spec.default == BY_CONVENTION:
                object.__setattr__(self, spec.name, bundle[spec.name])
            elif spec.metadata:
                _check(spec.name, value, spec.default, spec.metadata)

    def settings(self) -> dict[str, Json]:
        """Every setting as it takes effect, the convention's included, ready for JSON."""
        values = {spec.name: _json(getattr(self, spec.name)) for spec in fields(self)}
        return {"estimator": self.name, **values}


@dataclass(frozen=True, kw_only=True)
class StepEstimator(Estimator, ABC):
    """Gives one advantage to each step."""

    def __call__(self, rollouts: Rollouts) -> FloatArray:
        """Advantages aligned with the rows of `rollouts`.  [N]."""
        self.check(rollouts)
        found = np.empty(len(rollouts))
        for rows, block in rollouts.blocks():
            found[rows] = self.compute(block)
        return found

    @abstractmethod
    def compute(self, rollouts: Rollouts) -> FloatArray:
        """Advantages of whole tasks; many rollouts come in several blocks of tasks.  [N]."""

    def check(self, rollouts: Rollouts) -> None:
        """Raise `RolloutError` for rollouts that this estimator cannot read."""


@dataclass(frozen=True, kw_only=True)
class TokenEstimator(Estimator, ABC):
    """Gives one advantage to each response token, from a critic's values."""

    @abstractmethod
    def __call__(self, rollouts: Rollouts, values: Sequence[FloatArray]) -> list[FloatArray]:
        """Advantages per row, each as long as that row's `values`.  N arrays."""

    @abstractmethod
    def targets(self, rollouts: Rollouts, values: Sequence[FloatArray]) -> list[FloatArray]:
        """What the critic should have said, each as long as that row's `values`.  N arrays."""


@dataclass(frozen=True, kw_only=True)
class EpisodeEstimator(StepEstimator):
    """Compares whole trajectories of a task.

    Attributes:
        episode_statistics: Mean and spread over "trajectories", each counted once, or over "rows",
            where a long trajectory votes once per step.
        episode_score: "trajectory": Z_i = R_i - penalty * n_inv(i). "row": R_i - penalty if this
            row is malformed. A row's own score under statistics over trajectories enters them as
            its trajectory's mean.
        episode_singleton: What a group of one (one trajectory, or one row, as counted) gets:
            "zero", or "raw", its score as if mean 0 and spread 1.
    """

    episode_statistics: Literal["trajectories", "rows", "convention"] = setting(
        BY_CONVENTION, choices=("trajectories", "rows")
    )
    episode_score: Literal["trajectory", "row", "convention"] = setting(
        BY_CONVENTION, choices=("trajectory", "row")
    )
    episode_singleton: Literal["zero", "raw", "convention"] = setting(
        BY_CONVENTION, choices=("zero", "raw")
    )

    def episode_term(self, rollouts: Rollouts, norm: NormKind) -> FloatArray:
        """Norm_q(Z) on all rows of the trajectory.  [N]."""
        scores, found = self.episode_moments(rollouts)
        centred = found.centre(scores, rollouts.task)
        if norm == "mean":
            return self.replace_singletons(centred, scores, found.size[rollouts.task])
        scaled = centred / (found.std + STD_EPSILON)[rollouts.task]
        return self.replace_singletons(
            scaled, scores / (1.0 + STD_EPSILON), found.size[rollouts.task]
        )

    def episode_moments(self, rollouts: Rollouts) -> tuple[FloatArray, Moments]:
        """Z on each row [N], and its moments over the members that count, per task [T]."""
        count = len(rollouts.tasks)
        if self.episode_score == "trajectory":
            per_trajectory = trajectory_scores(rollouts, self.penalty)
            per_row = per_trajectory[rollouts.trajectory]
        else:
            per_row = row_scores(rollouts, self.penalty)
            total = np.bincount(rollouts.trajectory, per_row)
            per_trajectory = total / rollouts.trajectory_length
        if self.episode_statistics == "trajectories":
            owner = rollouts.trajectory_task
            return per_row, moments(per_trajectory, owner, count, noise=SUM_NOISE)
        return per_row, moments(per_row, rollouts.task, count, noise=SUM_NOISE)

    def replace_singletons(self, values: FloatArray, raw: FloatArray, size: IntArray) -> FloatArray:
        """`values`, but 0 or `raw` where a row's group counts one member.  [N]."""
        alone = raw if self.episode_singleton == "raw" else 0.0
        return np.where(size == 1, alone, values)


Class = TypeVar("Class", bound=type[Estimator])
_REGISTRY: dict[str, type[Estimator]] = {}


def register(name: str) -> Callable[[Class], Class]:
    """Make an estimator class known under `name`."""

    def add(cls: Class) -> Class:
        if name in _REGISTRY and _REGISTRY[name].__qualname__ != cls.__qualname__:
            raise ValueError(f"two estimators are named {name!r}")
        cls.name = name
        _REGISTRY[name] = cls
        return cls

    return add


def estimator_names() -> tuple[str, ...]:
    """All registered estimators, sorted."""
    return tuple(sorted(_REGISTRY))


def make_estimator(
    name: str, *, convention: str = "paper", recipe: str | None = None, **settings: object
) -> StepEstimator | TokenEstimator:
    """Build an estimator by name.

    Args:
        name: One of `estimator_names()`.
        convention: "paper" or "verl-agent".
        recipe: The papers' settings for "alfworld", "webshop" or "sokoban"; None keeps the fields'
            defaults.
        **settings: Fields of the estimator's class; they override the recipe and the convention.

    Raises:
        UnknownEstimator: No estimator has this name.
        UnknownSetting: The estimator has no such setting or recipe, or there is no such convention.
        SettingError: A setting cannot take this value.
    """
    if name not in _REGISTRY:
        raise UnknownEstimator(_unknown("estimator", name, estimator_names()))
    cls = _REGISTRY[name]
    valid = [spec.name for spec in fields(cls)]
    for given in settings:
        if given not in valid:
            raise UnknownSetting(_unknown(f"{name} setting", given, valid))
    if recipe is not None and recipe not in cls.recipes:
        raise UnknownSetting(_unknown(f"{name} recipe", recipe, cls.recipes))
    preset = cls.recipes[recipe] if recipe is not None else {}
    build = cast(Callable[..., StepEstimator | TokenEstimator], cls)
    return build(**{**preset, "convention": convention, **settings})


@overload
def advantages(
    rollouts: Rollouts,
    name: str,
    *,
    convention: str = "paper",
    recipe: str | None = None,
    values: None = None,
    **settings: object,
) -> FloatArray: ...


@overload
def advantages(
    rollouts: Rollouts,
    name: str,
    *,
    convention: str = "paper",
    recipe: str | None = None,
    values: Sequence[FloatArray],
    **settings: object,
) -> list[FloatArray]: ...


def advantages(
    rollouts: Rollouts,
    name: str,
    *,
    convention: str = "paper",
    recipe: str | None = None,
    values: Sequence[FloatArray] | None = None,
    **settings: object,
) -> FloatArray | list[FloatArray]:
    """Credit for each step, in the order the steps were given; arguments as for `make_estimator`.

    Returns:
        float64 [N]; from "ppo", which also needs `values` (one array of critic values per row, one
        value per response token), a list of one such array per row.

    Raises:
        TypeError: these are records and no `Rollouts`.
    """
    if not isinstance(rollouts, Rollouts):
        raise TypeError(
            f"advantages takes Rollouts, not {type(rollouts).__name__}: give "
            "Rollouts.from_steps(records)"
        )
    estimator = make_estimator(name, convention=convention, recipe=recipe, **settings)
    if isinstance(estimator, TokenEstimator):
        if values is None:
            raise SettingError(f"{name} needs 'values': one array of critic values per row")
        return estimator(rollouts, values)
    if values is not None:
        raise UnknownSetting(f"{name} takes no 'values'; only a token-level estimator does")
    return estimator(rollouts)


def _unknown(kind: str, given: str, valid: Iterable[str]) -> str:
    names = list(valid)
    close = get_close_matches(given, names, 1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return f"unknown {kind} {given!r}{hint} Valid: {', '.join(names)}"


def _check(name: str, value: object, default: object, limits: Mapping[str, Any]) -> None:
    if limits["choices"]:
        if value not in limits["choices"]:
            raise SettingError(f"{name}={value!r}: choose one of {', '.join(limits['choices'])}")
        return
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise SettingError(f"{name}={value!r}: give True or False")
        return
    whole = isinstance(default, int)
    kinds = (int, np.integer) if whole else (int, float, np.number)
    if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value):
        raise SettingError(f"{name}={value!r}: give a finite {'integer' if whole else 'number'}")
    strictly = limits["above"] < value < limits["below"]
    if not (strictly and limits["at_least"] <= value <= limits["at_most"]):
        names = [key for key in limits if key != "choices" and math.isfinite(limits[key])]
        told = [f"{key.replace('_', ' ')} {limits[key]:g}" for key in names]
        raise SettingError(f"{name}={value!r}: must be {' and '.join(told)}")


def _json(value: object) -> Json:
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, Mapping):
        return {str(key): _json(item) for key, item in value.items()}
    return str(getattr(value, "__qualname__", type(value).__qualname__))
