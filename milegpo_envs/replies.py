"""From a model's raw reply to the action that is sent to the environment.

The rule is that of the GiGPO reference implementation (arXiv:2505.10978): the action is the text
between the first ``<action>`` and the first ``</action>`` after it, stripped and lower-cased. A
reply is well-formed if that text is there and not empty and if ``<think>`` and ``</think>`` both
occur; the reference also refuses replies with CJK ideographs (``forbid_cjk=True``). As there, the
action's tags are found in any letter case, the think tags only as written; their order is free.

Whether the action is admissible is another question, which the environment answers. A malformed
reply still sends something and spends a step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

Problem = Literal[
    "empty_reply",  # nothing but blanks
    "no_action_tag",  # no <action>
    "unclosed_action",  # no </action> after it: often a reply cut at the length limit
    "empty_action",  # nothing but blanks between the two
    "no_think",  # no <think>
    "unclosed_think",  # no </think>
    "cjk",  # an ideograph, where forbidden
]
"""Why a reply is malformed; where several apply, the first in this order."""

PROBLEMS: tuple[Problem, ...] = get_args(Problem)

TAIL_CHARACTERS = 30
"""How much of a reply without an action is sent, from its end, as in the reference."""

# The range the reference tests: CJK Unified Ideographs, first block.
_CJK = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True)
class Reply:
    """What a reply says.

    action: sent to the environment. The action's text, else the reply's last characters, stripped
        and lower-cased; empty only where there is no text at all.
    problem: None for a well-formed reply.
    """

    action: str
    problem: Problem | None

    @property
    def format_valid(self) -> bool:
        """True for a well-formed reply."""
        return self.problem is None


def parse_reply(text: str, *, forbid_cjk: bool = False) -> Reply:
    """Read a reply, in time linear in its length; no string makes it raise.

    Args:
        text: the reply, without the chat template's own end marks.
        forbid_cjk: count CJK ideographs anywhere in the reply as malformed.
    """
    lowered = text.lower()
    _, opened, rest = lowered.partition("<action>")
    inside, closed, _ = rest.partition("</action>")
    action = inside.strip() if closed else ""
    return Reply(
        action=action or lowered.strip()[-TAIL_CHARACTERS:].strip(),
        problem=_problem(text, bool(opened), bool(closed), action, forbid_cjk),
    )


def _problem(
    text: str, opened: bool, closed: bool, action: str, forbid_cjk: bool
) -> Problem | None:
    """Find the first thing wrong with a reply, if any."""
    if not text.strip():
        return "empty_reply"
    if not opened:
        return "no_action_tag"
    if not closed:
        return "unclosed_action"
    if not action:
        return "empty_action"
    if "<think>" not in text:
        return "no_think"
    if "</think>" not in text:
        return "unclosed_think"
    if forbid_cjk and _CJK.search(text):
        return "cjk"
    return None
