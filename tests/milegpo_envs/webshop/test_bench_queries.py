from milegpo_envs.webshop.bench_queries import query_costs


def test_the_bench_measures_a_small_shop(tmp_path):
    costs = query_costs(60, tmp_path)
    assert costs.products == 60
    assert costs.index > 0 and costs.query > 0
    assert query_costs(60, tmp_path).index < costs.index + 1
