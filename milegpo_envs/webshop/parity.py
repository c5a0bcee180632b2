"""Recordings of the official engine, replayed: nothing may differ.

    python -m scripts.doctor parity webshop
    python -m scripts.doctor parity webshop --data FOLDER

The folder (by default $WEBSHOP_DATA, else ../shared/data/webshop beside the project) holds the
official files, `official_episodes.jsonl.gz` (steps of the official engine, its
global generator seeded with 0 before it was built) and `lucene_top50.jsonl.gz` (queries and what
Lucene found). Each recorded step is compared in both text renderings, the address, what can be
clicked, reward and end, each purchase in the breakdown of its reward, each list in order.
"""

import argparse
import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from milegpo_envs.errors import DataMissing
from milegpo_envs.reports import Advance, Report
from milegpo_envs.webshop.download import default_folder
from milegpo_envs.webshop.render import text
from milegpo_envs.webshop.text_env import WebShopEnv

HELP = "WebShop's official mode against recordings of the official engine"

EPISODES = "official_episodes.jsonl.gz"
LISTS = "lucene_top50.jsonl.gz"
BESIDE = Path(__file__).parents[3] / "shared" / "data" / "webshop"
"""Where recordings lie beside a checkout of the project."""
SHOWN = 5  # mismatches written out
GOALS: Mapping[str, bool] = {"synthetic_1k": False, "human_1k": True}
"""Name of a set of recordings -> whether its goals were written by people."""


@dataclass
class Count:
    """How much was compared, and what differed."""

    name: str
    compared: int = 0
    mismatches: list[str] = field(default_factory=list)

    def check(self, where: str, expected: object, found: object) -> None:
        """Compare one thing."""
        self.compared += 1
        if expected != found:
            self.mismatches.append(f"{where}\n  recorded: {expected!r}\n  found:    {found!r}")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--data",
        type=Path,
        help="folder with data and recordings; default: $WEBSHOP_DATA, else beside the project",
    )
    parser.add_argument("--every", type=int, default=1, help="only each n-th list and episode")


def run(options: argparse.Namespace, advance: Advance) -> Report:
    """Replay the recordings.

    Raises:
        DataMissing: the folder has none.
    """
    data = options.data or recordings()
    counts = [
        *(episodes(data, name, options.every, advance) for name in GOALS),
        lists(data, options.every, advance),
    ]
    return Report(
        title="WebShop: the official engine's recordings, replayed",
        columns=("recordings", "compared", "mismatches"),
        rows=tuple((count.name, count.compared, len(count.mismatches)) for count in counts),
        notes=tuple(line for count in counts for line in count.mismatches)[:SHOWN],
    )


def recordings() -> Path:
    """The folder that is meant where none is named.

    Raises:
        DataMissing: none has recordings; says where they were looked for.
    """
    places = (default_folder(), BESIDE)
    found = next((place for place in places if (place / EPISODES).is_file()), None)
    if found is None:
        raise DataMissing(
            f"No recordings of the official engine ({EPISODES}) in "
            f"{' or '.join(map(str, places))}. Name their folder: --data FOLDER"
        )
    return found


def episodes(data: Path, name: str, every: int, advance: Advance) -> Count:
    """Replay one set of episodes."""
    count = Count(f"episodes, {name}")
    env = WebShopEnv(data, mode="official", seed=0, human_goals=GOALS[name])
    recorded = [e for e in _lines(data / EPISODES) if e["set"] == name][::every]
    for done, episode in enumerate(recorded, 1):
        _replay(env, episode, count)
        advance(done, len(recorded), count.name)
    return count


def _replay(env: WebShopEnv, episode: Mapping[str, Any], count: Count) -> None:
    observation, info = env.reset(options={"task": episode["goal_idx"]})
    where = f"goal {episode['goal_idx']}"
    _compare(env, observation, episode["reset"], where, count)
    count.check(f"{where}: reward", 0.0, info["score"])
    for number, step in enumerate(episode["steps"], 1):
        observation, _, over, _, info = env.step(step["action"])
        bought = over and info["action_valid"]
        here = f"{where}, step {number}, {step['action']!r}"
        _compare(env, observation, step, here, count)
        count.check(f"{here}: reward", step["reward"], info["score"] if bought else 0.0)
        count.check(f"{here}: done", step["done"], bought)
        if bought:
            recorded = step["reward_info"]
            parts = {name: info["reward_parts"][name] for name in recorded}
            count.check(f"{here}: parts of the reward", recorded, parts)


def _compare(
    env: WebShopEnv, observation: str, step: Mapping[str, Any], where: str, count: Count
) -> None:
    view = env.view
    count.check(f"{where}: text_rich", step["text_rich"], observation)
    count.check(f"{where}: text", step["text"], text(view))
    count.check(f"{where}: url", step["url"], view.address)
    clickables = env.shop.clickables(env.page)
    count.check(f"{where}: clickables", step["avail"]["clickables"], clickables)


def lists(data: Path, every: int, advance: Advance) -> Count:
    """Search again for every recorded query."""
    count = Count("lists of the search, order included")
    shop = WebShopEnv(data, mode="official").shop
    recorded = list(_lines(data / LISTS))[::every]
    for done, entry in enumerate(recorded, 1):
        found = [shop.catalogue[i].asin for i in shop.search(entry["query"])]
        count.check(f"query {entry['query']!r}", entry["top"], found)
        if done % 50 == 0 or done == len(recorded):
            advance(done, len(recorded), count.name)
    return count


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        raise DataMissing(f"No recordings of the official engine at {path}.")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
