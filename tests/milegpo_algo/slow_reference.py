"""Every estimator a second time: slow, obvious, in plain Python over dicts, one task at a time.

`number` is `exact` (rational arithmetic, so that ties, thresholds and zeros are decided without
rounding) or `float`. Only the settings that the tests vary are parameters.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import networkx as nx

Record = dict[str, Any]
GOAL = "the goal"


def exact(value: float) -> Fraction:
    return Fraction(str(value))


# ------------------------------------------------------------------ shared vocabulary


class Group:
    """The rows of one task, its trajectories in order of time."""

    def __init__(self, records: list[Record], rows: list[int], number: Callable):
        self.number = number
        self.penalty = number(0.1)
        self.paths: dict[str, list[int]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: records[row]["step"]):
            self.paths[records[row]["trajectory_id"]].append(row)
        self.rows = rows
        self.owner = {row: name for name, path in self.paths.items() for row in path}
        self.success = {name: records[path[0]]["success"] for name, path in self.paths.items()}
        self.valid = {row: records[row]["valid"] for row in rows}
        self.reward = {row: number(records[row]["reward"]) for row in rows}
        self.state = {row: records[row]["state"] for row in rows}
        self.action = {row: records[row]["action"] for row in rows}
        self.after = {row: records[row]["next_state"] for row in rows}
        for name, path in self.paths.items():
            if self.success[name]:
                self.after[path[-1]] = GOAL

    def env_return(self, name: str):
        return sum(self.reward[row] for row in self.paths[name])

    def pen(self, row: int):
        return self.number(0) if self.valid[row] else self.penalty

    def returns(self, gamma: float) -> dict:
        found = {}
        for path in self.paths.values():
            following = self.number(0)
            for row in reversed(path):
                following = self.reward[row] + self.number(gamma) * following
                found[row] = following
        return {row: value - self.pen(row) for row, value in found.items()}

    def by_state(self) -> dict[str, list[int]]:
        groups = defaultdict(list)
        for row in self.rows:
            groups[self.state[row]].append(row)
        return groups

    def by_history(self, k: int) -> dict[tuple, list[int]]:
        groups = defaultdict(list)
        for path in self.paths.values():
            for at in range(k - 1, len(path)):
                groups[tuple(self.state[row] for row in path[at - k + 1 : at + 1])].append(path[at])
        return groups


def mean(values: list):
    return sum(values) / len(values)


def spread(values: list, ddof: int) -> float:
    centre = mean(values)
    return math.sqrt(sum((value - centre) ** 2 for value in values) / (len(values) - ddof))


def norm(values: list, kind: str, ddof: int = 1) -> list:
    if len(values) == 1 or len(set(values)) == 1:
        return [0.0] * len(values)
    centred = [value - mean(values) for value in values]
    if kind == "mean":
        return centred
    return [float(value) / (spread(values, ddof) + 1e-6) for value in centred]


def norm_groups(values: dict, groups: dict, kind: str, ddof: int = 1) -> dict:
    found = {}
    for rows in groups.values():
        found |= dict(zip(rows, norm([values[row] for row in rows], kind, ddof), strict=True))
    return found


def over_groups(records: list[Record], number: Callable, credit: Callable[[Group], dict]) -> list:
    tasks = defaultdict(list)
    for row, record in enumerate(records):
        tasks[record["task_id"]].append(row)
    found: dict[int, float] = {}
    for rows in tasks.values():
        found |= credit(Group(records, rows, number))
    return [float(found[row]) for row in range(len(records))]


# ------------------------------------------------------------------ episode level


def scores(group: Group, convention: str) -> tuple[dict, list]:
    """Each row's Z, and the values that count for the statistics."""
    z = {}
    for name, path in group.paths.items():
        if convention == "paper":
            malformed = sum(not group.valid[row] for row in path)
            value = group.env_return(name) - group.penalty * malformed
            z |= dict.fromkeys(path, value)
        else:
            z |= {row: group.env_return(name) - group.pen(row) for row in path}
    counted = [path[0] for path in group.paths.values()] if convention == "paper" else group.rows
    return z, [z[row] for row in counted]


def episode(group: Group, convention: str, kind: str) -> dict:
    z, counted = scores(group, convention)
    if len(counted) == 1:
        raw = {row: float(v) / (1 + 1e-6 if kind == "mean_std" else 1) for row, v in z.items()}
        return raw if convention == "verl-agent" else dict.fromkeys(z, 0.0)
    if len(set(counted)) == 1:
        return dict.fromkeys(z, 0.0)
    scale = spread(counted, 1) + 1e-6 if kind == "mean_std" else 1.0
    return {row: float(value - mean(counted)) / scale for row, value in z.items()}


