"""Fetch published files: resumed after an interruption, checked, and unpacked safely.

    archive = fetch(RemoteFile(url, sha256=...), folder, advance)
    unpack(archive, folder, advance)

A file under way is `NAME.part`, beside it `NAME.part.json` with what the server said of it; the
file gets its name only when it is whole and its checksum is right. So whatever has its name is
whole, also one copied there by hand, whose checksum is looked at too. `Ledger` remembers checksums,
for files whose checksum nobody published. Nothing here runs on import of an environment.
"""

import contextlib
import hashlib
import json
import os
import shutil
import stat
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

import httpx

from milegpo_envs.errors import DataMissing, EnvError
from milegpo_envs.reports import Advance

TRIES = 5  # connections in a row that bring nothing, before giving up
_BLOCK = 1 << 20
_TIMEOUT = httpx.Timeout(60.0, connect=30.0)
_LEDGER = "downloads.json"


class DownloadFailed(EnvError):
    """A file could not be had, or is not the one that was asked for."""


class WrongFile(DownloadFailed):
    """A file of another size or checksum than is known of it."""


@dataclass(frozen=True)
class RemoteFile:
    """A file to fetch. sha256: 64 hex digits, or None where none is known. size: bytes, or None."""

    url: str
    sha256: str | None = None
    size: int | None = None

    @property
    def name(self) -> str:
        """The last part of the URL's path."""
        return unquote(PurePosixPath(urlsplit(self.url).path).name)


def quiet(done: int, total: int, what: str) -> None:
    """Show no progress."""


