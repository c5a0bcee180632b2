"""The client against an endpoint of our own."""

from __future__ import annotations

import gc
import threading
from collections import Counter
from dataclasses import replace

import pytest

from milegpo_algo.rollout.collect import assign, play_policy
from milegpo_algo.rollout.completions import EndpointError
from milegpo_algo.rollout.generator import Usage
from milegpo_algo.rollout.openai_backend import Endpoint, OpenAIChat
from milegpo_algo.rollout.policy import ChatPolicy
from milegpo_algo.rollout.reply_cache import ReplyCache, content_name
from milegpo_algo.rollout.spending import Budget, BudgetSpent, Ledger, Prices, Spent
from tests.milegpo_algo.rollout.fake_endpoint import FakeEndpoint
from tests.milegpo_algo.rollout.fakes import CountingPool, user


@pytest.fixture
def server():
    server = FakeEndpoint()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")


def chat_of(server, cache=None, waits=None, **settings) -> OpenAIChat:
    endpoint = Endpoint(server.url, "tiny", **settings)
    return OpenAIChat(endpoint, cache, sleep=(waits if waits is not None else []).append)


def texts(replies) -> list[str]:
    return [reply.text for reply in replies]


def test_replies_come_in_the_order_of_the_conversations(server):
    chat = chat_of(server, concurrency=3)
    replies = chat.chat([user(f"n{i}") for i in range(10)], range(10))
    assert texts(replies) == [f"echo: n{i}" for i in range(10)]
    assert replies[0].usage == Usage(10, 2)
    assert server.most_at_once <= 3


def test_connections_are_closed_with_what_holds_them(server):
    chat = chat_of(server)
    chat.chat([user("hello")], [0])
    client = chat._client
    assert not client.is_closed
    del chat
    gc.collect()
    assert client.is_closed


def test_a_request_holds_what_was_set_and_the_key_from_its_variable(server):
    chat = chat_of(server, max_tokens=7, send_seed=True, extra={"reasoning_effort": "low"})
    chat.chat([user("hi")], [2**63])
    assert server.bodies == [
        {
            "model": "tiny",
            "messages": [{"role": "user", "content": "hi"}],
            "max_completion_tokens": 7,
            "temperature": 0.4,
            "seed": 2**30,
            "reasoning_effort": "low",
        }
    ]
    assert server.keys == ["Bearer secret"]


def test_what_an_endpoint_does_not_take_can_be_left_out(server):
    chat_of(server, temperature=None, key_variable=None, max_tokens_field="max_tokens").chat(
        [user("hi")], [0]
    )
    assert set(server.bodies[0]) == {"model", "messages", "max_tokens"}
    assert server.keys == [None]


