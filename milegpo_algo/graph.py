"""The observed transitions of all tasks as one block-diagonal graph.

Nodes are (task, state) pairs, then one goal per task; an edge is a distinct pair (state, next
state) of a task, self-loops included. Searches run over all tasks at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, dijkstra

from milegpo_algo.data import GOAL, FloatArray, IntArray, Rollouts, compact


@dataclass(frozen=True)
class Evidence:
    """How many trajectories used each node or edge, each trajectory counted once.

    Attributes:
        total: |T(x)|.  [X]
        success: |T+(x)|, the successful ones among them.  [X]
        visits: All uses, repeated ones included.  [X]
    """

    total: IntArray
    success: IntArray
    visits: IntArray

    @cached_property
    def share(self) -> FloatArray:
        """p+(x) = |T+(x)| / |T(x)|, 0 where nobody came.  [X]."""
        return self.success / np.maximum(self.total, 1)


@dataclass(frozen=True, eq=False)
class StateGraph:
    """V nodes and E edges over the T tasks of some rollouts.

    Node i < S is the state i of the rollouts, node S + q the goal of task q; V = S + T.

    Attributes:
        node_task: Task of each node.  [V]
        source: Node each row left.  [N]
        target: Node each row reached.  [N]
        edge: Edge of each row.  [N]
        edge_source: [E]
        edge_target: Ascending.  [E]
        goal_reached: Whether any trajectory of the task succeeded.  [T]
    """

    node_task: IntArray
    source: IntArray
    target: IntArray
    edge: IntArray
    edge_source: IntArray
    edge_target: IntArray
    goal_reached: np.ndarray[tuple[int], np.dtype[np.bool_]]

    @classmethod
    def build(cls, rollouts: Rollouts) -> StateGraph:
        """Collect the nodes and edges of all tasks."""
        tasks, states = len(rollouts.tasks), len(rollouts.states)
        goal = rollouts.next_state == GOAL
        target = np.where(goal, states + rollouts.task, rollouts.next_state)
        nodes = states + tasks
        pairs = target * nodes + rollouts.state
        edge, edges = compact(pairs)
        distinct = np.empty(edges, dtype=np.int64)
        distinct[edge] = pairs
        edge_target, edge_source = np.divmod(distinct, nodes)
        return cls(
            node_task=np.concatenate((rollouts.state_task, np.arange(tasks))),
            source=rollouts.state,
            target=target,
            edge=edge,
            edge_source=edge_source,
            edge_target=edge_target,
            goal_reached=np.bincount(rollouts.task[goal], minlength=tasks) > 0,
        )

    @property
    def goals(self) -> IntArray:
        """The goal node of each task.  [T]."""
        tasks = len(self.goal_reached)
        return np.arange(tasks) + (len(self.node_task) - tasks)

    @cached_property
    def goal_distance(self) -> FloatArray:
        """d(v, g): edges on the shortest path to the task's goal, inf without one.  [V]."""
        return self._hops(self.goals[self.goal_reached])

    def goal_cost(self, edge_cost: FloatArray) -> FloatArray:
        """Least cost of a path to the goal, inf without one, at `edge_cost` [E].  [V]."""
        goals = self.goals[self.goal_reached]
        return self._costs(goals, np.zeros(len(goals)), edge_cost)

    def potential(self, weight: FloatArray, omega: float) -> FloatArray:
        """Phi(s) = max over v of weight(v) * omega^d(s, v), 0 where no weighted v is reachable.

        One search for all v and all tasks: in logarithms to base omega the maximum is a shortest
        path that begins at v with log(weight(v)) already travelled.

        Args:
            weight: In [0, 1], 0 for nodes that are no target.  [V]
            omega: Decay per edge, between 0 and 1.

        Returns:
            Phi.  [V]
        """
        targets = np.flatnonzero(weight > 0.0)
        offset = np.log(weight[targets]) / np.log(omega)
        if not offset.any():
            return omega ** self._hops(targets)
        costs = self._costs(targets, np.maximum(offset, 0.0), np.ones(len(self.edge_source)))
        return omega**costs

    def node_evidence(self, rollouts: Rollouts) -> Evidence:
        """Who visited a node: the states before all steps and after the last.  [V]."""
        last = rollouts.last
        nodes = np.concatenate((self.source, self.target[last]))
        who = np.concatenate((rollouts.trajectory, rollouts.trajectory[last]))
        return _evidence(nodes, who, rollouts, len(self.node_task))

    def edge_evidence(self, rollouts: Rollouts) -> Evidence:
        """Uses of edges.  [E]."""
        return _evidence(self.edge, rollouts.trajectory, rollouts, len(self.edge_source))

    def _hops(self, ends: IntArray) -> FloatArray:
        """Number of edges from each node to the nearest of `ends`.  [V]."""
        size = len(self.node_task)
        graph = self._backward(ends, np.zeros(len(ends)), np.ones(len(self.edge_source)))
        found, previous = breadth_first_order(graph, size)
        distance = np.full(size + 1, np.inf)
        parent = np.full(size + 1, size)
        parent[found[1:]] = previous[found[1:]]
        depth = np.zeros(size + 1)
        depth[found[1:]] = 1.0
        while (parent[found] != size).any():  # pointer doubling: a path halves at each turn
            depth[found] += depth[parent[found]]
            parent[found] = parent[parent[found]]
        distance[found] = depth[found] - 1.0
        return distance[:size]

    def _costs(self, ends: IntArray, begin: FloatArray, edge_cost: FloatArray) -> FloatArray:
        """Least of begin[i] + cost of a path to ends[i], over i.  [V]."""
        size = len(self.node_task)
        graph = self._backward(ends, begin, edge_cost)
        cost: FloatArray = dijkstra(graph, indices=size)
        return cost[:size]

    def _backward(self, ends: IntArray, begin: FloatArray, edge_cost: FloatArray) -> csr_array:
        """Reversed edges, and one more node V with an edge to each of `ends`.  (V + 1, V + 1)."""
        size = len(self.node_task)
        pointers = np.zeros(size + 2, dtype=np.int32)
        np.cumsum(np.bincount(self.edge_target, minlength=size), out=pointers[1:-1])
        pointers[-1] = pointers[-2] + len(ends)
        indices = np.concatenate((self.edge_source, ends)).astype(np.int32)
        costs = np.concatenate((edge_cost, begin))
        return csr_array((costs, indices, pointers), shape=(size + 1, size + 1))