def fetch(file: RemoteFile, folder: Path, advance: Advance = quiet) -> Path:
    """Return the file's path in `folder`, downloading what is missing of it.

    Args:
        file: what to fetch; only http and https URLs.
        folder: made if need be; a file of that name in it is taken if its checksum is right.
        advance: called with bytes done, bytes in all (0: the server does not say), and the name.

    Raises:
        DownloadFailed: no connection after several tries, or a refusal by the server.
        WrongFile: a file of another size or checksum. Every message says what to do.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / file.name
    if target.is_file():
        check(target, file)
        return target
    part = folder / f"{file.name}.part"
    _receive(file, part, advance)
    if wrong := _difference(part, file):
        _discard(part)
        raise WrongFile(
            f"{wrong} The download was thrown away. Run this again, or get the file by other means "
            f"and copy it to {folder}."
        )
    os.replace(part, target)
    _note(part).unlink(missing_ok=True)
    return target


def check(path: Path, file: RemoteFile) -> None:
    """Compare a local file's size and checksum with what is known of them.

    Raises:
        WrongFile: they differ.
    """
    if wrong := _difference(path, file):
        raise WrongFile(f"{wrong} Delete it and run this again, or get the file by other means.")


def _difference(path: Path, file: RemoteFile) -> str:
    """How a local file differs from what is known of it; "" if it does not."""
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return f"{path} has {size:,} bytes, {file.name} of {file.url} should have {file.size:,}."
    if file.sha256 is not None and (found := sha256_of(path)) != file.sha256:
        return (
            f"{path} has the SHA-256 {found}, {file.name} should have {file.sha256}. It was "
            f"damaged on the way, or {file.url} now serves another file."
        )
    return ""


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content, 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _receive(file: RemoteFile, part: Path, advance: Advance) -> None:
    """Append to `part` until it is whole; each connection goes on where the last one broke off."""
    fruitless = 0
    while True:
        before = _size(part)
        try:
            with httpx.Client(follow_redirects=True, timeout=_TIMEOUT) as client:
                _connect(client, file, part, advance)
            return
        except httpx.TransportError as error:
            fruitless = 0 if _size(part) > before else fruitless + 1
            if fruitless >= TRIES:
                raise DownloadFailed(
                    f"No connection to {file.url}: {error!r}. Run this again to go on where it "
                    f"stopped, or copy {file.name} to {part.parent} from a machine that has it."
                ) from error
            time.sleep(min(8.0, 0.25 * 2**fruitless))


def _connect(client: httpx.Client, file: RemoteFile, part: Path, advance: Advance) -> None:
    """One request. A server that cannot resume, or has another file by now, starts it over."""
    have = _size(part)
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        if validator := _validator(part):
            headers["If-Range"] = validator
    with client.stream("GET", file.url, headers=headers) as answer:
        if answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            if answer.headers.get("Content-Range", "").rpartition("/")[2] == str(have):
                return  # it was whole already
            _discard(part)
            raise httpx.ReadError("the part already here is not of this file")
        if answer.status_code >= 500 or answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
            raise httpx.ReadError(f"the server answered {answer.status_code}")
        if answer.is_error:
            raise DownloadFailed(
                f"{file.url} answered {answer.status_code} {answer.reason_phrase}. Get "
                f"{file.name} by other means and copy it to {part.parent}."
            )
        resumed = answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if answer.status_code == httpx.codes.PARTIAL_CONTENT and not resumed:
            _discard(part)
            raise httpx.ReadError("the server sent another part than asked for")
        start = have if answer.status_code == httpx.codes.PARTIAL_CONTENT else 0
        total = start + int(answer.headers.get("Content-Length", -start))
        validator = answer.headers.get("ETag", "") or answer.headers.get("Last-Modified", "")
        _note(part).write_text(json.dumps({"url": file.url, "validator": validator}))
        with part.open("r+b" if start else "wb") as out:
            out.seek(start)
            out.truncate()
            for block in answer.iter_raw():
                out.write(block)
                advance(out.tell(), total, file.name)


def _validator(part: Path) -> str:
    """What the server called the file that `part` is of; weak tags cannot be asked for."""
    with contextlib.suppress(OSError, ValueError):
        validator = str(json.loads(_note(part).read_text())["validator"])
        return "" if validator.startswith("W/") else validator
    return ""


def _note(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _note(part).unlink(missing_ok=True)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def unpack(
    archive: Path,
    folder: Path,
    advance: Advance = quiet,
    wanted: Callable[[str], bool] = lambda name: True,
) -> int:
    """Unpack a zip below `folder`, leaving alone what is there already, byte for byte.

    Every file appears under its name whole or not at all, so an interrupted call is made good by
    the next. Checksums inside the archive are verified.

    Args:
        archive: the zip file.
        folder: made if need be.
        advance: called with files done, files in all, and the archive's name.
        wanted: told the name of a file in the archive; others are passed over.

    Returns:
        The number of files wanted.

    Raises:
        DownloadFailed: not a whole zip, a damaged file in it, or one that would land elsewhere;
            in the last case nothing was unpacked.
    """
    with _opened(archive) as zipped:
        members = [m for m in zipped.infolist() if not m.is_dir() and wanted(m.filename)]
        places = [_place(folder, archive, member) for member in members]
        for done, (member, place) in enumerate(zip(members, places, strict=True), 1):
            if not _same(place, member):
                _extract(zipped, member, place)
            advance(done, len(members), archive.name)
    return len(members)


@contextlib.contextmanager
def _opened(archive: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(archive) as zipped:
            yield zipped
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise DownloadFailed(
            f"{archive} is damaged or no zip file ({error}). Delete it and run this again."
        ) from error


def _place(folder: Path, archive: Path, member: zipfile.ZipInfo) -> Path:
    """Where a member goes, if that is below the folder and it is a plain file."""
    name = PurePosixPath(member.filename)
    mode = member.external_attr >> 16
    inside = not name.is_absolute() and ".." not in name.parts and bool(name.parts)
    plain = not (mode and stat.S_IFMT(mode)) or stat.S_ISREG(mode)
    bare = not any(mark in member.orig_filename for mark in ("\\", ":", "\0"))
    place = folder / name
    real = folder.resolve()
    if inside and plain and bare and place.parent.resolve().is_relative_to(real):
        return place
    raise DownloadFailed(
        f"{archive} holds {member.filename!r}, which would be unpacked outside {folder} or as a "
        "link. Nothing was unpacked: do not trust this archive."
    )


def _same(place: Path, member: zipfile.ZipInfo) -> bool:
    """Whether the file is there, by size and CRC-32."""
    if not place.is_file() or place.stat().st_size != member.file_size:
        return False
    crc = 0
    with place.open("rb") as file:
        while block := file.read(_BLOCK):
            crc = zlib.crc32(block, crc)
    return crc == member.CRC


def _extract(zipped: zipfile.ZipFile, member: zipfile.ZipInfo, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    unfinished = place.with_name(f"{place.name}.unfinished-{os.getpid()}")
    try:
        with zipped.open(member) as source, unfinished.open("wb") as target:
            shutil.copyfileobj(source, target, _BLOCK)  # raises BadZipFile on a wrong CRC
        os.replace(unfinished, place)
    finally:
        unfinished.unlink(missing_ok=True)


class Ledger:
    """`downloads.json` in a folder: what was fetched there, with its checksum.

    For files without a published checksum: the first download is believed, later ones must equal
    it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _LEDGER
        try:
            self._known: dict[str, dict[str, str | int]] = (
                json.loads(self._path.read_text()) if self._path.exists() else {}
            )
        except ValueError as error:
            raise DataMissing(f"{self._path} is damaged ({error}). Delete it.") from error

    def sha256(self, name: str) -> str | None:
        """The checksum of the file of that name fetched here before, if any."""
        known = self._known.get(name)
        return str(known["sha256"]) if known else None

    def record(self, file: RemoteFile, path: Path) -> None:
        """Note a fetched file; takes its checksum."""
        entry: dict[str, str | int] = {
            "url": file.url,
            "size": path.stat().st_size,
            "sha256": sha256_of(path),
        }
        self._known[file.name] = entry
        unfinished = self._path.with_name(f"{_LEDGER}.unfinished-{os.getpid()}")
        unfinished.write_text(json.dumps(self._known, indent=1, sort_keys=True) + "\n")
        os.replace(unfinished, self._path)
