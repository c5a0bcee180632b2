"""The panels of ALFWorld: splits, and splits by task type.

    alfworld/valid_unseen                             of a folder if `data` is given, else generated
    alfworld/valid_unseen/pick_and_place_simple       one task type of it
    alfworld/generated/valid_unseen[/TYPE]            always generated, whole rooms
    alfworld/small/valid_unseen[/TYPE]                always generated, small rooms

and so for train and valid_seen. Slices hold as many tasks of each type, to within one.
"""

from collections.abc import Mapping

from milegpo_envs.alfworld.games import SPLITS, TASK_TYPES
from milegpo_envs.panels import PanelSource

ENV_ID = "milegpo/ALFWorld-v0"
_WHENCE: Mapping[str, Mapping[str, object]] = {
    "alfworld": {},
    "alfworld/generated": {"data": None, "size": "full"},
    "alfworld/small": {"data": None, "size": "small"},
}


def task_type_in(task_id: str) -> str:
    """The task type in the id of a generated game or of one in the official layout, or ""."""
    return next((task_type for task_type in TASK_TYPES if task_type in task_id), "")


def _sources() -> dict[str, PanelSource]:
    out = {}
    for prefix, settings in _WHENCE.items():
        for split in SPLITS:
            whole = {**settings, "split": split}
            out[f"{prefix}/{split}"] = PanelSource(ENV_ID, whole, task_type_in)
            for kind in TASK_TYPES:
                out[f"{prefix}/{split}/{kind}"] = PanelSource(
                    ENV_ID, {**whole, "task_types": (kind,)}, task_type_in
                )
    return out


PANELS: Mapping[str, PanelSource] = _sources()
