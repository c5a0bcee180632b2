import pytest

from milegpo_envs.panels import named_panel
from milegpo_envs.webshop.panels import PANELS
from tests.milegpo_envs.webshop.real_shop import FOLDER, needs_real_shop


def test_panels_are_splits_of_the_goals():
    sizes = {name: len(named_panel(f"webshop/{name}").task_ids) for name in ("test", "validation")}
    assert sizes == {"test": 500, "validation": 1000}
    test, train = (set(named_panel(f"webshop/{name}").task_ids) for name in ("test", "train"))
    assert not test & train


def test_a_panel_is_named_by_its_goals_not_by_a_seed():
    assert named_panel("webshop/test").hash == named_panel("webshop/test", seed=5).hash
    assert named_panel("webshop/test").hash == named_panel("webshop/generated/test").hash
    assert named_panel("webshop/test:50").hash != named_panel("webshop/human/test:50").hash


@pytest.mark.parametrize("settings", [{}, {"data": None}])
def test_a_panel_of_official_products_is_not_made_of_others(settings):
    with pytest.raises(ValueError, match=r"named_panel\('webshop/small/test:50', data=...\)"):
        named_panel("webshop/small/test:50", **settings)
    assert not PANELS["webshop/small/test"].takes({})


@needs_real_shop
def test_panels_of_a_folder_say_so():
    panel = named_panel("webshop/small/test", data=FOLDER)
    assert (len(panel.task_ids), panel.data) == (500, "folder")
    assert named_panel("webshop/human/test", data=FOLDER).task_ids != panel.task_ids
    assert named_panel("webshop/test").data == "generated"


def test_every_panel_fixes_its_split():
    assert all(source.settings["split"] == name.split("/")[-1] for name, source in PANELS.items())
