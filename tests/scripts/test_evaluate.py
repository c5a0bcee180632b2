import json
import shutil
from statistics import fmean, pstdev

import pytest
from transformers import AutoTokenizer

from baselines.comparison import Row, lines
from baselines.tiny_policy import TinyShape, build_model, train_tokenizer
from milegpo_algo.rollout.completions import EndpointError
from milegpo_algo.rollout.spending import BudgetSpent
from scripts.compare import main as compare
from scripts.evaluate import main
from tests.milegpo_algo.rollout.fake_endpoint import FakeEndpoint

TEXTS = ["task: put a mug in desk. go to desk 1 | take mug 2 from desk 1"] * 9


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    tokenizer = train_tokenizer(TEXTS, 320)
    build_model(tokenizer, TinyShape(hidden=32, layers=1, intermediate=64), 0).save_pretrained(
        folder
    )
    tokenizer.save_pretrained(folder)
    return folder


def row(model, tmp_path, *options):
    output = tmp_path / "rows.jsonl"
    main(
        [
            *("--model", str(model), "--eval_size", "5", "--eval_seeds", "1", "2"),
            *("--horizon", "2", "--output", str(output), *options),
        ]
    )
    return json.loads(output.read_text().splitlines()[-1])


def test_a_panel_is_swept_once_per_seed_whatever_the_number_of_slots(model, tmp_path):
    wide = row(model, tmp_path)
    narrow = row(model, tmp_path, "--slots", "2")
    assert {**wide, "options": None} == {**narrow, "options": None}
    pairs = [(e["task_id"], e["seed"]) for e in wide["episodes"]]
    assert len(pairs) == len(set(pairs)) == 10
    assert wide["stops"] == {"horizon": 10}
    assert wide["success"] == 0.0  # running out of steps is not success


@pytest.mark.parametrize(
    "options",
    [("--slots", "1"), ("--slots", "3"), ("--env_workers", "2", "--env_pool", "processes")],
    ids=" ".join,
)
def test_no_reply_depends_on_the_batch_or_on_where_environments_live(model, tmp_path, options):
    hot = ("--eval_temperature", "1.0", "--horizon", "3")
    first = row(model, tmp_path, *hot, "--trajectories", str(tmp_path / "first"))
    other = row(model, tmp_path, *hot, "--trajectories", str(tmp_path / "other"), *options)
    said = [replies(tmp_path / name) for name in ("first", "other")]
    assert said[0] == said[1]
    assert len({reply for _, _, reply in said[0]}) > 25  # of 30: they do differ among themselves
    asked = {"engine": None, "options": None}
    assert {**first, **asked} == {**other, **asked}


def replies(folder):
    lines = [json.loads(x) for file in sorted(folder.iterdir()) for x in file.open()]
    return [(e["iteration"], e["task_id"], s["reply"]) for e in lines for s in e["steps"]]


def test_the_row_tells_spread_kinds_ends_and_where_it_was_made(model, tmp_path, capsys):
    found = row(model, tmp_path, "--agent", "random", "--eval_size", "6", "--horizon", "12")
    assert found["success"] == fmean(found["success_by_seed"].values())
    assert found["success_std"] == pstdev(found["success_by_seed"].values())
    low, high = found["success_interval"]
    assert low <= found["success"] <= high
    assert sum(kind["episodes"] for kind in found["by_type"].values()) == 12
    assert {"steps", "format_valid", "action_valid", "score_std"} <= set(
        found["by_type"].popitem()[1]
    )
    assert sum(found["stops"].values()) == 12
    assert found["protocol"]["horizon"] == 12
    assert found["panel"]["data"] == "generated"
    assert len(found["code"]["sources"]) == 16
    said = capsys.readouterr().err
    assert "ends of episodes" in said
    assert "action" in said