def grpo(records, convention="paper", norm="mean_std", number=exact):
    return over_groups(records, number, lambda group: episode(group, convention, norm))


def rloo(records, convention="paper", number=exact):
    def credit(group):
        z, counted = scores(group, convention)
        if len(counted) == 1:
            return z if convention == "verl-agent" else dict.fromkeys(z, 0)
        n = len(counted)
        return {row: (value - mean(counted)) * n / (n - 1) for row, value in z.items()}

    return over_groups(records, number, credit)


def ppo(records, values, gamma=1.0, gae_lambda=1.0, across=False):
    """Unwhitened and whitened advantages, a list per row."""

    def chain(rows, rewards):
        cells = [(row, at) for row in rows for at in range(len(values[row]))]
        found, following, value_after = {}, 0.0, 0.0
        for row, at in reversed(cells):
            reward = rewards[row] if at == len(values[row]) - 1 else 0.0
            delta = reward + gamma * value_after - values[row][at]
            following = delta + gamma * gae_lambda * following
            value_after = values[row][at]
            found[row, at] = following
        return found

    def credit(group):
        found = {}
        for name, path in group.paths.items():
            if across:
                found |= chain(path, {row: group.reward[row] - group.pen(row) for row in path})
            else:
                for row in path:
                    found |= chain([row], {row: group.env_return(name) - group.pen(row)})
        return found

    tasks = defaultdict(list)
    for row, record in enumerate(records):
        tasks[record["task_id"]].append(row)
    raw: dict = {}
    for rows in tasks.values():
        raw |= credit(Group(records, rows, float))
    everything = list(raw.values())
    centre = math.fsum(everything) / len(everything)
    scale = 1.0
    if len(everything) > 1:
        variance = math.fsum((x - centre) ** 2 for x in everything) / (len(everything) - 1)
        scale = 1 / math.sqrt(variance + 1e-8)
    flat = range(len(records))
    rows = [[raw[row, at] for at in range(len(values[row]))] for row in flat]
    return rows, [[(x - centre) * scale for x in row] for row in rows]


# ------------------------------------------------------------------ step level


def gigpo(records, convention="paper", norm="mean_std", step_weight=1.0, number=exact):
    def credit(group):
        first = episode(group, convention, norm)
        second = norm_groups(group.returns(0.95), group.by_state(), norm)
        return {row: first[row] + step_weight * float(second[row]) for row in group.rows}

    return over_groups(records, number, credit)


def hgpo(records, convention="paper", norm="mean_std", base_group=False, number=exact):
    shift, tiny = (0, 0.0) if convention == "paper" else (1, 1e-6)

    def credit(group):
        items = defaultdict(list)
        for k in (1, 2, 3):
            found = norm_groups(group.returns(0.95), group.by_history(k), norm, ddof=0)
            for row, value in found.items():
                items[row].append((k + shift, value))
        if base_group:
            for row, value in episode(group, convention, norm).items():
                items[row].append((1, value))
        result = dict.fromkeys(group.rows, 0.0)
        for row, found in items.items():
            left = [(weight, value) for weight, value in found if value != 0]
            if left:
                total = sum(weight * value for weight, value in left)
                result[row] = float(total) / (sum(weight for weight, _ in left) + tiny)
        return result

    return over_groups(records, number, credit)


def graph_of(group: Group, cost: Callable[[str], float] = lambda action: 1) -> nx.DiGraph:
    graph = nx.DiGraph()
    for row in group.rows:
        u, v = group.state[row], group.after[row]
        price = cost(group.action[row])
        if graph.has_edge(u, v):
            price = min(price, graph[u][v]["weight"])
        graph.add_edge(u, v, weight=price)
    return graph


def distances(graph: nx.DiGraph, end: str) -> dict:
    """Distance of every node that reaches `end`."""
    if end not in graph:
        return {}
    return nx.single_source_dijkstra_path_length(graph.reverse(), end)


def graphgpo(
    records,
    convention="paper",
    norm="mean_std",
    omega=0.1,
    episode_weight=1.0,
    cost=lambda action: 1,
    number=exact,
):
    shift = 1 if convention == "paper" else 0

    def credit(group):
        graph = graph_of(group, cost)
        known = distances(graph, GOAL)
        beyond = max(known.values(), default=0) + 1
        returns = {
            row: 10 * number(omega) ** (known.get(group.after[row], beyond) + shift)
            - group.pen(row)
            for row in group.rows
        }
        step = norm_groups(returns, group.by_state(), norm)
        first = episode(group, convention, norm)
        return {row: float(step[row]) + episode_weight * first[row] for row in group.rows}

    return over_groups(records, number, credit)


