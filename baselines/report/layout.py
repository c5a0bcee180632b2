"""Where the nodes of a rollout graph stand: columns by distance to success.

States from which some rollout reached success stand in columns, the farthest on the left and
success on the right. States without a path to success have no distance; they stand below, in
columns by the number of steps from the start. The order within columns is igraph's (Sugiyama's
method, which keeps crossings few), so a browser has nothing to compute.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

COLUMN, ROW, BETWEEN = 130.0, 76.0, 1.8


@dataclass(frozen=True)
class Heading:
    """What is written over a column."""

    text: str
    x: float
    y: float


@dataclass(frozen=True)
class Layout:
    """Coordinates of each node, in pixels at full size, and the columns' headings."""

    places: Sequence[tuple[float, float]]
    headings: Sequence[Heading]


def lay_out(
    distance: Sequence[float], edges: Sequence[tuple[int, int]], starts: Sequence[int]
) -> Layout:
    """Place nodes.

    Args:
        distance: of each node to success, inf without a path.
        edges: pairs of nodes, self-loops allowed.
        starts: nodes where trajectories begin.

    Raises:
        ModuleNotFoundError: igraph is missing; names the extra that installs it.
    """
    with_path = [v for v, d in enumerate(distance) if isfinite(d)]
    without = [v for v, d in enumerate(distance) if not isfinite(d)]
    places: dict[int, tuple[float, float]] = {}
    headings: list[Heading] = []
    bottom = 0.0
    if with_path:
        far = int(max(distance[v] for v in with_path))
        columns = {v: far - int(distance[v]) for v in with_path}
        names = ["success" if far == c else f"distance {far - c}" for c in range(far + 1)]
        bottom = _band(columns, names, edges, 0.0, places, headings)
    if without:
        depth = _depths(len(distance), edges, starts)
        columns = {v: depth[v] for v in without}
        first = min(columns.values())
        columns = {v: c - first for v, c in columns.items()}
        names = [f"no path, step {first + c}" for c in range(max(columns.values()) + 1)]
        top = bottom + BETWEEN * ROW if with_path else 0.0
        _band(columns, names, edges, top, places, headings)
    return Layout([places[v] for v in range(len(distance))], headings)


def _band(
    column: Mapping[int, int],
    names: Sequence[str],
    edges: Sequence[tuple[int, int]],
    top: float,
    places: dict[int, tuple[float, float]],
    headings: list[Heading],
) -> float:
    """Place the nodes of one band under its headings; return the y of its lowest node."""
    orders = _ordered(column, edges)
    tallest = max(len(order) for order in orders.values())
    for c, name in enumerate(names):
        order = orders.get(c, [])
        if order:
            headings.append(Heading(name, c * COLUMN, top))
        shift = (tallest - len(order)) / 2
        for rank, v in enumerate(order):
            nudge = 0.25 * ROW * (c % 2)  # so that straight edges do not hide one another
            places[v] = (c * COLUMN, top + ROW * (1 + rank + shift) + nudge)
    return top + ROW * (tallest + 0.5)


def _ordered(column: Mapping[int, int], edges: Sequence[tuple[int, int]]) -> dict[int, list[int]]:
    """The nodes of each column from top to bottom."""
    try:
        import igraph
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            'A report needs igraph: pip install "milegpo[report]"'
        ) from missing
    nodes = sorted(column)
    index = {v: at for at, v in enumerate(nodes)}
    inner = [
        (index[a], index[b])
        for a, b in edges
        if a in index and b in index and column[a] != column[b]
    ]
    graph = igraph.Graph(n=len(nodes), edges=inner, directed=True)
    found = graph.layout_sugiyama(layers=[column[v] for v in nodes], maxiter=50).coords
    orders: dict[int, list[int]] = {}
    for v in sorted(nodes, key=lambda v: (column[v], found[index[v]][0], v)):
        orders.setdefault(column[v], []).append(v)
    return orders


def _depths(size: int, edges: Sequence[tuple[int, int]], starts: Sequence[int]) -> list[int]:
    """Steps from the nearest start."""
    after: list[list[int]] = [[] for _ in range(size)]
    for a, b in edges:
        after[a].append(b)
    depth = dict.fromkeys(starts, 0)
    queue = deque(depth)
    while queue:
        v = queue.popleft()
        for w in after[v]:
            if w not in depth:
                depth[w] = depth[v] + 1
                queue.append(w)
    return [depth.get(v, 0) for v in range(size)]