def test_rows_of_agents_of_a_trained_policy_and_of_training_stand_in_one_table(model, tmp_path):
    start = row(model, tmp_path)
    trained = {**start, "agent": None, "estimator": "grpo", "seed": 1, "method": "grpo"}
    trained |= {"convention": "paper", "recipe_hash": "beef", "checkpoint_rule": "last"}
    folder = tmp_path / "cell"
    shutil.copytree(model, folder / "model")
    del trained["agent"]
    (folder / "result.json").write_text(json.dumps(trained))
    again = row(folder / "model", tmp_path)
    assert (again["estimator"], again["seed"]) == ("grpo", 1)
    rows = [Row.of(r) for r in (trained, start, row(model, tmp_path, "--agent", "random"))]
    assert [line.name for line in lines(rows)] == ["grpo", "direct", "random"]
    assert Row.of(again).name == "grpo-seed1"


def test_the_tokenizer_reads_as_it_was_trained_after_saving_and_loading(model):
    loaded = AutoTokenizer.from_pretrained(model)
    trained = train_tokenizer(
        ["task: put a mug in desk. go to desk 1 | take mug 2 from desk 1"] * 9, 320
    )
    for text in ("go to desk 12 | <action>take mug 2</action>", "Ünï\n\n x"):
        assert loaded(text)["input_ids"] == trained(text)["input_ids"]
        assert loaded.decode(loaded(text)["input_ids"]) == text


@pytest.mark.parametrize(
    ("options", "valid"),
    [
        (("--env_id", "nope"), "milegpo/ALFWorld-v0"),
        (("--eval_split", "nope"), "valid_unseen"),
        (("--env_id", "milegpo/Sokoban-v0"), "a recipe of it with --config"),
        (("--env_settings", "nope"), "key=value"),
        (("--config=nope.yaml",), "nope.yaml"),
        (("--nope", "1"), "nope"),
        ((), "No model at 'does-not-matter'"),
        (("--eval_seeds", "1", "1"), "each once"),
        (("--slots", "0"), "slots=0"),
        (("--max_completion_length", "0"), "max_completion_length=0"),
        (("--max_prompt_tokens", "0"), "max_prompt_tokens=0"),
        (("--eval_temperature", "-1"), "eval_temperature=-1"),
        (("--eval_temperature", "nan"), "eval_temperature=nan"),
        (("--horizon", "-1"), "horizon=-1"),
        (("--base_url", "127.0.0.1:8000/v1"), "http://"),
        (("--base_url", "http://host:port/v1"), "host:port"),
        (("--requests_per_minute", "0"), "above 0"),
        (("--prices", "1"), "give two"),
    ],
)
def test_unknown_names_and_numbers_without_sense_exit_with_2(capsys, options, valid):
    with pytest.raises(SystemExit) as error:
        main(["--model", "does-not-matter", *options])
    assert error.value.code == 2
    assert valid in capsys.readouterr().err


def test_a_reply_longer_than_the_model_s_context_is_refused(model, capsys):
    with pytest.raises(SystemExit):
        main(["--model", str(model), "--max_completion_length", "2048"])
    assert "Lower max_completion_length below 2048" in capsys.readouterr().err


@pytest.mark.parametrize("fault", [EndpointError("it is not there"), BudgetSpent("no more")])
def test_an_endpoint_that_fails_ends_in_one_line(fault, monkeypatch, capsys):
    def fail(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr("scripts.evaluate.run_agent", fail)
    with pytest.raises(SystemExit) as ended:
        main(["--model", "x", "--base_url", "http://127.0.0.1:9/v1", "--eval_size", "1"])
    assert ended.value.code == 1
    assert capsys.readouterr().err.endswith(f"error: {fault}\n")


def test_agents_play_the_same_panel(model, tmp_path):
    rows = {
        agent: row(model, tmp_path, "--agent", agent, "--max_prompt_tokens", "100000")
        for agent in ("react", "reflexion", "expert", "random")
    }
    assert len({r["panel"]["hash"] for r in rows.values()}) == 1
    assert {len(r["episodes"]) for r in rows.values()} == {10}
    assert rows["reflexion"]["success_by_trial"] == [0.0] * 3
    assert rows["expert"]["model_hash"] is None
    assert rows["react"]["model_hash"] == rows["reflexion"]["model_hash"]


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (("--agent", "telepath"), "Valid: direct"),
        (("--agent", "react"), "needs --model"),
        (("--agent", "reflexion", "--trials", "0", "--model", "x"), "trials from 1"),
    ],
)
def test_wrong_agents_are_named_with_the_remedy(options, remedy, capsys):
    with pytest.raises(SystemExit):
        main([*options])
    assert remedy in capsys.readouterr().err