def merge_similar(rollouts: Rollouts, vectors: FloatArray, above: float) -> Rollouts:
    """Make one state of all states of a task that a chain of cosines over `above` connects.

    Args:
        rollouts: The steps to rename states in.
        vectors: One embedding per entry of `rollouts.states`.  (S, D)
        above: Two states are neighbours when the cosine of their vectors exceeds this.
    """
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(length > 0.0, length, 1.0)
    state, after = rollouts.state.copy(), rollouts.next_state.copy()
    by_task = np.argsort(rollouts.task, kind="stable")
    bounds = np.cumsum(np.bincount(rollouts.task))[:-1]
    for rows in np.split(by_task, bounds):
        inner = rows[after[rows] != GOAL]
        members = np.unique(np.concatenate((state[rows], after[inner])))
        close = csr_array(unit[members] @ unit[members].T > above)
        _, cluster = connected_components(close, directed=False)
        leader = members[np.unique(cluster, return_index=True)[1]][cluster]
        state[rows] = leader[np.searchsorted(members, state[rows])]
        after[inner] = leader[np.searchsorted(members, after[inner])]
    return replace(rollouts, state=state, next_state=after)


def _evidence(items: IntArray, who: IntArray, rollouts: Rollouts, count: int) -> Evidence:
    trajectories = len(rollouts.trajectory_ids)
    pairs = np.sort(items * trajectories + who)
    first = np.concatenate(([True], pairs[1:] != pairs[:-1]))
    item, trajectory = np.divmod(pairs[first], trajectories)
    succeeded = rollouts.trajectory_success[trajectory]
    return Evidence(
        total=np.bincount(item, minlength=count),
        success=np.bincount(item[succeeded], minlength=count),
        visits=np.bincount(items, minlength=count),
    )
