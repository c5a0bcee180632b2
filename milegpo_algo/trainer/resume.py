"""What a checkpoint holds beside TRL's, and how a run is asked to stop.

A checkpoint is complete when `milegpo.json` is in it, which is written last.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

MARKER = "milegpo.json"


@dataclass(frozen=True)
class Progress:
    """Where a run stands, beside its number of iterations.

    Attributes:
        position: in the stream of tasks, where dynamic sampling draws more than a fixed number.
        flat: iterations in a row with nothing to learn from.
    """

    position: int = 0
    flat: int = 0

    def save(self, checkpoint: Path) -> None:
        """Write the file that completes a checkpoint."""
        (checkpoint / MARKER).write_text(json.dumps(asdict(self)) + "\n")

    @classmethod
    def load(cls, checkpoint: Path) -> Progress:
        """Read it.

        Raises:
            FileNotFoundError: the checkpoint was broken off, or is not one of this trainer.
        """
        path = checkpoint / MARKER
        if not path.is_file():
            raise FileNotFoundError(
                f"{checkpoint} is not a complete checkpoint: it has no {MARKER}. Resume from an "
                "earlier one."
            )
        return cls(**json.loads(path.read_text()))


def last_checkpoint(folder: Path) -> Path | None:
    """The newest complete checkpoint in a run's folder, or None."""
    found = [path.parent for path in folder.glob(f"checkpoint-*/{MARKER}")]
    return max(found, key=lambda path: int(path.name.split("-")[1]), default=None)


class StopRequest:
    """Set by SIGTERM or SIGINT; a second one ends the program at once."""

    def __init__(self) -> None:
        self._number: int | None = None

    @property
    def signal(self) -> int | None:
        """Which one came, if any."""
        return self._number

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Catch the signals; they reach the main thread only, in another nothing is caught."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def note(number: int, frame: FrameType | None) -> None:
            if self._number is not None:
                raise KeyboardInterrupt
            self._number = number
            print(
                f"{signal.Signals(number).name}: stopping after this iteration, with a checkpoint; "
                "once more to stop at once.",
                flush=True,
            )

        before = {s: signal.signal(s, note) for s in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
