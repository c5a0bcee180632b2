r"""The shop's search: Lucene's BM25 (k1 = 0.9, b = 0.4), equal to it list for list.

The score of a document d of length |d| for a query with terms t, repeated c_t times, is

    sum_t w_t - w_t / (1 + tf(t, d) / (k1 (1 - b + b |d| / mean length)))
    w_t = c_t log(1 + (n - n_t + 1/2) / (n_t + 1/2))

with n documents that have words, n_t of them with t. What makes it Lucene's: lengths are rounded to
the 256 values that fit a byte (`SmallFloat.intToByte4`), all of it is computed in single precision
in this order, a document's terms are added up in double precision and rounded again, and equal
scores are ordered by asin. Anserini's defaults, as the official shop uses them.

The index is a store of arrays, memory-mapped; a process adds a few dictionary entries to it.
"""

import functools
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from milegpo_envs.reports import Advance
from milegpo_envs.webshop.catalogue import Catalogue, Product
from milegpo_envs.webshop.storage import Arrays, Draft, stored
from milegpo_envs.webshop.words import Analyzer

K1 = np.float32(0.9)
B = np.float32(0.4)

VERSION = "bm25-1"
"""Part of the name under which an index is stored: to be changed with the code that builds it."""

_REMEMBERED = 1 << 16  # terms whose place is kept
_BLOCK = 1 << 15  # documents placed at once
_FEW = 1 << 16  # postings of a query: with more, they are not copied

_List: TypeAlias = tuple[NDArray[np.int32], NDArray[np.float32]]
"""Documents of a term, and what it adds to the score of each."""


def document(product: Product) -> str:
    """What of a product is searched: title, description, first bullet and options."""
    options = ", and ".join(f"{group}: {', '.join(vs)}" for group, vs in product.options.items())
    first = product.bullets[0] if product.bullets else ""
    return " ".join((product.name, product.description, first, options)).lower()


