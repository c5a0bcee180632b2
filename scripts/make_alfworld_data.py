"""Write generated ALFWorld games to a folder in the official layout, for alfworld and for us.

    python -m scripts.make_alfworld_data DATA                       # 3,553 + 140 + 134 games
    python -m scripts.make_alfworld_data DATA --splits valid_seen --count 20 --size small

Then `ALFWORLD_DATA=DATA` serves alfworld's own programs, and `data="DATA"` our environment, which
checks the folder against the manifest written here. The same command writes the same games on every
machine. Splits that are there already are left alone and refused.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from baselines.bars import progress_bars
from milegpo_envs.alfworld.export import export
from milegpo_envs.alfworld.games import SIZES, SPLITS, TASK_TYPES
from milegpo_envs.errors import EnvError


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the splits, and say how many games each holds."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.make_alfworld_data",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", type=Path, help="folder, made if need be")
    parser.add_argument("--splits", nargs="+", choices=SPLITS, default=SPLITS)
    parser.add_argument("--size", choices=SIZES, default="full", help="of the rooms")
    parser.add_argument("--task-types", nargs="+", choices=TASK_TYPES, default=None)
    parser.add_argument("--count", type=_number, help="games of each split; default: all")
    options = parser.parse_args(arguments)
    written = {}
    try:
        with progress_bars() as advance:
            for split in options.splits:
                written[split] = export(
                    options.data,
                    split,
                    advance,
                    size=options.size,
                    task_types=options.task_types,
                    count=options.count,
                )
    except (EnvError, OSError) as error:
        sys.exit(f"{error}")
    for split, listing in written.items():
        print(f"{split}: {len(listing.task_types):,} games, digest {listing.digest}")


def _number(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


if __name__ == "__main__":
    main()
