"""scripts.compare with fake_train as the training program."""

import json
import sys
from pathlib import Path

from baselines import cells, jobs
from baselines.runs import versions
from scripts import compare
from tests.baselines.toy_rows import logged
from tests.scripts import fake_train

WINS = {"grpo": [[0, 1], [0, 1]], "milegpo": [[1, 1], [1, 1]]}


def write_rows(folder):
    """Write what the fake trainings will find: two estimators by two seeds, and the warm start."""
    (folder / "rows").mkdir()
    (folder / "model").mkdir()
    cells = [(name, seed) for name in WINS for seed in (1, 2)]
    for name, seed in [(None, None), *cells]:
        wins = WINS.get(name, [[0, 0], [1, 0]])
        row = logged(name, seed, wins, model=str(folder / "model"), versions=versions())
        path = folder / "rows" / f"{'warm_start' if name is None else f'{name}-seed{seed}'}.json"
        path.write_text(json.dumps(row))


def command(config, cell, model):
    real = cells.train_command(config, cell, model)
    return (sys.executable, str(Path(fake_train.__file__)), *real[3:])


if __name__ == "__main__":
    jobs.POLL_SECONDS = 0.02
    sys.exit(compare.main(sys.argv[1:], command))
