"""How titles and captions speak of a panel, so that none leaves out whose games it is of."""

from collections.abc import Mapping
from typing import Any


def panel_size(panel: Mapping[str, Any], what: str = "tasks") -> str:
    """Say how many tasks a panel has and of what: "131 tasks, official 131/134".

    panel: as result rows hold it (see ``runs``); older ones do not say whose tasks theirs are.
    """
    return ", ".join([f"{panel.get('size')} {what}", *filter(None, [panel.get("data")])])