def test_episodes_are_written_for_scripts_show(model, tmp_path):
    row(model, tmp_path, "--trajectories", str(tmp_path / "played"))
    files = sorted((tmp_path / "played").iterdir())
    assert [file.name for file in files] == ["iteration-000001.jsonl", "iteration-000002.jsonl"]
    episodes = [json.loads(line) for line in files[0].read_text().splitlines()]
    assert len(episodes) == 5
    assert "task:" in episodes[0]["steps"][0]["prompt"]


@pytest.mark.parametrize(
    ("agent", "more"),
    [
        ("direct", ("--eval_temperature", "1.0", "--horizon", "3")),
        ("reflexion", ("--trials", "2", "--max_prompt_tokens", "100000")),
        ("random", ("--horizon", "12", "--reply_cache", "elsewhere")),
    ],
)
def test_an_evaluated_row_runs_again_and_gives_the_same_numbers(
    model, tmp_path, capfd, agent, more
):
    first = row(model, tmp_path, "--agent", agent, *more)
    file = f"{tmp_path / 'rows.jsonl'}:{agent}"
    assert compare(["--row", file, "--output_dir", str(tmp_path / "out")]) == 0
    assert "the same numbers again" in capfd.readouterr().out
    again = json.loads((tmp_path / "out" / "again" / agent / "result.json").read_text())
    assert {**again, "code": None} == {**first, "code": None}


def test_an_evaluated_row_that_was_made_by_other_numbers_is_said_to_differ(model, tmp_path, capfd):
    first = row(model, tmp_path, "--agent", "random", "--horizon", "12")
    other = [{**e, "steps": e["steps"] + 1} for e in first["episodes"]]
    file = tmp_path / "result.json"
    file.write_text(json.dumps({**first, "episodes": other}))
    assert compare(["--row", str(file), "--output_dir", str(tmp_path / "out")]) == 1
    assert "random differs in episodes" in capfd.readouterr().out


def test_an_evaluated_row_whose_weights_are_gone_is_refused(model, tmp_path, capsys):
    moved = tmp_path / "moved"
    shutil.copytree(model, moved)
    row(moved, tmp_path)
    shutil.rmtree(moved)
    with pytest.raises(SystemExit) as ended:
        compare(["--row", str(tmp_path / "rows.jsonl"), "--output_dir", str(tmp_path / "out")])
    assert ended.value.code == 2
    assert f"{moved} (weights" in capsys.readouterr().err


def test_a_row_of_an_endpoint_runs_again_for_free(tmp_path, capfd):
    server = FakeEndpoint()
    try:
        kept = ("--reply_cache", str(tmp_path / "replies"), "--prices", "1", "2")
        first = row("some-model", tmp_path, "--base_url", server.url, "--agent", "react", *kept)
        asked = len(server.bodies)
        file = f"{tmp_path / 'rows.jsonl'}:react"
        assert compare(["--row", file, "--output_dir", str(tmp_path / "out")]) == 0
    finally:
        server.close()
    assert "the same numbers again" in capfd.readouterr().out
    assert len(server.bodies) == asked == 20  # 5 tasks, 2 seeds, 2 steps
    again = json.loads((tmp_path / "out" / "again" / "react" / "result.json").read_text())
    costs = [sum(e["cost"] for e in r["episodes"]) for r in (first, again)]
    assert costs[0] > costs[1] == 0
