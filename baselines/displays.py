"""Show how far jobs are: bars on a terminal, plain lines now and then anywhere else."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import fmean

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from baselines.jobs import Ended, Running

PLAIN_SECONDS = 15.0


def duration(seconds: float) -> str:
    """Write seconds for people."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def seconds_left(
    running: Sequence[Running], waiting: int, took: Sequence[float], side_by_side: int
) -> float | None:
    """Estimate the time until all jobs have ended.

    Args:
        running: jobs that run.
        waiting: number of jobs that have not started.
        took: seconds of jobs that ended; until there is one, a job is taken to last as long as the
            slowest training among the running ones suggests.
        side_by_side: how many run at a time.
    """
    suggested = [
        job.seconds + job.phase_left
        for job in running
        if job.what == "training" and job.phase_left is not None
    ]
    if not took and not suggested:
        return None
    one = fmean(took) if took else max(suggested)
    left = [max(0.0, one - job.seconds) for job in running]
    return max([(sum(left) + waiting * one) / side_by_side, *left])


class Display:
    """A ``jobs.Watcher``; use as a context manager around the jobs.

    Args:
        console: where to.
        total: jobs of the whole plan.
        finished: how many of them were finished before.
        side_by_side: how many run at a time.
    """

    def __init__(self, console: Console, total: int, finished: int, side_by_side: int) -> None:
        self._console = console
        self._total = total
        self._finished = finished
        self._side_by_side = side_by_side
        self._took: list[float] = []
        self._spoken: dict[str, float] = {}
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[time]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._overall = self._bars.add_task("finished", total=total, completed=finished, time="")
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Display:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._tasks.values():
            self._bars.remove_task(task)
        self._bars.stop()

    def look(self, running: Sequence[Running], waiting: int) -> None:
        """Move the bars, or say how far a job is if that was not said for a while."""
        left = seconds_left(running, waiting, self._took, self._side_by_side)
        overall = "" if left is None else f"about {duration(left)} left"
        self._bars.update(self._overall, completed=self._finished, time=overall)
        for job in running:
            self._show(job, overall)

    def ended(self, ended: Ended, text: str) -> None:
        """Take note of the end of a job, and say the text."""
        name = ended.job.name
        if name in self._tasks:
            self._bars.remove_task(self._tasks.pop(name))
        if ended.ok:
            self._finished += 1
            self._took.append(ended.seconds)
            self._bars.update(self._overall, completed=self._finished)
        self._say(f"{name}: {text} after {duration(ended.seconds)}")

    def _show(self, job: Running, overall: str) -> None:
        name = job.job.name
        left = "" if job.phase_left is None else f", about {duration(job.phase_left)} left"
        times = f"{duration(job.seconds)}{left}"
        if self._console.is_terminal:
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(name, time="", total=None)
            self._bars.update(
                self._tasks[name],
                description=f"{name}: {job.what}",
                completed=job.done,
                total=job.total or None,
                time=times,
            )
            return
        now = time.monotonic()
        if name not in self._spoken:
            self._say(f"{name}: started")
        elif now - self._spoken[name] < PLAIN_SECONDS:
            return
        else:
            done = f"{job.what} {job.done}/{job.total}" if job.total else job.what
            self._say(
                f"{name}: {done}, {times}; {self._finished} of {self._total} finished"
                + (f", {overall}" if overall else "")
            )
        self._spoken[name] = now

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)