def test_a_missing_key_is_named_before_anything_is_sent(server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(EndpointError, match="OPENAI_API_KEY"):
        chat_of(server)


def test_a_cut_reply_an_empty_one_and_a_filtered_one_are_replies(server):
    server.finish = "length"
    assert chat_of(server).chat([user("a")], [0])[0].finish_reason == "length"
    server.finish = "content_filter"
    server.answer = lambda _: {
        "choices": [{"message": {"content": None}, "finish_reason": "content_filter"}]
    }
    [reply] = chat_of(server).chat([user("a")], [0])
    assert (reply.text, reply.finish_reason) == ("", "stop")


# ---- faults --------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_fault_that_passes_is_waited_out_longer_each_time(server, status):
    server.faults = [(status, "later", {})] * 3
    waits: list[float] = []
    assert texts(chat_of(server, waits=waits).chat([user("a")], [0])) == ["echo: a"]
    assert waits == [1, 2, 4]


def test_the_endpoint_s_own_wait_goes_first(server):
    server.faults = [
        (429, "", {"Retry-After": "7"}),
        (429, "", {"Retry-After": "Wed, 21 Oct"}),
        (429, "", {"Retry-After": "9999"}),
        (429, "", {"Retry-After": "-5"}),
        (429, "", {"Retry-After": "nan"}),
    ]
    waits: list[float] = []
    chat_of(server, waits=waits).chat([user("a")], [0])
    assert waits == [7, 2, 60, 8, 16]


def test_every_further_try_is_said(server, caplog):
    server.faults = [(502, "<html>\nbad gateway</html>", {}), (429, "", {"Retry-After": "7"})]
    chat_of(server, retries=4).chat([user("a")], [0])
    assert [record.getMessage() for record in caplog.records] == [
        f"{server.url}/chat/completions: 502: <html> bad gateway</html>; try 2 of 5 in 1 s",
        f"{server.url}/chat/completions: 429: ; try 3 of 5 in 7 s",
    ]
    assert {record.levelname for record in caplog.records} == {"WARNING"}


def test_faults_that_do_not_pass_end_in_one_error_with_the_last_one(server):
    server.faults = [(503, '{"error": {"message": "overloaded"}}', {})] * 9
    with pytest.raises(EndpointError, match=r"failed 3 times, lastly with 503: overloaded"):
        chat_of(server, retries=2).chat([user("a")], [0])


@pytest.mark.parametrize(
    ("status", "text", "remedy"),
    [
        (400, "bad field", "max_tokens_field"),
        (401, "who?", "Check the key in OPENAI_API_KEY"),
        (403, "no", "may not use this model"),
        (404, "nothing here", r"Check base_url .* and model \(tiny\)"),
        (429, '{"error": {"message": "pay", "code": "insufficient_quota"}}', "quota is used up"),
    ],
)
def test_a_refusal_is_not_tried_again_and_says_what_to_change(server, status, text, remedy):
    server.faults = [(status, text, {})]
    with pytest.raises(EndpointError, match=remedy):
        chat_of(server).chat([user("a")], [0])
    assert len(server.bodies) == 1


def test_a_time_out_and_a_lost_endpoint_are_faults_that_pass(server):
    gate = threading.Event()
    first = iter([True])
    answer = server.answer
    server.answer = lambda body: (next(first, False) and gate.wait(5), answer(body))[1]
    waits: list[float] = []
    chat = chat_of(server, timeout=0.2, waits=waits)
    assert texts(chat.chat([user("a")], [0])) == ["echo: a"]
    assert waits == [1]
    gate.set()
    gone = OpenAIChat(Endpoint("http://127.0.0.1:9/v1", "x", retries=1), sleep=waits.append)
    with pytest.raises(EndpointError, match="ConnectError"):
        gone.chat([user("a")], [0])


@pytest.mark.parametrize("answer", [b"\xff\xfe oops", b"\x00"])
@pytest.mark.parametrize("status", [200, 400])
def test_answers_that_are_not_even_text_are_refused_in_words(server, answer, status):
    server.faults = [(status, answer, {})]
    with pytest.raises(EndpointError, match=r"answered no JSON|refused with 400"):
        chat_of(server).chat([user("a")], [0])


def test_an_answer_that_cannot_be_unpacked_is_a_fault_that_passes(server):
    server.faults = [(200, "not zipped", {"Content-Encoding": "gzip"})]
    assert texts(chat_of(server).chat([user("a")], [0])) == ["echo: a"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("half \ud800 a pair", "half ? a pair"),
        (
            [{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}, {"x": 1}],
            "in parts",
        ),
        (None, ""),
        ([], ""),
    ],
)
def test_a_reply_is_text_that_can_be_sent_again(server, content, said, tmp_path):
    server.answer = lambda body: {"choices": [{"message": {"content": content}}]}
    chat = chat_of(server, cache=tmp_path)
    [reply] = chat.chat([user("a")], [0])
    assert reply.text == said
    chat.chat([user(reply.text)], [0])
    assert server.bodies[-1]["messages"] == [{"role": "user", "content": said}]


