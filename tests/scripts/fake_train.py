"""Stands in for scripts.train: the same options and files, at once, from rows written before.

Takes NAME.json from the folder ``rows`` beside the configuration. Needs no package, to start fast.
"""

import argparse
import os
import sys
import time
from pathlib import Path


def train(argv):
    parser = argparse.ArgumentParser()
    for name in ("config", "output_dir", "estimator", "model", "warm_start_only", "seed"):
        parser.add_argument(f"--{name}")
    asked, _ = parser.parse_known_args(argv)
    folder = Path(asked.output_dir)
    with (folder.parent / "started").open("a") as file:
        file.write(f"{folder.name}\n")
    if folder.name == os.environ.get("FAKE_BAD"):
        sys.exit("boom")
    if folder.name == os.environ.get("FAKE_SLOW"):
        time.sleep(60)
    time.sleep(float(os.environ.get("FAKE_WAIT", "0")))
    (folder / "evaluations.jsonl").write_text('{"iteration": 0, "success": 0.25}\n')
    row = Path(asked.config).parent / "rows" / f"{folder.name}.json"
    (folder / "result.new").write_text(row.read_text())
    (folder / "result.new").replace(folder / "result.json")


if __name__ == "__main__":
    train(sys.argv[1:])