def progpo(records, norm="mean_std", embeddings=None, number=exact):
    def cosine(a, b):
        dot = sum(x * y for x, y in zip(a, b, strict=True))
        return dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(x * x for x in b))

    def potential(group, returns):
        v = defaultdict(list)
        for k in (1, 2, 3):
            groups = group.by_history(k)
            for key, rows in groups.items():
                members = [returns[row] for row in rows]
                if k == 1 and embeddings is not None and len(rows) < 3 and len(groups) > 1:
                    near = sorted(
                        (-cosine(embeddings[key[0]], embeddings[other[0]]), mean_of)
                        for other, mean_of in (
                            (other, float(mean([returns[row] for row in groups[other]])))
                            for other in groups
                            if other != key
                        )
                    )[:5]
                    weights = [math.exp(-negative) for negative, _ in near]
                    borrowed = sum(w * g for w, (_, g) in zip(weights, near, strict=True))
                    members = [*map(float, members), borrowed / sum(weights)]
                if len(members) >= 2:
                    weight = len(members) / (spread(members, 0) ** 2 + 1e-3)
                    for row in rows:
                        v[row].append((weight, float(mean(members))))
        return {row: sum(w * m for w, m in p) / sum(w for w, _ in p) for row, p in v.items()}

    def credit(group):
        returns = group.returns(0.95)
        peer = dict.fromkeys(group.rows, 0.0)
        weights = dict.fromkeys(group.rows, 0.0)
        for k in (1, 2, 3):
            for rows in group.by_history(k).values():
                values = [returns[row] for row in rows]
                if len(set(values)) > 1:
                    for row, a in zip(rows, norm_of(values), strict=True):
                        peer[row] += (k + 1) * float(a)
                        weights[row] += k + 1
        v = potential(group, returns)
        result = {}
        for path in group.paths.values():
            for row, following in zip(path, [*path[1:], None], strict=True):
                a = peer[row] / (weights[row] + 1e-6)
                change = v[following] - v[row] if row in v and following in v else 0.0
                result[row] = a + 0.5 * (0.3 if abs(a) > 1e-6 else 1.0) * change
        return result

    def norm_of(values):
        return globals()["norm"](values, norm, ddof=0)

    return over_groups(records, number, credit)


# ------------------------------------------------------------------ MileGPO

ALFWORLD = {"norm": "mean_std", "theta": 1.1, "rho": 0, "kappa": False, "eta": 0.2}
WEBSHOP = {"norm": "mean", "theta": 0.5, "rho": 0.5, "kappa": True, "eta": 1.0}


def largest(values) -> Any:
    return max(values, default=0)


def ratio(value, whole):
    return value / whole if whole > 0 else 0 * value


