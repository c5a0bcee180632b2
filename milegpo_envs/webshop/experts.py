"""A player that shops by reading: it sees what a policy sees and no more.

It searches the instruction's words, opens the product on the page of results that shares the most
words with the instruction at a fitting price, turns back if it has not the options that the
instruction names, else chooses them and buys. No environment uses it unless asked to.
"""

import re
from collections.abc import Sequence

from milegpo_envs.webshop.actions import ANY_SEARCH, click
from milegpo_envs.webshop.prompt import instruction, page_lines, plain_line
from milegpo_envs.webshop.shop import BACK, BUY, NEXT, PARTS, PREVIOUS

_BOUND = re.compile(r",? ?(?:and )?price lower than ([\d.]+) dollars")
_OPTION = re.compile(r"(?: with |, and )[^,:]+: ")
_PRICE = re.compile(r"\$([\d.]+)")
_WORD = re.compile(r"\w+")
_BUTTONS = {BACK, BUY, NEXT, PREVIOUS, *PARTS}
_DULL_WORDS = """
a an and are as at be but by for i in is it me my need of on or that the to want with find looking
look would like am some pair please buy lower than price dollars color size
"""
_DULL = frozenset(_DULL_WORDS.split())


class ReadingExpert:
    """Sees what a policy sees: the observation, as text or text_rich, and the admissible actions.

    Args:
        patience: how many products it opens at most; it buys the last of them.
    """

    def __init__(self, patience: int = 5) -> None:
        self._patience = patience
        self._intention = ""
        self._opened: set[str] = set()
        self._chosen: set[str] = set()

    @property
    def intention(self) -> str:
        """What the last action is for, in a few words."""
        return self._intention

    def reset(self, observation: str, admissible: Sequence[str]) -> None:
        """Begin an episode."""
        self._opened, self._chosen = set(), set()
        self._intention = ""

    def act(self, observation: str, admissible: Sequence[str]) -> str:
        """The next action."""
        task = instruction(observation)
        if ANY_SEARCH in admissible:
            self._intention = "search for what is wanted"
            return f"search[{_query(task)}]"
        if click(BUY) in admissible:
            return self._at_item(task, observation, admissible)
        return self._among_results(task, observation, admissible)

    def _at_item(self, task: str, observation: str, admissible: Sequence[str]) -> str:
        groups = options_on(observation, admissible)
        offered = sum(f"{group}: {value}" in task for group, values in groups for value in values)
        if offered < _OPTION.subn("", task)[1] and len(self._opened) < self._patience:
            self._intention = "it lacks an option"
            return click(PREVIOUS)
        for group, values in groups:
            value = _named(task, group, values)
            if value is not None and value not in self._chosen:
                self._chosen.add(value)
                self._intention = f"{group} {value}"
                return click(value)
        self._intention = "all chosen"
        return click(BUY)

    def _among_results(self, task: str, observation: str, admissible: Sequence[str]) -> str:
        lines = [plain_line(line) for line in page_lines(observation)]
        self._chosen = set()
        found = [
            i
            for i, line in enumerate(lines)
            if _is_choice(line, admissible) and line not in self._opened
        ]
        if not found:
            self._intention = "nothing here"
            return click(BACK)
        self._intention = "this one fits best"
        best = max(found, key=lambda i: _fit(task, lines[i + 1 :]))  # the first of equals
        self._opened.add(lines[best])
        return click(lines[best].lower())


def options_on(observation: str, admissible: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Groups of options on an item page, with their values, in the order of the page."""
    groups: list[tuple[str, list[str]]] = []
    heading = ""
    for line in map(plain_line, page_lines(observation)):
        if not _is_choice(line, admissible):
            heading = line
        elif groups and groups[-1][0] == heading:
            groups[-1][1].append(line)
        else:
            groups.append((heading, [line]))
    return groups


def _is_choice(line: str, admissible: Sequence[str]) -> bool:
    """Whether a line is a product or an option that can be clicked."""
    return line.lower() not in _BUTTONS and click(line.lower()) in admissible


def _fit(task: str, after: Sequence[str]) -> float:
    """How well the product listed before these lines (title, price) fits."""
    title, price = (*after[:2], "", "")[:2]
    bound, cost = _BOUND.search(task), _PRICE.search(price)
    shared = len(_words(_BOUND.sub("", task)) & _words(title))
    dear = bound is not None and cost is not None and float(cost[1]) > float(bound[1])
    return shared * (0.5 if dear else 1.0)


def _query(task: str) -> str:
    """The instruction's telling words."""
    words = _BOUND.sub("", task).replace("[", " ").replace("]", " ").split()
    return " ".join(word for word in words if word.strip(".,:").lower() not in _DULL) or task


def _words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.lower()) if word not in _DULL}


def _named(task: str, group: str, values: Sequence[str]) -> str | None:
    """The value that an instruction names: with its group if it can be, the longest otherwise."""
    lowered = task.lower()
    ordered = sorted(values, key=len, reverse=True)
    for pattern in (f"{group}: {{}}", "{}"):
        for value in ordered:
            named = re.escape(pattern.format(value))
            if re.search(rf"(?<!\w){named}(?!\w)", lowered):
                return value
    return None


EXPERTS = dict.fromkeys(("milegpo/WebShop-v0", "milegpo/WebShopBrowser-v0"), ReadingExpert)
"""Environment id -> expert to imitate."""
