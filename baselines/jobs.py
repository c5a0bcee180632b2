"""Run programs side by side, each with a folder of its own, and end them when this one ends.

A job is finished when its ``result.json`` exists, which programs write last. While it runs, its
``progress.json`` ({"what", "done", "total"}) says how far it is. What it prints goes to
``log.txt``. Needs a POSIX system.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Protocol

POLL_SECONDS = 0.25
GRACE_SECONDS = 10.0


class InUse(Exception):
    """Another process works in this folder."""


@dataclass(frozen=True)
class Job:
    """One process: what to run, and the folder it leaves its result in."""

    name: str
    folder: Path
    command: tuple[str, ...]
    threads: int = 1

    @property
    def result(self) -> Path:
        """Where the result will be."""
        return self.folder / "result.json"


@dataclass(frozen=True)
class Running:
    """How far a job is: done of total of a phase, seconds since its start and the phase's."""

    job: Job
    what: str = "starting"
    done: int = 0
    total: int = 0
    seconds: float = 0.0
    phase_seconds: float = 0.0

    @property
    def phase_left(self) -> float | None:
        """Seconds left of the phase at its pace so far, once anything is done."""
        return self.phase_seconds * (self.total - self.done) / self.done if self.done else None


@dataclass(frozen=True)
class Ended:
    """A job that ended; ok if it left a result."""

    job: Job
    ok: bool
    seconds: float

    def log_tail(self, lines: int = 20) -> str:
        """Return the end of what it printed."""
        text = (self.job.folder / "log.txt").read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])


class Watcher(Protocol):
    """Shows progress."""

    def look(self, running: Sequence[Running], waiting: int) -> None:
        """Take note of the running jobs and the number of those not started; called often."""


@contextmanager
def alone_in(folder: Path) -> Iterator[int]:
    """Hold a folder's lock; programs started with the yielded descriptor open hold it too.

    Raises:
        InUse: another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse(
                f"{folder} is in use: another comparison runs there, or programs that a killed one "
                "left behind. Wait for them or end them, or choose another --output_dir."
            ) from None
        yield file.fileno()


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end this process as Ctrl-C does, by KeyboardInterrupt."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {s: signal.signal(s, interrupt) for s in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _signals_later() -> Iterator[None]:
    """Let a signal that would end this process wait: a job just started must not be lost sight of.

    Signals reach the main thread only; in another there is nothing to hold back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    before = {s: signal.signal(s, note) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt


def run_jobs(
    jobs: Sequence[Job], side_by_side: int, watcher: Watcher, lock: int
) -> Generator[Ended]:
    """Run jobs in order, so many at a time, and yield each as it ends.

    Closing the iterator, or an exception in it, ends the jobs that run.

    Args:
        jobs: to run; none of them is looked up for an earlier result.
        side_by_side: how many run at a time.
        watcher: shown the running jobs every ``POLL_SECONDS``.
        lock: descriptor of ``alone_in``, kept open by the jobs.
    """
    waiting = list(jobs)
    running: list[_Process] = []
    try:
        while waiting or running:
            while waiting and len(running) < side_by_side:
                with _signals_later():
                    running.append(_Process(waiting.pop(0), lock))
            watcher.look([process.look() for process in running], len(waiting))
            time.sleep(POLL_SECONDS)
            for process in [p for p in running if p.popen.poll() is not None]:
                running.remove(process)
                yield process.ended()
    finally:
        _end(running)


class _Process:
    """A started job, the leader of a process group of its own."""

    def __init__(self, job: Job, lock: int) -> None:
        job.folder.mkdir(parents=True, exist_ok=True)
        for name in ("progress.json", "result.json"):
            (job.folder / name).unlink(missing_ok=True)
        threads = str(job.threads)
        self.job = job
        self._started = self._phase_started = time.monotonic()
        self._last = Running(job)
        with (job.folder / "log.txt").open("wb") as log:
            self.popen = subprocess.Popen(
                job.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(lock,),
                env={
                    **os.environ,
                    "OMP_NUM_THREADS": threads,
                    "MKL_NUM_THREADS": threads,
                    "OPENBLAS_NUM_THREADS": threads,
                    "TOKENIZERS_PARALLELISM": "false",
                },
            )

    def look(self) -> Running:
        path, now = self.job.folder / "progress.json", time.monotonic()
        what, done, total = self._last.what, self._last.done, self._last.total
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            what, done, total = str(found["what"]), int(found["done"]), int(found["total"])
        if what != self._last.what:
            self._phase_started = now
        self._last = Running(
            self.job, what, done, total, now - self._started, now - self._phase_started
        )
        return self._last

    def ended(self) -> Ended:
        return Ended(self.job, self.job.result.exists(), time.monotonic() - self._started)


def _end(processes: Sequence[_Process]) -> None:
    """Ask, wait, then force: each job with everything it started."""
    for number, seconds in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, GRACE_SECONDS)):
        until = time.monotonic() + seconds
        left = [process.popen for process in processes if process.popen.poll() is None]
        for popen in left:
            os.killpg(popen.pid, number)
        for popen in left:
            try:
                popen.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                continue
