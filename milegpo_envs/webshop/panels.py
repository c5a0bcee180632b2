"""The panels of WebShop: splits of its goals.

    webshop/test                  of a folder if `data` is given, else of the generated shop
    webshop/generated/test        always of the generated shop
    webshop/small/test            of the official 1,000 products; refused without `data`
    webshop/human/test            goals that people wrote, of a folder or generated

and so for validation and train. On the shuffled goals, test is 0 to 499, validation 500 to 1,499,
train the rest; the 13 goals that people wrote for the official 1,000 products are all in test.
"""

from collections.abc import Mapping

from milegpo_envs.panels import PanelSource
from milegpo_envs.webshop.goals import SPLITS

ENV_ID = "milegpo/WebShop-v0"
_WHENCE: Mapping[str, Mapping[str, object]] = {
    "webshop": {},
    "webshop/generated": {"data": None},
    "webshop/small": {"size": "small", "products": None},
    "webshop/human": {"human_goals": True},
}

PANELS: Mapping[str, PanelSource] = {
    f"{prefix}/{split}": PanelSource(
        ENV_ID, {**settings, "split": split}, needs=("data",) if "size" in settings else ()
    )
    for prefix, settings in _WHENCE.items()
    for split in SPLITS
}
