"""Chat models behind an OpenAI-compatible endpoint, for evaluation: text in, text out.

Any server of `POST {base_url}/chat/completions` will do: OpenAI and its kin, vLLM, llama.cpp.
Requests run side by side, wait for a rate limit, are tried again after faults that pass, stay
within a budget, and are never asked twice where a cache folder is given: replies are named by the
whole question, the row's key included, so that a second run costs nothing and gives the same.

Leaves out: streaming, tools, log-probs, images. Reasoning that comes beside the content is counted
by the endpoint and dropped.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from milegpo_algo.rollout.completions import (
    Completion,
    EndpointError,
    completion_of,
    seconds_to_wait,
)
from milegpo_algo.rollout.generator import ChatReply, FinishReason, Messages, Usage
from milegpo_algo.rollout.reply_cache import Json, ReplyCache, content_name
from milegpo_algo.rollout.spending import Budget, Ledger, Prices, Spent

try:
    import httpx
except ImportError as error:
    raise ImportError(
        "An endpoint needs the package httpx. Install it: pip install 'milegpo[openai]'"
    ) from error

_PASSING = frozenset([408, 409, 425, 429, 500, 502, 503, 504, 529])
_LONGEST_WAIT = 60.0
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Endpoint:
    """A model behind an endpoint and how it is asked.

    Attributes:
        base_url: up to and including the version, such as `https://api.openai.com/v1`.
        model: as the endpoint names it.
        key_variable: environment variable that holds the key; None sends none.
        temperature: of sampling; None leaves it out, for models that take none.
        max_tokens: longest reply.
        max_tokens_field: its name; older servers know `max_tokens`.
        send_seed: whether to send the row's key as a seed, for servers that take one.
        extra: further fields of every request, such as `{"reasoning_effort": "low"}`.
        concurrency: requests at once.
        requests_per_minute: rate limit; None is none.
        timeout: seconds a request may take.
        retries: times a request is tried again after a fault that passes.
        backoff: seconds before the first retry, doubled for each further one up to a minute; the
            endpoint's own `Retry-After` goes first.
        prices: of tokens.
        budget: of the generator's life.
    """

    base_url: str
    model: str
    key_variable: str | None = "OPENAI_API_KEY"
    temperature: float | None = 0.4
    max_tokens: int = 512
    max_tokens_field: str = "max_completion_tokens"
    send_seed: bool = False
    extra: Mapping[str, Json] = field(default_factory=dict)
    concurrency: int = 8
    requests_per_minute: float | None = None
    timeout: float = 120.0
    retries: int = 6
    backoff: float = 1.0
    prices: Prices = field(default_factory=Prices)
    budget: Budget = field(default_factory=Budget)


class OpenAIChat:
    """A `ChatGenerator` that asks an endpoint.

    Args:
        endpoint: the model and how it is asked.
        cache: folder of replies; None asks every time.
        sleep: waits some seconds.

    Raises:
        EndpointError: the key is missing.
        ValueError: the address is none.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        cache: Path | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        _check_address(endpoint.base_url)
        self.endpoint = endpoint
        self.cache = None if cache is None else ReplyCache(cache)
        self.ledger = Ledger(endpoint.prices, endpoint.budget)
        self._sleep = sleep
        self._turnstile = _Turnstile(endpoint.requests_per_minute, sleep)
        self._client = httpx.Client(
            headers=_headers(endpoint),
            timeout=endpoint.timeout,
            limits=httpx.Limits(max_connections=endpoint.concurrency),
        )
        weakref.finalize(self, self._client.close)

    @property
    def spent(self) -> Spent:
        """Requests, tokens and cost so far."""
        return self.ledger.spent

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def chat(self, conversations: Sequence[Messages], keys: Sequence[int]) -> list[ChatReply]:
        """Answer each conversation; equal questions of equal keys are asked once.

        At temperature 0 keys do not count, and equal questions are one.

        Raises:
            EndpointError: the endpoint refused, or kept failing.
            BudgetSpent: the next request might exceed the budget. Replies so far are in the cache.
        """
        bodies = [self._body(m, key) for m, key in zip(conversations, keys, strict=True)]
        names = [
            content_name({"url": self.endpoint.base_url, "key": self._varies(key), "body": body})
            for body, key in zip(bodies, keys, strict=True)
        ]
        distinct = dict(zip(names, bodies, strict=True))
        with ThreadPoolExecutor(max_workers=self.endpoint.concurrency) as executor:
            futures = {n: executor.submit(self._reply, n, body) for n, body in distinct.items()}
            try:
                return [futures[name].result() for name in names]
            finally:  # after a failure, those that wait are not sent
                for future in futures.values():
                    future.cancel()

    def _varies(self, key: int) -> int | None:
        return None if self.endpoint.temperature == 0 else key

    def _body(self, messages: Messages, key: int) -> dict[str, Json]:
        asked = self.endpoint
        body: dict[str, Json] = {
            "model": asked.model,
            "messages": [dict(message) for message in messages],
            asked.max_tokens_field: asked.max_tokens,
            **asked.extra,
        }
        if asked.temperature is not None:
            body["temperature"] = asked.temperature
        if asked.send_seed:
            body["seed"] = key >> 33  # servers differ in what they take; 31 bits fit all
        return body

    def _reply(self, name: str, body: Mapping[str, Json]) -> ChatReply:
        known = None if self.cache is None else self.cache.get(name)
        if known is not None:
            self.ledger.book_cached()
            return ChatReply(
                text=cast(str, known["text"]),
                finish_reason=cast(FinishReason, known["finish_reason"]),
                usage=Usage(
                    cast(int, known["prompt_tokens"]),
                    cast(int, known["completion_tokens"]),
                    cached=True,
                ),
            )
        # A token is at least a byte, but for those that the chat template adds.
        most = len(json.dumps(body["messages"], ensure_ascii=False).encode()) + 64
        with self.ledger.setting_aside(most, self.endpoint.max_tokens):
            reply = self._booked(completion_of(self._ask(body)))
        if self.cache is not None:
            self.cache.put(
                name,
                {
                    "text": reply.text,
                    "finish_reason": reply.finish_reason,
                    "prompt_tokens": reply.usage.prompt_tokens,
                    "completion_tokens": reply.usage.completion_tokens,
                    "question": body,
                },
            )
        return reply

    def _ask(self, body: Mapping[str, Json]) -> Json:
        """Post a request until it is answered, refused, or out of tries; log every further try."""
        url = f"{self.endpoint.base_url.rstrip('/')}/chat/completions"
        for attempt in range(self.endpoint.retries + 1):
            self._turnstile.enter()
            wait = min(self.endpoint.backoff * 2**attempt, _LONGEST_WAIT)
            try:
                response = self._client.post(url, json=body)
            except httpx.RequestError as error:  # time-outs, lost connections, garbled answers
                fault = f"{type(error).__name__}: {error}"
            else:
                if response.status_code == 200:
                    return _json(response)
                fault = f"{response.status_code}: {_problem(response)}"
                if response.status_code not in _PASSING or "insufficient_quota" in response.text:
                    raise EndpointError(_refusal(self.endpoint, response.status_code, fault))
                wait = seconds_to_wait(response.headers, wait, _LONGEST_WAIT)
            if attempt < self.endpoint.retries:
                left = f"try {attempt + 2} of {self.endpoint.retries + 1} in {wait:g} s"
                _LOG.warning("%s: %s; %s", url, fault, left)
                self._sleep(wait)
        raise EndpointError(
            f"{url} failed {self.endpoint.retries + 1} times, lastly with {fault}. "
            "See that it runs and that the address is right; if it is only busy, lower "
            "concurrency or requests_per_minute, or raise retries or timeout."
        )

    def _booked(self, completion: Completion) -> ChatReply:
        if completion.tokens is None and self.endpoint.budget != Budget():
            raise EndpointError("The endpoint counts no tokens, so a budget cannot be kept.")
        return ChatReply(
            text=completion.text,
            finish_reason=completion.finish_reason,
            usage=self.ledger.book(*(completion.tokens or (0, 0))),
        )


