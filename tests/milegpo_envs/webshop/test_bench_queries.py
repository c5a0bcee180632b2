import argparse

from milegpo_envs.webshop import bench, bench_steps
from milegpo_envs.webshop.bench_queries import query_costs


def test_the_bench_measures_a_small_shop(tmp_path):
    costs = query_costs(60, tmp_path)
    assert costs.products == 60
    assert costs.index > 0 and costs.query > 0
    assert query_costs(60, tmp_path).index < costs.index + 1


def test_the_bench_says_how_far_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_steps, "TASKS", 3)
    monkeypatch.setattr(bench_steps, "ENVIRONMENTS", 3)
    parser = argparse.ArgumentParser()
    bench.add_options(parser)
    options = parser.parse_args(["--products", "1500", "--cache", str(tmp_path)])
    said = []
    report = bench.run(options, lambda *what: said.append(what))
    ends = {what: (done, total) for done, total, what in said}
    assert ends == {
        "prices and goals": (1500, 1500),
        "search index": (1500, 1500),
        "purchases planned": (3, 3),
        "purchases": (3, 3),
    }
    assert (1000, 1500, "search index") in said
    assert report.columns[1:] == ("1,500 products",)
