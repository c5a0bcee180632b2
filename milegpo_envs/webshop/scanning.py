"""Where the entries of a huge JSON file are, without reading all of it into memory.

The file is a list of objects, or an object. A window of it is decoded as Latin-1, in which a
character is a byte, so that places in the text are places in the file; the entries found are parsed
only to see where they end and to read names, which are ASCII.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from milegpo_envs.errors import DataMissing
from milegpo_envs.reports import Advance

WINDOW = 16 << 20
_SPACE = " \t\r\n,:"


@dataclass(frozen=True)
class Entry:
    """A value at [start, end) of the file, parsed as Latin-1; name: its key in an object."""

    start: int
    end: int
    name: str
    value: Any


def entries(path: Path, advance: Advance | None = None, window: int = WINDOW) -> Iterator[Entry]:
    """The entries of a file, in order.

    Raises:
        DataMissing: the file ends early or is no JSON of this form.
    """
    with path.open("rb") as file:
        text = _Window(path, file, window, advance)
        opening = text.next_character()
        if opening not in ("[", "{"):
            raise DataMissing(f"{path} holds no list and no object. Download it again.")
        text.place += 1
        while text.next_character() not in ("]", "}"):
            name = text.value()[2] if opening == "{" else ""
            start, end, value = text.value()
            yield Entry(start, end, name, value)


class _Window:
    """A part of a file that moves forward."""

    def __init__(self, path: Path, file: BinaryIO, size: int, advance: Advance | None) -> None:
        self.place = 0  # in the text
        self._path = path
        self._file = file
        self._size = size
        self._advance = advance
        self._total = path.stat().st_size
        self._text = ""
        self._offset = 0  # of the text in the file
        self._decode = json.JSONDecoder(strict=False).raw_decode

    def next_character(self) -> str:
        """The next character that is no space, comma or colon; stays in front of it."""
        while True:
            while self.place < len(self._text):
                character = self._text[self.place]
                if character not in _SPACE:
                    return character
                self.place += 1
            self._more()

    def value(self) -> tuple[int, int, Any]:
        """Read a value: where it starts and ends in the file, and what it is."""
        self.next_character()
        while True:
            try:
                value, end = self._decode(self._text, self.place)
            except json.JSONDecodeError:
                self._more()
                continue
            start = self._offset + self.place
            self.place = end
            return start, self._offset + end, value

    def _more(self) -> None:
        """Let go of what was read, and read on."""
        block = self._file.read(max(self._size, len(self._text) - self.place))
        if not block:
            raise DataMissing(
                f"{self._path} is damaged or ends early, near byte "
                f"{self._offset + self.place:,}. Download it again."
            )
        self._offset += self.place
        self._text = self._text[self.place :] + block.decode("latin-1")
        self.place = 0
        if self._advance is not None:
            self._advance(self._file.tell(), self._total, self._path.name)