class Landscape:
    """What MileGPO reads off a group: shares, scores, potentials."""

    def __init__(self, group: Group, stage: str, theta: float, rho: float, kappa: bool):
        self.group, self.number = group, group.number
        self.graph = graph_of(group)
        self.names = list(group.paths)
        self.won = [name for name in self.names if group.success[name]]
        self.lost = [name for name in self.names if not group.success[name]]
        self.visits = {name: self.walk(name) for name in self.names}
        self.distance = {v: distances(self.graph, v) for v in self.graph}
        self.share_all = self.of(len(self.won), len(self.names))
        self.share = {v: self.of(*self.count(v)) for v in self.graph}
        self.edge_users = defaultdict(set)
        for row in group.rows:
            self.edge_users[group.state[row], group.after[row]].add(group.owner[row])
        self.edge_share = {
            e: self.of(sum(group.success[name] for name in users), len(users))
            for e, users in self.edge_users.items()
        }
        self.scores = self.milestone_scores()
        self.traps = self.trap_scores()
        self.branch = self.branch_credit()
        self.progress = self.local_progress()
        self.kept = {
            v: self.progress[v] > 0
            or self.of(self.count(v)[0], max(len(self.won), 1)) >= self.number(theta)
            or (kappa and self.branch[v] > 0)
            for v in self.scores
        }
        calibrated = {
            v: s * (1 + self.branch[v] + self.progress[v]) if self.kept[v] else self.number(rho) * s
            for v, s in self.scores.items()
        }
        self.calibrated = calibrated
        chosen = calibrated if stage == "pcc" else self.scores
        self.phi_plus = self.potential(self.weights(chosen, stage))
        self.phi_minus = self.potential(self.weights(self.traps, stage))

    def of(self, part, whole):
        return Fraction(part, whole) if self.number is exact else part / whole

    def walk(self, name):
        path = self.group.paths[name]
        return [*(self.group.state[row] for row in path), self.group.after[path[-1]]]

    def count(self, v):
        """Successes and trajectories that visit v."""
        users = [name for name in self.names if v in self.visits[name]]
        return sum(self.group.success[name] for name in users), len(users)

    def milestone_scores(self):
        visited = [v for v in self.graph if v != GOAL and self.count(v)[0] >= 1]
        degree = {v: self.graph.in_degree(v) + self.graph.out_degree(v) for v in visited}
        return {
            v: max(self.share[v] - self.share_all, 0)
            + self.of(self.count(v)[0], max(len(self.won), 1))
            + self.number(0.25) * self.of(degree[v], largest(degree.values()))
            for v in visited
        }

    def trap_scores(self):
        found = {}
        for v in self.graph:
            succeeded, total = self.count(v)
            if v == GOAL or succeeded:
                continue
            revisits = sum(max(self.visits[name].count(v) - 1, 0) for name in self.names)
            if total >= 2 or revisits >= 1:
                frequency = self.of(total, max(len(self.lost), 1))
                loops = self.of(revisits, total)
                excess = (1 - self.share[v]) - (1 - self.share_all)
                score = max(excess, 0) + self.number(0.25) * frequency * loops
                if score >= self.number(0.10):
                    found[v] = score
        return found

    def siblings(self, edge):
        return [e for e in self.edge_users if e[0] == edge[0] and e != edge]

    def branch_credit(self):
        raw = {}
        for edge in self.edge_users:
            others = [self.edge_share[e] for e in self.siblings(edge)]
            raw[edge] = self.edge_share[edge] - mean(others) if others else 0 * self.share_all
        whole = largest(abs(value) for value in raw.values())
        return {
            v: largest([0, *(ratio(c, whole) for (_, to), c in raw.items() if to == v)])
            for v in self.graph
        }

    def local_progress(self):
        to_goal = self.distance.get(GOAL, {})
        best = dict.fromkeys(self.graph, 0)
        for (u, v), users in self.edge_users.items():
            if not any(self.group.success[name] for name in users):
                continue
            nearer = to_goal[u] - to_goal[v] if u in to_goal and v in to_goal else 0
            gain = self.share[v] - self.share_all
            others = [1 - self.edge_share[e] for e in self.siblings((u, v))]
            if others:
                loss = max((1 - self.edge_share[u, v]) - mean(others), 0)
            else:
                loss = max((1 - self.share[v]) - (1 - self.share_all), 0)
            best[v] = max(best[v], nearer + gain - loss)
        whole = largest(best.values())
        return {v: ratio(value, whole) for v, value in best.items()}

    def weights(self, values, stage):
        if stage == "md":
            return dict.fromkeys(values, 1)
        whole = largest(values.values())
        return {v: ratio(value, whole) for v, value in values.items()}

    def potential(self, weights):
        omega = self.number(0.2)
        return {
            s: largest(
                [
                    0,
                    *(
                        w * omega ** self.distance[v][s]
                        for v, w in weights.items()
                        if s in self.distance[v]
                    ),
                ]
            )
            for s in self.graph
        }


def milegpo(records, convention="paper", recipe=ALFWORLD, stage="pcc", number=exact, **changed):
    chosen = {**recipe, **changed}
    kind, eta = chosen["norm"], chosen["eta"]

    def credit(group):
        land = Landscape(group, stage, chosen["theta"], chosen["rho"], chosen["kappa"])
        to_goal = land.distance.get(GOAL, {})
        graph_return, mixed_return = {}, {}
        for row in group.rows:
            s, after = group.state[row], group.after[row]
            near = 10 * number(0.2) ** to_goal[after] if after in to_goal else number(0)
            rise = max(land.phi_plus[after] - land.phi_plus[s], 0)
            fall = max(number(0.25) * (land.phi_minus[after] - land.phi_minus[s]), 0)
            graph_return[row] = near - group.pen(row)
            mixed_return[row] = near + 10 * number(0.25) * (rise - fall) - group.pen(row)
        a_graph = norm_groups(graph_return, group.by_state(), kind)
        a_mixed = norm_groups(mixed_return, group.by_state(), kind)
        first = episode(group, convention, kind)
        return {
            row: float(a_graph[row]) + eta * float(a_mixed[row] - a_graph[row]) + first[row]
            for row in group.rows
        }

    return over_groups(records, number, credit)