@dataclass(frozen=True)
class SearchIndex:
    """Inverted lists of a catalogue.

    terms: the vocabulary, sorted, one after the other in UTF-8; term i is at
        [term_ends[i - 1], term_ends[i]).
    ends: of the lists in `documents` and `weights`, likewise.
    documents: catalogue indices, ascending within a term.
    weights: tf / (k1 (1 - b + b length / mean length)), aligned with `documents`.
    rank: place of every product when sorted by asin.
    """

    size: int
    terms: bytes | memoryview
    term_ends: NDArray[np.int64]  # [terms]
    ends: NDArray[np.int64]  # [terms]
    idf: NDArray[np.float32]  # [terms]
    documents: NDArray[np.int32]  # [postings]
    weights: NDArray[np.float32]  # [postings]
    rank: NDArray[np.int32]  # [products]
    _places: dict[str, int | None] = field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def build(
        catalogue: Catalogue, cache: Path | None = None, advance: Advance | None = None
    ) -> "SearchIndex":
        """Open the index of a catalogue, building it if need be.

        Args:
            catalogue: what to search.
            cache: folder in which to keep it, by default the catalogue's own, and memory if it has
                none.
            advance: called while it is built.
        """
        root = cache or catalogue.cache
        folder = None if root is None else root / f"search-{VERSION}-{catalogue.content_hash}"
        arrays = stored(folder, lambda draft: write_index(catalogue, draft, advance))
        return SearchIndex._of(arrays)

    @staticmethod
    def _of(arrays: Arrays) -> "SearchIndex":
        columns = {name: values for name, values in arrays.items() if name != "terms"}
        return SearchIndex(
            size=len(arrays["rank"]),
            terms=memoryview(arrays["terms"]),  # type: ignore[arg-type]  # buffers, all of them
            **columns,  # type: ignore[arg-type]
        )

    def top(self, query: str, k: int = 50) -> list[int]:
        """Indices of the best k products for a query, best first; only those with a word of it."""
        found, scores = self.scores(query)
        if len(found) > k:
            worst = np.partition(scores, len(scores) - k)[len(scores) - k]
            kept = scores >= worst
            found, scores = found[kept], scores[kept]
        order = np.lexsort((self.rank[found], -scores))[:k]
        chosen: list[int] = found[order].tolist()
        return chosen

    def scores(self, query: str) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Products that have a word of the query, ascending, and their scores. [F], [F]."""
        lists = list(self._lists(query))
        if not lists:
            return np.zeros(0, np.intp), np.zeros(0, np.float32)
        total = _added_up(lists, self.size)
        found = np.flatnonzero(total)
        return found, total[found].astype(np.float32)

    def _lists(self, query: str) -> Iterator[_List]:
        """Documents and what a term adds to their scores, for each term of a query."""
        for term, count in Counter(_analyzer()(query)).items():
            place = self.place(term)
            if place is None:
                continue
            low = int(self.ends[place - 1]) if place else 0
            high = int(self.ends[place])
            weight = np.float32(count) * self.idf[place]
            gain = weight - weight / (np.float32(1) + self.weights[low:high])
            yield self.documents[low:high], gain

    def place(self, term: str) -> int | None:
        """Where a term is in the vocabulary, None if no product has it; remembered."""
        if term in self._places:
            return self._places[term]
        if len(self._places) >= _REMEMBERED:
            self._places.clear()
        place = self._places[term] = self._look_up(term)
        return place

    def _look_up(self, term: str) -> int | None:
        wanted = term.encode("utf-8", "surrogatepass")
        low, high = 0, len(self.term_ends)
        while low < high:
            middle = (low + high) // 2
            if self._term(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self.term_ends) and self._term(low) == wanted else None

    def _term(self, place: int) -> bytes:
        start = int(self.term_ends[place - 1]) if place else 0
        return bytes(self.terms[start : int(self.term_ends[place])])


def _added_up(lists: Sequence[_List], size: int) -> NDArray[np.float64]:
    """Scores of all documents, in double precision, the terms in their order. [documents]."""
    if sum(len(documents) for documents, _ in lists) <= _FEW:
        documents = np.concatenate([documents for documents, _ in lists])
        gains = np.concatenate([gain for _, gain in lists])
        return np.asarray(np.bincount(documents, gains, size), np.float64)
    total = np.zeros(size, np.float64)
    for documents, gain in lists:  # the same sums, without a copy of the lists
        total[documents] += gain
    return total


@functools.cache
def _analyzer() -> Analyzer:
    """One for the process: queries repeat words."""
    return Analyzer()


@functools.lru_cache(maxsize=8)
def open_index(catalogue: Catalogue) -> SearchIndex:
    """The index of a catalogue, shared by all who ask in this process."""
    return SearchIndex.build(catalogue)


def write_index(catalogue: Catalogue, draft: Draft, advance: Advance | None = None) -> None:
    """Build the index of a catalogue into a draft of a store."""
    asins: list[str] = []
    spool = _count(_texts(catalogue, asins, advance))
    names = sorted(spool.vocabulary, key=lambda term: term.encode("utf-8", "surrogatepass"))
    encoded = [term.encode("utf-8", "surrogatepass") for term in names]
    draft.put("terms", np.frombuffer(b"".join(encoded), np.uint8))
    draft.put("term_ends", np.cumsum([len(term) for term in encoded], dtype=np.int64))

    new_place = np.empty(len(names), np.int32)
    new_place[[spool.vocabulary[term] for term in names]] = np.arange(len(names), dtype=np.int32)
    terms = new_place[np.frombuffer(spool.terms, np.int32)]  # [postings], by document
    frequency = np.bincount(terms, minlength=len(names))  # [terms]
    with_words = int(np.count_nonzero(np.frombuffer(spool.lengths, np.int32)))
    ends = np.cumsum(frequency)
    draft.put("ends", ends.astype(np.int64))
    draft.put("idf", np.log(1 + (with_words - frequency + 0.5) / (frequency + 0.5)).astype("f4"))
    _place_postings(spool, terms, ends - frequency, draft)

    rank = np.empty(len(asins), np.int32)
    rank[np.argsort(np.array(asins), kind="stable")] = np.arange(len(asins), dtype=np.int32)
    draft.put("rank", rank)


def _texts(catalogue: Catalogue, asins: list[str], advance: Advance | None) -> Iterator[str]:
    """What is searched of every product; notes the asins on the way."""
    for i in range(len(catalogue)):
        product = catalogue[i]
        asins.append(product.asin)
        yield document(product)
        if advance is not None and (i % 1000 == 999 or i + 1 == len(catalogue)):
            advance(i + 1, len(catalogue), "search index")


@dataclass(frozen=True)
class _Spool:
    """Terms of all documents, one document after the other."""

    vocabulary: dict[str, int]  # term -> number, in order of appearance
    terms: "array[int]"  # [postings]
    counts: "array[int]"  # [postings]
    sizes: "array[int]"  # [documents], different terms
    lengths: "array[int]"  # [documents], terms


def _count(texts: Iterable[str]) -> _Spool:
    spool = _Spool({}, array("i"), array("i"), array("i"), array("i"))
    number = spool.vocabulary
    analyze = Analyzer()
    for text in texts:
        found = Counter(analyze(text))
        spool.terms.extend(number.setdefault(term, len(number)) for term in found)
        spool.counts.extend(found.values())
        spool.sizes.append(len(found))
        spool.lengths.append(found.total())
    return spool


def _place_postings(
    spool: _Spool, terms: NDArray[np.int32], starts: NDArray[np.int64], draft: Draft
) -> None:
    """Order the postings by term, a block of documents at a time."""
    sizes = np.frombuffer(spool.sizes, np.int32)
    counts = np.frombuffer(spool.counts, np.int32)
    norms = inverse_norms(np.frombuffer(spool.lengths, np.int32))
    documents = draft.array("documents", "<i4", len(terms))
    weights = draft.array("weights", "<f4", len(terms))
    free = starts.copy()  # where the next posting of a term goes
    bounds = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    for first in range(0, len(sizes), _BLOCK):
        last = min(first + _BLOCK, len(sizes))
        low, high = bounds[first], bounds[last]
        owner = np.repeat(np.arange(first, last, dtype=np.int32), sizes[first:last])
        order = np.argsort(terms[low:high], kind="stable")
        sorted_terms = terms[low:high][order]
        new = np.flatnonzero(np.diff(sorted_terms, prepend=-1))  # first of every term
        within = np.arange(len(order)) - np.repeat(new, np.diff(np.append(new, len(order))))
        target = free[sorted_terms] + within
        documents[target] = owner[order]
        weights[target] = counts[low:high][order].astype(np.float32) * norms[owner[order]]
        np.add.at(free, sorted_terms, 1)


def inverse_norms(lengths: NDArray[np.int32]) -> NDArray[np.float32]:
    """1 / (k1 (1 - b + b length / mean)), lengths as a byte keeps them. [documents]."""
    with_words = int(np.count_nonzero(lengths))
    mean = np.float32(int(lengths.sum(dtype=np.int64)) / max(with_words, 1))
    table = {int(length): kept_length(int(length)) for length in np.unique(lengths)}
    kept = np.array([table[int(length)] for length in lengths], np.float32)
    one = np.float32(1)
    norms: NDArray[np.float32] = one / (K1 * ((one - B) + B * kept / mean))
    return norms


def kept_length(length: int) -> int:
    """The length that is left after Lucene has put it into one byte.

    Lengths below 24 are exact; above, 24 is taken off and the leading one and the three bits after
    it are kept (`SmallFloat.intToByte4` and back).
    """
    exact = 24  # 255 minus the code of the largest int
    if length < exact:
        return length
    rest = length - exact
    shift = max(rest.bit_length() - 4, 0)
    return exact + ((rest >> shift) << shift)