@pytest.mark.parametrize("usage", [None, "many", {"prompt_tokens": None}, []])
def test_tokens_that_are_not_counted_are_none(server, usage):
    server.answer = lambda body: {"choices": [{"message": {"content": "a"}}], "usage": usage}
    assert chat_of(server).chat([user("a")], [0])[0].usage == Usage(0, 0)
    with pytest.raises(EndpointError, match="counts no tokens"):
        chat_of(server, budget=Budget(tokens=9999)).chat([user("a")], [0])


@pytest.mark.parametrize("address", ["http://host:port/v1", "http:///v1", ""])
def test_an_address_that_is_none_is_named_at_once(address):
    with pytest.raises(ValueError, match=f"base_url='{address}'"):
        OpenAIChat(Endpoint(address, "x"))


NO_COMPLETIONS = (
    *("<html>", '{"choices": []}', '{"error": "x"}', "[]", "null"),
    *('{"choices": [{"message": null}]}', '{"choices": [{"message": {"content": 5}}]}'),
)


@pytest.mark.parametrize("text", NO_COMPLETIONS)
def test_an_answer_that_is_no_completion_is_shown(server, text):
    server.faults = [(200, text, {})]
    with pytest.raises(EndpointError, match=r"no JSON|Not a chat completion"):
        chat_of(server).chat([user("a")], [0])


def test_after_a_refusal_what_waits_is_not_sent(server):
    server.faults = [(401, "", {})] * 50
    with pytest.raises(EndpointError):
        chat_of(server, concurrency=1).chat([user(str(i)) for i in range(50)], range(50))
    assert len(server.bodies) < 50


def test_requests_are_spaced_by_the_rate_limit(server):
    waits: list[float] = []
    chat = chat_of(server, waits=waits, requests_per_minute=0.6, concurrency=1)
    chat.chat([user(str(i)) for i in range(4)], range(4))
    # Nobody really waits here, so the third waits for two places ahead of it, and so on.
    assert [round(wait / 100) for wait in waits] == [1, 2, 3]


# ---- cache ---------------------------------------------------------------------------------------


def test_a_second_run_asks_nothing_and_costs_nothing(server, tmp_path):
    prices = Prices(prompt=2.0, completion=8.0)
    asked = [user("a"), user("b")]
    first = chat_of(server, tmp_path, prices=prices)
    replies = first.chat(asked, [1, 2])
    assert first.spent == Spent(2, 0, 20, 4, pytest.approx((20 * 2 + 4 * 8) / 1e6))
    second = chat_of(server, tmp_path, prices=prices)
    again = second.chat(asked, [1, 2])
    assert len(server.bodies) == 2
    assert second.spent == Spent(cached=2)
    assert [replace(r.usage, cost=0.0, cached=True) for r in replies] == [r.usage for r in again]
    assert texts(replies) == texts(again)


def test_keys_tell_equal_questions_apart_unless_the_model_is_greedy(server, tmp_path):
    chat_of(server, tmp_path).chat([user("a")] * 3, [1, 2, 2])
    assert len(server.bodies) == 2
    chat_of(server, tmp_path, temperature=0).chat([user("a")] * 3, [1, 2, 2])
    assert len(server.bodies) == 3


@pytest.mark.parametrize("change", [{"temperature": 0.5}, {"max_tokens": 9}, {"extra": {"x": 1}}])
def test_another_setting_is_another_question(server, tmp_path, change):
    chat_of(server, tmp_path).chat([user("a")], [1])
    chat_of(server, tmp_path, **change).chat([user("a")], [1])
    assert len(server.bodies) == 2


def test_replies_before_a_failure_are_kept(server, tmp_path):
    chat = chat_of(server, tmp_path, concurrency=1)
    chat.chat([user("a")], [0])
    server.faults = [(401, "", {})]
    with pytest.raises(EndpointError):
        chat.chat([user("a"), user("b")], [0, 1])
    assert texts(chat.chat([user("a")], [0])) == ["echo: a"]
    assert len(server.bodies) == 2


