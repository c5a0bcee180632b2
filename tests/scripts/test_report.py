"""The report as a file: what it holds, what it refuses, that hostile data stay data."""

import json
import re

import pytest

from baselines.report.layout import lay_out
from baselines.report.page import escape_json
from milegpo_algo import Rollouts, advantages
from scripts import report
from tests.milegpo_algo.toy_rollouts import random_records
from tests.scripts.report_runs import (
    HOSTILE,
    episode,
    fork,
    write_comparison,
    write_lines,
    write_run,
)

pytest.importorskip("igraph", reason="the extra report is not installed")
pytest.importorskip("matplotlib", reason="the extra report is not installed")


def written(tmp_path, *arguments):
    page = tmp_path / "page.html"
    report.main([*map(str, arguments), "--output", str(page)])
    return page.read_text(encoding="utf-8")


def graphs(page):
    listed = json.loads(re.search(r'id="graphs">(.*?)</script>', page, re.DOTALL)[1])
    texts = re.findall(r'id="graph-\d+">(.*?)</script>', page, re.DOTALL)
    return listed, [json.loads(text) for text in texts]


def refused(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        report.main([str(a) for a in arguments])
    assert stop.value.code == 2
    return capsys.readouterr().err


def test_a_comparison_becomes_one_page(tmp_path):
    page = written(tmp_path, write_comparison(tmp_path / "two"))
    assert "Panel toy, each game once." in page
    assert "two/cells/gigpo-seed1" in page
    assert "<svg" in page
    assert "GraphGPO&#39;s ties ranked rightly" in page
    listed, found = graphs(page)
    assert [(item["run"], item["won"], item["of"]) for item in listed] == [
        ("two/cells/gigpo-seed1", 3, 5),
        ("two/cells/milegpo-seed1", 3, 5),
    ]
    assert len(found) == 2


def test_equal_input_gives_equal_bytes(tmp_path):
    folder = write_comparison(tmp_path / "two")
    assert written(tmp_path, folder) == written(tmp_path, folder)


def test_numbers_are_the_estimators_own(tmp_path):
    records = random_records(3)
    file = tmp_path / "steps.parquet"
    Rollouts.from_steps(records).to_parquet(file)
    _, found = graphs(written(tmp_path, file, "--recipe", "webshop"))
    expected = advantages(Rollouts.from_steps(records), "milegpo", recipe="webshop")
    checked = 0
    for graph in found:
        values = next(e for e in graph["estimators"] if e["name"] == "milegpo")["values"]
        for step, value in zip(graph["steps"], values, strict=True):
            name = graph["trajectories"][step["trajectory"]]["id"]
            row = next(
                i
                for i, r in enumerate(records)
                if (r["task_id"], r["trajectory_id"], r["step"])
                == (graph["task"], name, step["step"])
            )
            assert value == pytest.approx(expected[row], abs=1e-8)
            checked += 1
    assert checked == len(records)


def test_the_terms_of_every_estimator_add_up(tmp_path):
    _, (graph,) = graphs(written(tmp_path, write_run(tmp_path / "run", episodes=fork())))
    for estimator in graph["estimators"]:
        parts = [t["values"] for t in estimator["terms"] if t["part"]]
        for at, value in enumerate(estimator["values"]):
            assert sum(p[at] for p in parts) == pytest.approx(value, abs=1e-7)


def test_a_critic_s_values_reach_the_page_where_there_are_some(tmp_path):
    with_values = [episode("fork", 9, ["S", "A", "end"], True, value=2.5), *fork()]
    _, (graph,) = graphs(written(tmp_path, write_run(tmp_path / "run", episodes=with_values)))
    names = [trajectory["id"] for trajectory in graph["trajectories"]]
    told = {names[step["trajectory"]]: step.get("value") for step in graph["steps"]}
    assert told == {"0": None, "1": None, "2": None, "3": None, "4": None, "9": 2.5}


def test_milestones_traps_and_distances_reach_the_page(tmp_path):
    _, (graph,) = graphs(written(tmp_path, write_run(tmp_path / "run", episodes=fork())))
    by_id = {node["id"]: at for at, node in enumerate(graph["nodes"])}
    marks = graph["marks"][""]["nodes"]
    distances = {name: graph["nodes"][at]["distance"] for name, at in by_id.items()}
    assert distances == {"S": 2, "A": 1, "B": 1, "X": "inf", "__SUCCESS__": 0}
    assert marks[by_id["A"]]["milestone_weight"] == 1.0
    assert marks[by_id["X"]]["trap"]
    columns = [graph["nodes"][by_id[name]]["x"] for name in ("S", "A", "__SUCCESS__")]
    assert columns == sorted(columns)
    assert graph["nodes"][by_id["S"]]["prompt"] == "you are in S"


def test_states_of_one_distance_share_a_column_and_no_place():
    edges = [(0, 1), (0, 2), (1, 3), (2, 3), (0, 4), (4, 4), (4, 5)]
    far = float("inf")
    places = lay_out([2.0, 1.0, 1.0, 0.0, far, far], edges, [0]).places
    assert places[1][0] == places[2][0] < places[3][0]
    assert len(set(places)) == 6
    assert min(places[4][1], places[5][1]) > max(y for _, y in places[:4])


def test_sokoban_states_have_true_distances_and_deadlocks(tmp_path):
    import gymnasium as gym

    import milegpo_envs  # noqa: F401  registers

    env = gym.make("milegpo/Sokoban-v0", split="train")
    task = env.unwrapped.task_ids()[0]
    episodes = []
    for trajectory, moves in enumerate((["up", "left"] * 4, ["down", "right"] * 4)):
        _, info = env.reset(options={"task": task})
        states = [info["state_id"]]
        truths = [env.unwrapped.distance(by="moves")]
        for move in moves:
            *_, info = env.step(move)
            states.append(info["state_id"])
            truths.append(env.unwrapped.distance(by="moves"))
        walked = episode(task, trajectory, states, False)
        for step, move in zip(walked["steps"], moves, strict=True):
            step["action"] = move
        episodes.append((walked, dict(zip(states, truths, strict=True))))
    folder = write_run(
        tmp_path / "sokoban",
        episodes=[walked for walked, _ in episodes],
        env_id="milegpo/Sokoban-v0",
        env_settings={},
        train_panel={"name": "sokoban/train"},
    )
    _, (graph,) = graphs(written(tmp_path, folder))
    expected = {k: v for _, truths in episodes for k, v in truths.items()}
    for node in graph["nodes"]:
        if node["id"] in expected:  # success is reached by none
            assert node["trueDistance"] == expected[node["id"]]
            assert node["lost"] == (expected[node["id"]] is None)
            assert node["text"].count("\n") >= 5
    assert "Against the true distances" in graph["note"]


def test_actions_that_lead_elsewhere_are_noticed(tmp_path):
    import gymnasium as gym

    env = gym.make("milegpo/Sokoban-v0", split="train")
    task = env.unwrapped.task_ids()[0]
    folder = write_run(
        tmp_path / "run",
        episodes=[episode(task, 0, ["S", "A"], False)],
        env_id="milegpo/Sokoban-v0",
        env_settings={},
        train_panel={"name": "sokoban/train"},
    )
    _, (graph,) = graphs(written(tmp_path, folder))
    assert "not played again: state 0" in graph["note"]


def test_hostile_text_cannot_leave_its_data(tmp_path):
    hostile = [episode(HOSTILE, 0, ["S", HOSTILE, "end"], True, reply=HOSTILE)]
    folder = write_run(tmp_path / "run", HOSTILE, episodes=hostile)
    row = json.loads((folder / "result.json").read_text()) | {"settings": {}}
    (folder / "result.json").write_text(json.dumps(row))
    page = written(tmp_path, folder)
    assert "<script>window.hacked" not in page
    assert "<img" not in page
    _, (graph,) = graphs(page)
    assert graph["task"] == HOSTILE


def test_escaped_json_is_the_same_json():
    text = json.dumps({"a": HOSTILE, "b": "&<>"}, ensure_ascii=False)
    assert json.loads(escape_json(text)) == json.loads(text)
    assert not set("<>&\u2028") & set(escape_json(text))


def test_a_run_that_goes_on_is_shown_without_its_half_line(tmp_path):
    folder = write_run(tmp_path / "run", episodes=fork())
    (folder / "result.json").unlink()
    for name in ("metrics.jsonl", "iteration-000002.jsonl"):
        with (folder / name).open("a") as file:
            file.write('{"iteration": 4, "succ')
    page = written(tmp_path, folder)
    assert "a last line that is cut off was left out" in page
    assert "not finished" in page
    assert len(graphs(page)[1]) == 1


def test_graphs_over_the_size_are_left_out_and_named(tmp_path):
    episodes = [e for n in range(4) for e in fork(f"task{n}")]
    folder = write_run(tmp_path / "run", episodes=episodes)
    assert len(graphs(written(tmp_path, folder))[1]) == 4
    page = written(tmp_path, folder, "--max_mb", "0.01")
    assert len(graphs(page)[1]) == 1
    assert "3 more task graphs are left out" in page
    assert [i["task"] for i in graphs(written(tmp_path, folder, "--tasks", "task3"))[0]] == [
        "task3"
    ]


def test_a_page_without_rollouts_says_how_to_have_some(tmp_path):
    assert "--trajectory_steps N" in written(tmp_path, write_run(tmp_path / "run"))


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lambda p: None, "does not exist"),
        (lambda p: p.mkdir(), "holds no run"),
        (lambda p: write_lines(p / "iteration-000001.jsonl", []), "holds no whole episode"),
        (lambda p: write_lines(p / "iteration-000001.jsonl", [3, fork()[0]]), "line 1"),
        (lambda p: write_lines(p / "metrics.jsonl", [{}, {"iteration": 1}]), "line 1"),
        (lambda p: write_lines(p / "result.json", [{"x": 1}]), "not a result row"),
        (lambda p: write_run(p, episodes=[{**fork()[0], "steps": [{}]}]), "cannot be read"),
    ],
)
def test_bad_input_is_named_with_its_remedy(tmp_path, capsys, make, remedy):
    folder = tmp_path / "run"
    make(folder)
    text = refused(capsys, folder, "--output", tmp_path / "page.html")
    assert remedy in text
    assert "run" in text
    assert not (tmp_path / "page.html").exists()


def test_unknown_tasks_and_sizes_are_refused(tmp_path, capsys):
    folder = write_run(tmp_path / "run", episodes=fork())
    assert "fork" in refused(capsys, folder, "--tasks", "other")
    assert "iteration 99. There are: 2." in refused(capsys, folder, "--iterations", "2", "99")
    assert "above 0" in refused(capsys, folder, "--max_mb", "0")
    assert "above 0" in refused(capsys, folder, "--max_mb", "nan")
