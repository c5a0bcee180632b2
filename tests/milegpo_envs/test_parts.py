import sys
from subprocess import run

import pytest

from milegpo_envs.errors import UnknownName
from milegpo_envs.parts import offering, part


def test_a_folder_offers_its_modules_by_name():
    assert "alfworld" in offering("bench")
    assert part("alfworld", "bench").HELP


def test_nothing_is_imported_to_look():
    code = (
        "import sys; from milegpo_envs.parts import offering; offering('bench');"
        "print('milegpo_envs.alfworld.bench' in sys.modules)"
    )
    out = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_an_environment_without_the_part_is_named_with_those_that_have_it():
    with pytest.raises(UnknownName, match=r"nowhere.*alfworld"):
        part("nowhere", "bench")
