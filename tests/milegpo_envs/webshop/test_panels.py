from milegpo_envs.panels import named_panel
from milegpo_envs.webshop.panels import PANELS


def test_panels_are_splits_of_the_goals():
    sizes = {name: len(named_panel(f"webshop/{name}").task_ids) for name in ("test", "validation")}
    assert sizes == {"test": 500, "validation": 1000}
    test, train = (set(named_panel(f"webshop/{name}").task_ids) for name in ("test", "train"))
    assert not test & train


def test_a_panel_is_named_by_its_goals_not_by_a_seed():
    assert named_panel("webshop/test").hash == named_panel("webshop/test", seed=5).hash
    assert named_panel("webshop/test").hash == named_panel("webshop/generated/test").hash
    assert named_panel("webshop/test:50").hash != named_panel("webshop/human/test:50").hash


def test_every_panel_fixes_its_split():
    assert all(source.settings["split"] == name.split("/")[-1] for name, source in PANELS.items())
