"""The index of a folder of games: which are playable, of what type and wording, and why not others.

Official filters (alfworld's `AlfredTWEnv.collect_game_files`): no `movable` and no `Sliced` task, a
known task type, a game file with `solvable: true`. The order is that of the sorted paths, never of
the disk.

Reading 3,553 games takes seconds, so what was found is kept in the user's cache folder
(`caching.cache_folder`; data folders are often shared and read-only). A kept
entry counts only while size, time of change and time of status change of both files of its game
are the same: then the content is, without reading it again, and one changed game costs one reading.
The digests in the index are of the contents themselves. A damaged cache is made anew; builders side
by side each replace it by a whole one.

Workers are started as programs of their own (`python -c`), not forked and not by re-running the
caller's main module, so an index can be built from threads, notebooks, `python -c` and scripts
without a main guard. Games that a worker did not deliver are read here.
"""

import contextlib
import functools
import hashlib
import json
import logging
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import milegpo_envs
from milegpo_envs.alfworld.games import TASK_TYPES
from milegpo_envs.alfworld.trajectory import read_object, read_trajectory
from milegpo_envs.alfworld.versions import release_of
from milegpo_envs.caching import cache_folder
from milegpo_envs.reports import Advance

GAME_FILE, TRAJECTORY_FILE = "game.tw-pddl", "traj_data.json"
WORTH_KEEPING = 64  # games; a smaller folder is read anew by every process
PER_WORKER = 250  # games that pay for starting a worker
MOST_WORKERS = 16
_FORMAT = 2  # of the cache and of the rules in `judge`
_SETTLED = 2.0  # seconds after which another change shows in a file's times
_WORKER = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from milegpo_envs.alfworld.index import serve
serve()
"""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """What the index knows of one game. left_out: the reason, or "" for a playable game.

    release: of the wording, see `versions.release_of`. digest: blake2b-64 of the game file.
    """

    task_type: str
    left_out: str = ""
    release: str = ""
    digest: str = ""


@dataclass(frozen=True)
class Listing:
    """The games below a folder, by path relative to it, in sorted order."""

    root: Path
    entries: Mapping[str, Entry]

    @functools.cached_property
    def task_types(self) -> dict[str, str]:
        """Type of every playable game."""
        return {id: e.task_type for id, e in self.entries.items() if not e.left_out}

    @functools.cached_property
    def left_out(self) -> dict[str, str]:
        """Reason for every other game."""
        return {id: e.left_out for id, e in self.entries.items() if e.left_out}

    @functools.cached_property
    def skipped(self) -> dict[str, int]:
        """Number of games left out for each reason, in sorted order of the reasons."""
        return dict(sorted(Counter(self.left_out.values()).items()))

    @functools.cached_property
    def releases(self) -> dict[str, int]:
        """Number of playable games of each wording."""
        return dict(sorted(Counter(self.entries[id].release for id in self.task_types).items()))

    @functools.cached_property
    def digest(self) -> str:
        """16 hex digits over ids and contents of the playable games."""
        text = "\n".join(f"{id}\t{self.entries[id].digest}" for id in self.task_types)
        return _digest(text.encode("utf-8", "surrogatepass"))


@functools.lru_cache(maxsize=16)
def read_folder(root: Path) -> Listing:
    """List the games below a folder; looked up once a process, see `index_folder`."""
    return index_folder(root)


def index_folder(
    root: Path,
    advance: Advance | None = None,
    cache: Path | None = None,
    workers: int | None = None,
) -> Listing:
    """Build or look up the index of a folder.

    Args:
        root: below it are folders with a game file, a trajectory file or both.
        advance: called with games read, games to read, and what is done; None logs.
        cache: folder of the kept indices; the user's by default.
        workers: processes to read with; as many as there are cores, where that pays, by default.
    """
    stamps = dict(sorted(_stamps(root)))
    keep = (cache_folder() / "alfworld" if cache is None else cache) / _cache_name(root)
    kept = _load(keep) if len(stamps) >= WORTH_KEEPING else {}
    entries = {
        id: kept[id][1] for id, stamp in stamps.items() if id in kept and kept[id][0] == stamp
    }
    missing = [id for id in stamps if id not in entries]
    entries |= _judged(root, missing, advance or _log, workers)
    if len(stamps) >= WORTH_KEEPING and (missing or len(kept) > len(stamps)):
        _save(keep, stamps, entries)
    return Listing(root, {id: entries[id] for id in stamps})


def judge(root: Path, task_id: str) -> Entry:
    """Read one game and decide by the official filters."""
    folder = root / task_id
    if not (folder / TRAJECTORY_FILE).is_file():
        return Entry("", "no traj_data.json")
    if "movable" in task_id:
        return Entry("", "movable receptacle")
    if "Sliced" in task_id:
        return Entry("", "sliced object")
    try:
        told = (folder / TRAJECTORY_FILE).read_bytes()
        kind = str(read_object(told)["task_type"])
        if kind not in TASK_TYPES:
            return Entry(kind, "unknown task type")
        read_trajectory(told)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return Entry("", "unreadable traj_data.json")
    if not (folder / GAME_FILE).is_file():
        return Entry(kind, "no game file")
    try:
        content = (folder / GAME_FILE).read_bytes()
        game = read_object(content)
        texts = [game[key] for key in ("pddl_domain", "grammar", "pddl_problem")]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return Entry(kind, "unreadable game file")
    if not all(isinstance(text, str) for text in texts):
        return Entry(kind, "unreadable game file")
    if "solvable" not in game:
        return Entry(kind, "no solvable key")
    if game["solvable"] is not True:
        return Entry(kind, "unsolvable")
    return Entry(kind, "", release_of(game["grammar"]), _digest(content))


Stamp = tuple[int, ...]
"""Size, time of change and of status change in ns, of the trajectory file and of the game file."""


def _stamps(root: Path) -> Iterator[tuple[str, Stamp]]:
    start = len(os.path.join(root, ""))
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]  # unfinished ones
        if TRAJECTORY_FILE in files or GAME_FILE in files:
            stamp: list[int] = []
            for name in (TRAJECTORY_FILE, GAME_FILE):
                stamp += _stamp(f"{folder}/{name}") if name in files else (-1, -1, -1)
            yield folder[start:] or ".", tuple(stamp)


def _stamp(path: str) -> Stamp:
    try:
        found = os.stat(path)
    except OSError:  # a link to nowhere
        return (-1, -1, -1)
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _judged(
    root: Path, ids: Sequence[str], advance: Advance, workers: int | None
) -> dict[str, Entry]:
    """Entries of games, by workers where that pays, the rest in this process."""
    if workers is None:
        workers = min(len(os.sched_getaffinity(0)), MOST_WORKERS, len(ids) // PER_WORKER)
    what, found = f"reading games in {root}", dict[str, Entry]()
    if workers > 1 and sys.executable:
        for task_id, entry in _delivered(root, ids, workers):
            found[task_id] = entry
            advance(len(found), len(ids), what)
    for task_id in ids:
        if task_id not in found:
            found[task_id] = judge(root, task_id)
            advance(len(found), len(ids), what)
    return found


def _delivered(root: Path, ids: Sequence[str], workers: int) -> Iterator[tuple[str, Entry]]:
    """What workers find, as it comes."""
    path = [str(Path(milegpo_envs.__file__).parents[1]), *sys.path]
    command = [sys.executable, "-P", "-c", _WORKER, json.dumps(path)]
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    started: list[subprocess.Popen[str]] = []
    threads: list[threading.Thread] = []

    def follow(process: subprocess.Popen[str], order: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # it ended early: its games are read here
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(order)
            process.stdin.close()
            for line in process.stdout:
                lines.put(line)
        lines.put(None)

    try:
        for number in range(workers):
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            started.append(process)
            order = json.dumps([str(root), ids[number::workers]])
            threads.append(threading.Thread(target=follow, args=(process, order), daemon=True))
            threads[-1].start()
        running = workers
        while running:
            line = lines.get()
            if line is None:
                running -= 1
            elif line.endswith("\n"):
                task_id, *fields = json.loads(line)
                yield task_id, Entry(*fields)
    finally:
        for process in started:
            process.kill()
            process.wait()
        for thread in threads:
            thread.join()


def serve() -> None:
    """Be a worker: a folder and ids on standard input, a line of JSON a game on standard output."""
    root, ids = json.loads(sys.stdin.read())
    for task_id in ids:
        print(json.dumps([task_id, *astuple(judge(Path(root), task_id))]), flush=True)


def _cache_name(root: Path) -> str:
    return f"index-{_digest(os.fsencode(root.resolve()))}.json"


def _load(path: Path) -> dict[str, tuple[Stamp, Entry]]:
    """A kept index; empty if there is none, or a damaged one, or one of another format."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        check, text = path.read_text(encoding="utf-8").split("\n", 1)
        if check == f"{_FORMAT} {_digest(text.encode())}":
            return {id: (tuple(s), Entry(*fields)) for id, (s, fields) in json.loads(text).items()}
        _logger.warning("The index %s is damaged or of another version; making it anew.", path)
    return {}


def _save(path: Path, stamps: Mapping[str, Stamp], entries: Mapping[str, Entry]) -> None:
    """Keep the entries of files that are not changing right now; without a place, keep nothing."""
    settled = (time.time() - _SETTLED) * 1e9
    text = json.dumps(
        {
            id: [stamp, astuple(entries[id])]
            for id, stamp in stamps.items()
            if max(stamp[1], stamp[2], stamp[4], stamp[5]) < settled
        }
    )
    unfinished = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(f"{_FORMAT} {_digest(text.encode())}\n{text}", encoding="utf-8")
        os.replace(unfinished, path)
    except OSError as error:
        _logger.warning("The index of games cannot be kept (%s); it is built each time.", error)


def _log(done: int, total: int, what: str) -> None:
    if done % 500 == 0 or done == total:
        _logger.info("%s: %d of %d", what, done, total)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