class _Turnstile:
    """Lets requests through at a rate, evenly spaced."""

    def __init__(self, per_minute: float | None, sleep: Callable[[float], None]) -> None:
        self._gap = 0.0 if per_minute is None else 60.0 / per_minute
        self._sleep = sleep
        self._lock = threading.Lock()
        self._next = time.monotonic()

    def enter(self) -> None:
        """Wait for one's turn."""
        if self._gap == 0.0:
            return
        with self._lock:
            now = time.monotonic()
            mine = max(now, self._next)
            self._next = mine + self._gap
        if mine > now:
            self._sleep(mine - now)


def _check_address(base_url: str) -> None:
    try:
        host = httpx.URL(base_url).host
    except httpx.InvalidURL as error:
        raise ValueError(f"base_url={base_url!r}: {error}.") from error
    if not host:
        raise ValueError(f"base_url={base_url!r} names no host, as http://127.0.0.1:8000/v1 does.")


def _headers(endpoint: Endpoint) -> dict[str, str]:
    if endpoint.key_variable is None:
        return {}
    key = os.environ.get(endpoint.key_variable)
    if not key:
        raise EndpointError(
            f"No key in the environment variable {endpoint.key_variable}. Set it, or key_variable "
            "to None for an endpoint without keys."
        )
    return {"Authorization": f"Bearer {key}"}


def _json(response: httpx.Response) -> Json:
    try:
        return cast(Json, response.json())
    except ValueError as error:  # neither JSON nor, perhaps, UTF-8
        raise EndpointError(f"{response.url} answered no JSON: {response.text[:500]}") from error


def _problem(response: httpx.Response) -> str:
    """The endpoint's own words, on one line."""
    try:
        text = str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        text = response.text
    return " ".join(text.split())[:500]


def _refusal(endpoint: Endpoint, status: int, fault: str) -> str:
    remedies = {
        400: "Check temperature, max_tokens_field and extra; a prompt may be too long for the "
        "model: lower max_prompt_characters.",
        401: f"Check the key in {endpoint.key_variable}.",
        403: f"The key in {endpoint.key_variable} may not use this model.",
        404: f"Check base_url ({endpoint.base_url}) and model ({endpoint.model}).",
        429: "The account's quota is used up.",
    }
    return f"The endpoint refused with {fault}. {remedies.get(status, '')}".rstrip()
