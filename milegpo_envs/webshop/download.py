"""The official WebShop files, and everything that is derived from them.

    python -m scripts.download_data webshop                      # 1,000 products, 10 MB
    python -m scripts.download_data webshop --size full          # 1.18 million products, 5.7 GB
    python -m scripts.download_data webshop --source FOLDER      # files copied by hand

Fills the folder named by $WEBSHOP_DATA, else ~/.cache/webshop. Its authors offer the files on
Google Drive, which often refuses (the ids are in princeton-nlp/WebShop's setup.sh); `MIRRORS` are
two copies on Hugging Face, at fixed revisions. Sizes and checksums were written down by several
people who downloaded the files from either place; all agree.

Afterwards the folder is indexed, searched and counted, so that the first environment opens at once.
Interrupted, all of it goes on where it stopped. `--nouns` tags the titles of large shops, too.
"""

import argparse
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from milegpo_envs.download import DownloadFailed, RemoteFile, WrongFile, check, fetch, sha256_of
from milegpo_envs.reports import Advance, Report
from milegpo_envs.webshop import opening
from milegpo_envs.webshop.columns import Columns
from milegpo_envs.webshop.nouns import tag_titles
from milegpo_envs.webshop.official import FILES, OfficialCatalogue, Size

HELP = "the official WebShop products: 10 MB, or 5.7 GB with --size full"

_HUB = "https://huggingface.co/datasets"
MIRRORS = (
    f"{_HUB}/YWZBrandon/webshop-data/resolve/ce990fff5aee388db2706f07820c578ab68e0453",
    f"{_HUB}/HongbangYuan/webshop/resolve/0129d4a81dbdb827e76afd20a1e2c38b61098613",
)

PUBLISHED: Mapping[str, tuple[int, str]] = {
    "items_shuffle_1000.json": (
        4_467_013,
        "30a4765c3a327af72d9a9a95a6b2486d516f0fa1d3ecd83681901ce82a21b269",
    ),
    "items_ins_v2_1000.json": (
        147_099,
        "f88a36314a397b53b3d9c3fa5878e5f7b26d35019a51ec83fbedeca61a948f6f",
    ),
    "items_shuffle.json": (
        5_479_720_229,
        "2ef591d65df3af89e972ab72468eb82cbf124d876552d9f3678667edd620a6c8",
    ),
    "items_ins_v2.json": (
        186_295_270,
        "1d36af476bdb8f82a5da62bd8acdabe54cd8de2fa84010d37da5c4890feb447e",
    ),
    "items_human_ins.json": (
        5_137_548,
        "cf78667548a71786e1d9049c24b802e48e1084ad4bb021cae56ce1f6d96954a3",
    ),
}
"""File -> bytes and SHA-256."""

_NOUNS_ANYWAY = 5000  # products whose titles are tagged without being asked


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which files, where from, where to."""
    parser.add_argument("--to", type=Path, default=default_folder(), help="default: %(default)s")
    parser.add_argument("--size", choices=tuple(FILES), default="small")
    parser.add_argument(
        "--source", help="a mirror's URL, or a folder, that has the files under their names"
    )
    parser.add_argument(
        "--other-checksums", action="store_true", help="take files of other size and checksum"
    )
    parser.add_argument(
        "--nouns",
        action="store_true",
        help="tag all titles now (spaCy; about half an hour for the full shop)",
    )


def default_folder() -> Path:
    """Where files are put unless told otherwise; it is not made here."""
    return Path(os.environ.get("WEBSHOP_DATA") or "~/.cache/webshop").expanduser()


def run(options: argparse.Namespace, advance: Advance) -> Report:
    """Download what is missing, index it, and count.

    Raises:
        DownloadFailed: a file cannot be had or is another.
        DataMissing: a file is damaged.
    """
    folder: Path = options.to.expanduser()
    for name in FILES[options.size].names:
        obtain(name, folder, options.source, options.other_checksums, advance)
    return prepare(folder, options.size, options.nouns, advance)


def obtain(
    name: str, folder: Path, source: str | None, other_checksums: bool, advance: Advance
) -> Path:
    """A file in the folder, checked; from a folder, a mirror, or the first mirror that has it."""
    size, sha256 = PUBLISHED[name]
    known = RemoteFile(f"{MIRRORS[0]}/{name}", sha256, size)
    if other_checksums:
        known = replace(known, sha256=None, size=None)
    try:
        if source is not None and "://" not in source:
            return _copied(Path(source).expanduser() / name, folder / name, known)
        bases = MIRRORS if source is None else (source.rstrip("/"),)
        return _fetched([replace(known, url=f"{base}/{name}") for base in bases], folder, advance)
    except WrongFile as error:
        raise WrongFile(f"{error} Or take it as it is: --other-checksums") from error


def _fetched(copies: Sequence[RemoteFile], folder: Path, advance: Advance) -> Path:
    failures = []
    for copy in copies:
        try:
            return fetch(copy, folder, advance)
        except DownloadFailed as failure:
            if (folder / copy.name).is_file():  # it is there and another: no mirror mends that
                raise
            failures.append(str(failure))
    raise DownloadFailed(" ".join(failures))


def _copied(source: Path, target: Path, known: RemoteFile) -> Path:
    if not source.is_file():
        raise DownloadFailed(f"No {source}. Download it from {known.url} and put it there.")
    check(source, known)
    if source.resolve() == target.resolve():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.unfinished-{os.getpid()}")
    try:
        shutil.copyfile(source, unfinished)
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)
    return target


def prepare(folder: Path, size: Size, nouns: bool, advance: Advance) -> Report:
    """Build what environments need, and say what the shop has."""
    catalogue = OfficialCatalogue(folder, size, advance=advance)
    columns, index = opening.prepare(catalogue, advance)
    notes = [_left_out(catalogue), _flagged(columns)]
    if nouns or len(catalogue) <= _NOUNS_ANYWAY:
        tag_titles(catalogue, advance)
    else:
        notes.append("Titles are tagged when purchases need them; --nouns does it now.")
    notes.append(f"Use it: gym.make('milegpo/WebShop-v0', data={str(folder)!r}, size={size!r})")
    return Report(
        title=f"WebShop in {folder}",
        columns=("what", "number", "bytes", "is"),
        rows=(
            *(
                (name, "", (folder / name).stat().st_size, _is(folder / name))
                for name in FILES[size].names
            ),
            ("products", len(catalogue), "", catalogue.content_hash),
            ("index terms", len(index.term_ends), "", ""),
            *_goals(columns),
        ),
        notes=tuple(notes),
    )


def _is(path: Path) -> str:
    return "as published" if PUBLISHED[path.name][1] == sha256_of(path) else "another version"


def _left_out(catalogue: OfficialCatalogue) -> str:
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in catalogue.dropped.items())
    return f"Left out: {reasons}."


def _flagged(columns: Columns) -> str:
    prices, options = int(columns.odd_price.sum()), int(columns.odd_options.sum())
    return f"Products read with a flag: {prices:,} for their price, {options:,} for their options."


def _goals(columns: Columns) -> tuple[tuple[str, int, str, str], ...]:
    return (
        ("goals, synthetic", int(columns.combinations.sum()), "", "one a choice of options"),
        ("goals, human", int(columns.human.sum()), "", "one an instruction"),
    )
