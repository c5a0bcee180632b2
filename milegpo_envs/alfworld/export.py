"""Generated games as a folder that alfworld's own `AlfredTWEnv` loads unchanged.

    DATA/json_2.1.1/manifest.json
    DATA/json_2.1.1/train/{type}-{object}-None-{receptacle}-{room}/trial_gen1_full_train_0042/...
    DATA/logic/{alfred.pddl,alfred.twl2}

A split appears whole or not at all. Its games are those of the same ids in memory: same problem,
same texts; ids become paths. The walkthrough in a game file is a shortest plan, so what is written
was won once.
"""

import shutil
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from milegpo_envs.alfworld.compiled import compiled
from milegpo_envs.alfworld.experts import shortest_plan
from milegpo_envs.alfworld.folder import RELEASE, write_game, write_logic
from milegpo_envs.alfworld.games import GENERATOR, TASK_TYPES, generate, task_ids
from milegpo_envs.alfworld.index import Listing, index_folder
from milegpo_envs.alfworld.manifest import MANIFEST, Manifest, Split, read_manifest, write_manifest
from milegpo_envs.errors import EnvError
from milegpo_envs.reports import Advance


class Occupied(EnvError):
    """The folder holds something that would be mixed with what is to be written."""


def export(
    data: Path,
    split: str,
    advance: Advance,
    *,
    size: str = "full",
    task_types: Collection[str] | None = None,
    count: int | None = None,
) -> Listing:
    """Write the first `count` games of a split, all by default, and note them in the manifest.

    Raises:
        UnknownName: there is no such split, size or task type. Occupied: the split is there
        already, or the folder is not one of ours.
    """
    ids = task_ids(split, size, task_types)[:count]
    base, made_by = data / RELEASE, f"{GENERATOR}/{size}"
    splits = _others(base, split, made_by)
    unfinished = data / f".unfinished-{split}"
    if unfinished.exists():
        shutil.rmtree(unfinished)
    for done, id in enumerate(ids, 1):
        game = generate(id)
        plan = shortest_plan(compiled(game), game.task_type, game.params)
        if not plan:
            raise RuntimeError(f"{id} cannot be won, or is won at the start: a generator's fault.")
        write_game(unfinished, split, game, plan)
        advance(done, len(ids), f"writing {split}")
    base.mkdir(parents=True, exist_ok=True)
    write_logic(data)
    listing = index_folder(unfinished / RELEASE / split, advance)
    if len(listing.task_types) != len(ids):
        raise RuntimeError(f"{len(ids)} games were written, {len(listing.task_types)} are there.")
    kinds = Counter(listing.task_types.values())
    held = Split({kind: kinds[kind] for kind in TASK_TYPES}, listing.digest)
    (unfinished / RELEASE / split).rename(base / split)
    write_manifest(base, Manifest("generated", made_by, {**splits, split: held}))
    shutil.rmtree(unfinished)
    return listing


def _others(base: Path, split: str, made_by: str) -> Mapping[str, Split]:
    """What the manifest says of other splits; refuses to mix games of different origin."""
    manifest = read_manifest(base)
    if manifest is None and base.is_dir() and any(base.iterdir()):
        raise Occupied(
            f"{base} holds games of other origin (no {MANIFEST}): choose another folder."
        )
    if manifest is None:
        return {}
    if manifest.made_by != made_by:
        raise Occupied(f"{base} holds games of {manifest.made_by}, not {made_by}.")
    if (base / split).exists():
        raise Occupied(f"{base / split} is there already: delete it or choose another folder.")
    return manifest.splits
