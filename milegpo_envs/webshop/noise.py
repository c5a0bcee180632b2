"""Advertisements in the pages, as GraphGPO disturbs WebShop with them.

With some probability a page carries a few advertisements: lines of no use that make the same page
look different each time. Estimators that tell states apart by what they look like lose by it;
canonical states do not hold advertisements, so those that use them do not. To see the loss, name
states by what is observed: `StateId(Advertised(env), lambda observation, info: observation)`.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from milegpo_envs.errors import unknown_name
from milegpo_envs.webshop.actions import Click, click, read_action
from milegpo_envs.webshop.base_env import ShopEnv
from milegpo_envs.webshop.render import SEPARATOR

ADVERTISEMENTS = tuple(
    f"Sponsored: {line}"
    for line in (
        "Sunny Acre teas, now in a smaller box at the old price",
        "Lumo lamps, two for one until the weekend",
        "Mornings start with Haverly oats",
        "Rent a Tandem van from nine a day",
        "Quillon pens write upside down",
        "Your feet will thank you for Moss and Miller socks",
        "Win a week in a lighthouse, tell us your colour",
        "Peppo, the juice with the parrot",
        "Northlake mattresses, a hundred nights on trial",
        "Fix it with Griptec, holds in a minute",
        "Bluebell insurance, because hail happens",
        "New from Orsini: the biscuit you can stand on",
        "Learn the banjo at home with Professor Plunk",
        "Everything for the goldfish at Finley",
        "Kettles that whistle in tune, by Harmon",
        "Velvet Road, shoes for people who wait for buses",
        "Cobalt Bank pays you to sleep on it",
        "Garden gnomes by the dozen, delivered at night",
        "Try Zest, the soap that smells of maps",
        "Hats for tall people at Over and Above",
        "Pilgrim bikes, ride first and pay in spring",
        "Marlow pickles, loud since 1921",
        "Clean windows by breakfast with Clarity",
        "The quiet vacuum cleaner, listen to it at Hush",
    )
)
PLACES = ("page", "observation")
_HEADING = re.compile(r"Instruction: ?$")


class Advertised(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Put advertisements into pages; what a page holds depends on (seed, task, step) alone.

    Info gains `advertisements`, those on the page, in the order drawn. States and their ids are the
    wrapped environment's and hold none of them.

    Args:
        env: a WebShop, wrapped or not, that observes "text_rich", "text" or "html".
        probability: of a page with advertisements, each page by itself.
        count: advertisements on such a page.
        seed: of the draws.
        place: "page" makes them part of the page: they can be clicked, which leads nowhere and
            costs the step, and they stand among the admissible actions. "observation" puts them
            into the observation only.

    Raises:
        UnknownName: for another place, or observations that have no room for them.
    """

    def __init__(
        self,
        env: gym.Env[str, str],
        probability: float = 0.2,
        count: int = 2,
        seed: int = 0,
        place: str = "page",
    ) -> None:
        if not 0.0 <= probability <= 1.0:
            raise ValueError(f"probability is between 0 and 1; it cannot be {probability}.")
        if not 0 <= count <= len(ADVERTISEMENTS):
            raise ValueError(f"count is between 0 and {len(ADVERTISEMENTS)}, not {count}.")
        if place not in PLACES:
            raise unknown_name("place of advertisements", place, PLACES)
        RecordConstructorArgs.__init__(
            self, probability=probability, count=count, seed=seed, place=place
        )
        gym.Wrapper.__init__(self, env)
        base = env.unwrapped
        if not isinstance(base, ShopEnv):
            raise TypeError(f"Advertised needs a WebShop environment, not {base}.")
        if base.observation_mode not in _INSERT:
            raise unknown_name("observation to advertise in", base.observation_mode, _INSERT)
        self._insert = _INSERT[base.observation_mode]
        self._probability = probability
        self._count = count
        self._seed = seed
        self._clickable = place == "page"
        self._step = 0
        self._shown: tuple[str, ...] = ()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin a task."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._step = 0
        return self._advertise(observation, info)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Act; a click on an advertisement is valid and changes nothing."""
        clicked = self._clickable and self._names_one(action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        if clicked:
            info = {**info, "action_valid": True, "invalid_reason": None}
        self._step += 1
        observation, info = self._advertise(observation, info)
        return observation, float(reward), terminated, truncated, info

    def _names_one(self, action: object) -> bool:
        move = read_action(action) if isinstance(action, str) else None
        return isinstance(move, Click) and move.target in {ad.lower() for ad in self._shown}

    def _advertise(self, observation: str, info: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        draws = random.Random(f"{self._seed}/{info['task_id']}/{self._step}")
        self._shown = ()
        if draws.random() < self._probability:
            self._shown = tuple(draws.sample(ADVERTISEMENTS, self._count))
        actions = list(info["admissible_actions"])
        for advertisement in self._shown:
            observation = self._insert(observation, advertisement, self._clickable, draws)
            if self._clickable:
                actions.append(click(advertisement.lower()))
        added = {"admissible_actions": sorted(actions), "advertisements": list(self._shown)}
        return observation, {**info, **added}


def _place(pieces: Sequence[str], first: int, piece: str, draws: random.Random) -> list[str]:
    """Put a piece before any of the pieces from the first on, but the last."""
    at = draws.randint(min(first, len(pieces)), max(min(first, len(pieces)), len(pieces) - 1))
    return [*pieces[:at], piece, *pieces[at:]]


def _after_instruction(pieces: Sequence[str]) -> int:
    """Where the instruction is over: an advertisement must not be taken for it."""
    return next((i + 2 for i, piece in enumerate(pieces) if _HEADING.match(piece)), 1)


def _into_lines(observation: str, line: str, clickable: bool, draws: random.Random) -> str:
    pieces = observation.split("\n")
    shown = f"[button] {line} [button_]" if clickable else line
    return "\n".join(_place(pieces, _after_instruction(pieces), shown, draws))


def _into_text(observation: str, line: str, clickable: bool, draws: random.Random) -> str:
    pieces = observation.split(SEPARATOR)
    return SEPARATOR.join(_place(pieces, _after_instruction(pieces), line, draws))


def _into_html(observation: str, line: str, clickable: bool, draws: random.Random) -> str:
    """Beside the page's own nodes, which keep their order."""
    tag = "button" if clickable else "p"
    value = f' name="action" value="{click(line.lower())}"' if clickable else ""
    before, form, after = observation.rpartition("</form>")
    shown = f'<{tag} class="advertisement"{value}>{line}</{tag}>'
    elements = before.split("\n")
    begin = next(i for i, element in enumerate(elements) if element.startswith("<form"))
    return "\n".join(_place(elements, begin + 1, shown, draws)) + form + after


_INSERT: Mapping[str, Callable[[str, str, bool, random.Random], str]] = {
    "text_rich": _into_lines,
    "text": _into_text,
    "html": _into_html,
}
