import json

import pytest

from baselines.benches import estimators
from milegpo_envs.alfworld import bench as alfworld_bench
from milegpo_envs.reports import Report
from scripts import bench


def test_the_engines_are_measured_side_by_side(monkeypatch, capsys):
    monkeypatch.setattr(alfworld_bench, "BATCH", 2)
    monkeypatch.setattr(alfworld_bench, "MEMORY_GAMES", 2)
    few = ["--games", "1", "--size", "small", "--shipped-steps", "2", "--workers", "1"]
    bench.main(["alfworld", *few, "--resets", "8", "--textworld-resets", "2", "--json", "-"])
    report = json.loads(capsys.readouterr().out)
    names = [row[0] for row in report["rows"]]
    assert names == [
        "textworld as shipped",
        "textworld memoised",
        "fast",
        "textworld, whole environment",
        "fast, whole environment",
        "fast, pool in this process",
        "fast, pool of 1 process(es)",
        "textworld, pool of 1 process(es)",
    ]
    shipped, memoised, fast, _, whole, *pools = (
        dict(zip(report["columns"], r, strict=True)) for r in report["rows"]
    )
    assert all(pool["steps/s"] > 0 for pool in pools)
    assert shipped["times faster a step"] == 1
    assert memoised["times faster a step"] > 1
    assert fast["times faster a step"] > 100
    assert whole["step ms"] < 10


def test_the_estimators_are_measured_one_by_one(monkeypatch, capsys):
    monkeypatch.setattr(estimators, "TASKS", 2)
    monkeypatch.setattr(estimators, "LONG", (400, 4000))
    bench.main(["estimators", "--reference", "--long", "--json", "-"])
    report = json.loads(capsys.readouterr().out)
    names = [row[0] for row in report["rows"]]
    for name in ("read and check records", "gigpo", "milegpo", "milegpo in plain Python"):
        assert name in names
    assert names.count("milegpo") == 3
    assert "MB beyond the records" in names[-1]
    assert all(row[2] is None or row[2] > 0 for row in report["rows"])


def test_a_report_prints_as_a_table(capsys):
    bench.show(Report("Title", ("what", "ms"), (("a", 1234.5), ("b", None)), ("A note.",)))
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("Title", "what", "1,234", "A note."))


def test_an_unknown_bench_is_refused(capsys):
    with pytest.raises(SystemExit):
        bench.main(["nothing"])
    assert "alfworld" in capsys.readouterr().err
