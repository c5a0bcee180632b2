"""Cost of opening, searching and holding a generated shop of a given size."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from milegpo_envs.draws import Draws
from milegpo_envs.reports import Advance, Stopwatch, resident
from milegpo_envs.webshop.catalogue import Catalogue
from milegpo_envs.webshop.generated import GeneratedCatalogue
from milegpo_envs.webshop.opening import prepare
from milegpo_envs.webshop.search import SearchIndex

QUERIES = 200


@dataclass(frozen=True)
class QueryCosts:
    """Of a shop. open: seconds to open what was built before. memory: MB that this process gained.

    generate: CPU seconds. index: CPU seconds. query: mean CPU milliseconds of an instruction's
    words, which are many; short_query: of two or three words.
    """

    products: int
    generate: float
    index: float
    open: float
    query: float
    short_query: float
    memory: float


def query_costs(products: int, cache: Path, advance: Advance | None = None) -> QueryCosts:
    """Build a generated shop under a folder, open it again, and search it.

    Args:
        products: how many.
        cache: folder for what is built; what is there from an earlier call is used.
        advance: called while something is built.
    """
    generate, index, opening = Stopwatch(), Stopwatch(), Stopwatch()
    with generate:
        for i in range(min(products, 2000)):
            GeneratedCatalogue(products, None)[i]
    with index:
        prepare(GeneratedCatalogue(products, cache), advance)
    before = resident()
    with opening:
        catalogue = GeneratedCatalogue(products, cache)
        _, search = prepare(catalogue)
    long, short = queries(catalogue)
    long_ms, short_ms = milliseconds(search, long), milliseconds(search, short)
    return QueryCosts(
        products=products,
        generate=generate.seconds * products / min(products, 2000),
        index=index.seconds,
        open=opening.seconds,
        query=long_ms,
        short_query=short_ms,
        memory=resident() - before,
    )


def queries(catalogue: Catalogue) -> tuple[list[str], list[str]]:
    """Instructions of a sample of products, and their queries alone."""
    draws = Draws("webshop/bench/queries")
    chosen = [catalogue[draws.integer(0, len(catalogue) - 1)] for _ in range(QUERIES)]
    return [str(product.instruction) for product in chosen], [p.query for p in chosen]


def milliseconds(search: SearchIndex, texts: Sequence[str]) -> float:
    """Mean CPU time of a query."""
    search.top(texts[0])
    watch = Stopwatch()
    with watch:
        for text in texts:
            search.top(text)
    return 1000 * watch.seconds / len(texts)
