"""Recipes: YAML files with options of ``scripts.train``, and comparisons of many such options.

A plain recipe is options alone, as ``name: value``. A comparison may add

    base: other.yaml           a recipe beside this file, whose options this one completes
    environments:              name: options of its own, or ``base:``; each has a table of its own
    methods:                   name: how it differs from the others; or the name of a file of these
    seeds: [1, 2, 3]           of training
    agents: [random, expert]   not trained, played on the same panel
    target_success: 0.5        to which time and tokens are counted

A method may set what makes the method (``METHOD_OPTIONS``) and nothing else: all else is shared, so
that a table compares methods and not budgets. An environment may hold ``methods`` too, which
change a method's options there. Nothing here imports torch.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import yaml

from baselines.environments import read_settings
from milegpo_algo import estimator_names, make_estimator

RECIPES = Path(__file__).parent / "recipes"
MAIN_JOB = RECIPES / "main_job.yaml"
ESTIMATORS = ("grpo", "gigpo", "graphgpo", "milegpo")
"""Methods of a recipe that names none."""
SEEDS = (1, 2, 3)
TARGET_SUCCESS = 0.5
METHOD_OPTIONS = (
    *("estimator", "estimator_settings", "recipe", "dynamic_sampling_rounds", "degenerate_kl"),
    *("critic", "critic_model", "critic_learning_rate", "value_clip", "value_coefficient"),
)
_PLAN_KEYS = ("base", "environments", "methods", "seeds", "agents", "target_success")

Options = Mapping[str, object]


@dataclass(frozen=True)
class Plan:
    """What a recipe file asks for.

    environments: options by name; the name is "" where the file names none.
    methods: options by environment and method; where the file names methods, their estimators are
        among them.
    declared: whether the file names methods; where it does not, a method is an estimator.
    """

    path: Path
    environments: Mapping[str, Options]
    methods: Mapping[str, Mapping[str, Options]]
    declared: bool
    seeds: tuple[int, ...]
    agents: tuple[str, ...]
    target_success: float

    def options(self, environment: str, method: str | None = None) -> dict[str, object]:
        """Return the options of a cell; without a method, those that all share.

        Raises:
            ValueError: there is no such environment or method; lists those there are.
        """
        if environment not in self.environments:
            raise ValueError(_unknown(self.path, "environment", environment, self.environments))
        shared = dict(self.environments[environment])
        if method is None:
            return shared
        known = self.methods[environment]
        if method not in known:
            raise ValueError(_unknown(self.path, "method", method, known))
        return {**shared, **known[method]}

    @property
    def varied(self) -> tuple[str, ...]:
        """The options in which its methods differ from what is shared, sorted."""
        if not self.declared:
            return ()
        every = [o for by_name in self.methods.values() for o in by_name.values()]
        return tuple(sorted({key for options in every for key in options}))


def read_plan(path: Path) -> Plan:
    """Read a recipe file and check its methods.

    Raises:
        ValueError: it is not there or not YAML, or holds an unknown estimator or setting, or a
            method sets what methods share; the text says the remedy.
    """
    whole = _read(path)
    shared = {k: v for k, v in whole.items() if k not in _PLAN_KEYS}
    named = _mapping(path, "environments", whole.get("environments"))
    own = {name: _with_base(path, given) for name, given in named.items()} or {"": {}}
    declared = whole.get("methods") is not None
    methods = _methods(path, whole["methods"]) if declared else {n: {} for n in estimator_names()}
    environments, by_environment = {}, {}
    for name, given in own.items():
        changes = _methods(path, given.get("methods") or {})
        if unknown := sorted(set(changes) - set(methods)):
            raise ValueError(f"{path}: {name} changes methods that there are not: {unknown}.")
        environments[name] = {
            **shared,
            **{k: v for k, v in given.items() if k not in _PLAN_KEYS},
        }
        by_environment[name] = {
            method: {"estimator": method, **options, **changes.get(method, {})}
            for method, options in methods.items()
        }
        if declared:
            for method, options in by_environment[name].items():
                _check(path, name, method, environments[name], options)
    return Plan(
        path,
        environments,
        by_environment,
        declared,
        tuple(cast("Sequence[int]", whole.get("seeds") or SEEDS)),
        tuple(cast("Sequence[str]", whole.get("agents") or ())),
        float(cast("float", whole.get("target_success", TARGET_SUCCESS))),
    )


def default_methods(plan: Plan) -> tuple[str, ...]:
    """Return the methods to compare where nobody names any."""
    if not plan.declared:
        return ESTIMATORS
    return tuple(next(iter(plan.methods.values())))


def as_words(options: Options) -> list[str]:
    """Write options as words of a command line."""
    words: list[str] = []
    for name, value in options.items():
        if value is None:
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        words += [f"--{name}", *(_word(item) for item in values)]
    return words


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(path: Path) -> dict[str, object]:
    """Read a file and the one it completes."""
    if not path.is_file():
        known = ", ".join(str(recipe) for recipe in sorted(RECIPES.glob("*.yaml")))
        raise ValueError(f"no file {path}. Recipes that come along: {known}")
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} does not hold options as 'name: value'")
    return _with_base(path, found)


def _with_base(path: Path, given: object) -> dict[str, object]:
    options = _mapping(path, "an environment", given)
    base = options.pop("base", None)
    if base is None:
        return options
    if (path.parent / str(base)).resolve() == path.resolve():
        raise ValueError(f"{path} names itself as its base.")
    return {**_read(path.parent / str(base)), **options}


def _methods(path: Path, given: object) -> dict[str, dict[str, object]]:
    """Read methods: a mapping, a list of estimators, or a file beside this one."""
    if isinstance(given, str):
        return _methods(path.parent / given, _read(path.parent / given))
    if isinstance(given, list):
        return {str(name): {} for name in given}
    found = _mapping(path, "methods", given)
    out = {}
    for name, options in found.items():
        own = _mapping(path, name, options)
        if wrong := sorted(set(own) - set(METHOD_OPTIONS)):
            raise ValueError(
                f"{path}: the method {name} sets {', '.join(wrong)}, which all methods share. A "
                f"method may set {', '.join(METHOD_OPTIONS)}; put the rest beside 'methods'."
            )
        settings = own.get("estimator_settings")
        if isinstance(settings, dict):
            own["estimator_settings"] = [f"{key}={value}" for key, value in settings.items()]
        elif isinstance(settings, str):
            own["estimator_settings"] = [settings]
        out[name] = own
    return out


def _check(path: Path, environment: str, method: str, shared: Options, own: Options) -> None:
    """Build the estimator of a cell, so that a wrong name fails before anything runs."""
    options = {**shared, **own}
    settings = read_settings(cast("list[str]", options.get("estimator_settings") or []))
    recipe = options.get("recipe")
    try:
        make_estimator(
            str(options["estimator"]),
            convention=str(options.get("convention", "paper")),
            recipe=None if recipe is None else str(recipe),
            **settings,
        )
    except ValueError as error:
        where = f" in {environment}" if environment else ""
        raise ValueError(f"{path}: the method {method}{where}: {error}") from error


def _mapping(path: Path, what: str, given: object) -> dict[str, object]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ValueError(f"{path}: {what} is not of the form 'name: value', but {given!r}.")
    return {str(key): value for key, value in given.items()}


def _unknown(path: Path, what: str, name: str, known: Mapping[str, object]) -> str:
    valid = ", ".join(shlex.quote(k) for k in known) or "none: the file names none"
    return f"{path} has no {what} {name!r}. Valid: {valid}."