def test_a_file_that_broke_off_is_asked_anew(tmp_path):
    cache = ReplyCache(tmp_path)
    name = content_name({"a": 1, "b": [2]})
    assert name == content_name({"b": [2], "a": 1}) != content_name({"a": 1, "b": [3]})
    assert cache.get(name) is None
    cache.put(name, {"text": "ü"})
    assert cache.get(name) == {"text": "ü"}
    [file] = tmp_path.rglob("*.*")
    for broken in ("", '{"te', "3"):
        file.write_text(broken)
        assert cache.get(name) is None


# ---- budget --------------------------------------------------------------------------------------


def test_a_budget_is_never_exceeded_and_what_was_bought_is_kept(server, tmp_path):
    settings = {"max_tokens": 5, "prices": Prices(completion=1e6), "concurrency": 4}
    chat = chat_of(server, tmp_path, budget=Budget(cost=20.0), **settings)
    with pytest.raises(BudgetSpent, match=r"of 20.0; .* come from the cache"):
        chat.chat([user(str(i)) for i in range(30)], range(30))
    assert 0 < chat.spent.cost <= 20.0
    assert chat.spent.cost == 2.0 * len(server.bodies)  # "echo: 7" is two tokens
    richer = chat_of(server, tmp_path, budget=Budget(cost=100.0), **settings)
    assert len(richer.chat([user(str(i)) for i in range(30)], range(30))) == 30
    assert richer.spent.cached == len(server.bodies) - richer.spent.requests


def test_tokens_can_be_the_budget(server):
    chat = chat_of(server, budget=Budget(tokens=1000), concurrency=1, max_tokens=512)
    with pytest.raises(BudgetSpent, match="of 1000 tokens"):
        for i in range(99):
            chat.chat([user("a")], [i])
    assert 0 < chat.spent.prompt_tokens + chat.spent.completion_tokens <= 1000


def test_a_budget_needs_prices_and_counts(server):
    with pytest.raises(ValueError, match="needs prices"):
        Ledger(Prices(), Budget(cost=1.0))
    server.counts = False
    with pytest.raises(EndpointError, match="counts no tokens"):
        chat_of(server, budget=Budget(tokens=9999)).chat([user("a")], [0])
    assert chat_of(server).chat([user("a")], [0])[0].usage.prompt_tokens == 0


# ---- as a policy ---------------------------------------------------------------------------------


def test_a_text_model_plays_episodes_and_its_tokens_are_counted(server, tmp_path):
    server.content = "go"
    policy = ChatPolicy(chat_of(server, tmp_path))
    plan = assign(["wins@3", "loses@2"], 2)
    episodes = play_policy(CountingPool(4), policy, plan, seed=0)
    assert Counter(e.stop for e in episodes) == {"success": 2, "failure": 2}
    [*_, step] = episodes[0].steps
    assert (step.prompt_ids, step.completion_ids, step.logprobs) == ((), (), None)
    assert (step.reply, step.prompt_tokens, step.completion_tokens) == ("go", 10, 1)
    asked = len(server.bodies)
    again = play_policy(CountingPool(4), policy, plan, seed=0)
    assert len(server.bodies) == asked == 10
    assert [e.stop for e in again] == [e.stop for e in episodes]


def test_a_text_model_s_budget_is_in_characters(server):
    server.content = "go"
    policy = ChatPolicy(chat_of(server), max_prompt_characters=12)
    grows, bursts = play_policy(CountingPool(2), policy, [("grows@3", 0), ("bursts@9", 0)], seed=0)
    assert all(len(body["messages"][0]["content"]) <= 12 for body in server.bodies)
    assert (grows.stop, bursts.stop, len(bursts.steps)) == ("horizon", "context", 1)
