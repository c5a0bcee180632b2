import io
import subprocess
import sys
import time
from contextlib import closing

import pytest
from rich.console import Console

from baselines import displays, jobs
from baselines.displays import Display, duration, seconds_left
from baselines.jobs import InUse, Job, Running, alone_in, run_jobs

WORK = """
import json, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
for done in range(3):
    (folder / "progress.new").write_text(json.dumps({"what": "training", "done": done, "total": 3}))
    (folder / "progress.new").replace(folder / "progress.json")
    time.sleep(float(sys.argv[2]))
if folder.name == "bad":
    sys.exit("boom")
(folder / "result.json").write_text("{}")
"""


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(jobs, "POLL_SECONDS", 0.02)


def job(tmp_path, name, seconds=0.05):
    folder = tmp_path / name
    return Job(name, folder, (sys.executable, "-c", WORK, str(folder), str(seconds)))


class Silent:
    def __init__(self):
        self.seen = []

    def look(self, running, waiting):
        self.seen.append([r.job.name for r in running])


def test_jobs_run_side_by_side_in_order_and_a_failure_stops_nobody(tmp_path):
    silent = Silent()
    todo = [job(tmp_path, name) for name in ("a", "bad", "b")]
    with alone_in(tmp_path) as lock:
        ended = {e.job.name: e for e in run_jobs(todo, 2, silent, lock)}
    assert {name: e.ok for name, e in ended.items()} == {"a": True, "bad": False, "b": True}
    assert "boom" in ended["bad"].log_tail()
    assert silent.seen[0] == ["a", "bad"]
    assert max(map(len, silent.seen)) == 2


def test_leaving_early_ends_what_runs(tmp_path):
    with (
        alone_in(tmp_path) as lock,
        closing(run_jobs([job(tmp_path, "a", 60)], 1, Late(), lock)) as it,
    ):
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            next(it)
    assert time.monotonic() - started < 5
    with alone_in(tmp_path):  # nobody holds the folder any more
        pass


class Late:
    def look(self, running, waiting):
        if (running[0].job.folder / "progress.json").exists():
            raise KeyboardInterrupt


def test_a_folder_is_used_by_one_at_a_time(tmp_path):
    with alone_in(tmp_path), pytest.raises(InUse, match="another --output_dir"), alone_in(tmp_path):
        pass


def test_a_folder_stays_in_use_while_a_program_of_a_killed_comparison_runs_on(tmp_path):
    with alone_in(tmp_path) as lock:
        left = subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1, pass_fds=(lock,))
    with pytest.raises(InUse), alone_in(tmp_path):
        pass
    left.communicate(b"\n")
    with alone_in(tmp_path):
        pass


def test_where_nobody_sees_a_bar_lines_tell_the_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(displays, "PLAIN_SECONDS", 0.05)
    output = io.StringIO()
    console = Console(file=output, width=200)
    with alone_in(tmp_path) as lock, Display(console, 1, 0, 1) as display:
        for ended in run_jobs([job(tmp_path, "a", 0.15)], 1, display, lock):
            display.ended(ended, "finished")
    said = output.getvalue()
    assert "a: started" in said
    assert "a: training 2/3" in said
    assert "about" in said
    assert "a: finished after" in said


def test_plain_lines_come_no_more_often_than_told(tmp_path):
    output = io.StringIO()
    with Display(Console(file=output, width=200), 1, 0, 1) as display:
        for _ in range(50):
            display.look([Running(job(tmp_path, "a"))], 0)
    assert output.getvalue().splitlines() == ["a: started"]


def test_a_terminal_shows_bars(tmp_path):
    output = io.StringIO()
    console = Console(file=output, width=120, force_terminal=True)
    with Display(console, 2, 0, 1) as display:
        display.look([Running(job(tmp_path, "a"), "training", 1, 3, 10.0, 10.0)], 1)
        time.sleep(0.3)  # bars are drawn ten times a second
    assert "a: training" in output.getvalue()
    assert "1/3" in output.getvalue()


def test_time_left_counts_waiting_jobs_and_those_side_by_side(tmp_path):
    running = [Running(job(tmp_path, "a"), "training", 5, 10, 50.0, 50.0)]
    assert seconds_left(running, 0, [], 2) == 50.0  # half of the iterations took 50 s
    assert seconds_left(running, 3, [], 2) == 175.0  # (50 + 3 x 100) / 2
    assert seconds_left(running, 3, [60.0], 2) == 95.0  # (10 + 3 x 60) / 2
    assert seconds_left([Running(job(tmp_path, "a"))], 3, [], 2) is None


def test_durations_read_well():
    assert [duration(s) for s in (5, 300, 5400)] == ["5 s", "5 min", "1 h 30 min"]
