"""What is asked of vLLM, colocated or behind TRL's client, and how its answers are read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, cast

from milegpo_algo.rollout.generator import Image, Sample

_SIDE_BY_SIDE = 64  # requests at once; as many connections as TRL's client keeps

Row = tuple[Sequence[int], int, Sequence[Image]]
"""A prompt, its key and its images."""


class Logprob(Protocol):
    """vLLM's log-prob of one token."""

    logprob: float


class Completion(Protocol):
    """vLLM's reply to one prompt."""

    token_ids: Sequence[int]
    logprobs: Sequence[Mapping[int, Logprob]] | None


class Answer(Protocol):
    """vLLM's replies to one prompt, of which there is one here."""

    outputs: Sequence[Completion]


class LLM(Protocol):
    """A colocated engine."""

    def generate(
        self, prompts: Sequence[object], sampling_params: Sequence[object], use_tqdm: bool
    ) -> Sequence[Answer]:
        """Answer the prompts in their order."""
        ...

    def wake_up(self, tags: list[str]) -> None:
        """Allocate what was given back in sleep."""
        ...

    def sleep(self, level: int) -> None:
        """Give back memory; at level 2 the weights too."""
        ...


class Client(Protocol):
    """TRL's client of a server."""

    def generate(self, prompts: list[list[int]], **sampling: object) -> dict[str, list[object]]:
        """Answer the prompts in their order."""
        ...

    def get_server_info(self) -> dict[str, dict[str, object]]:
        """Return the server's configuration."""
        ...


@dataclass(frozen=True)
class Sampling:
    """How replies are sampled.

    Attributes:
        end_ids: ids that end a reply; the one sampled is kept as the reply's last id.
        max_new_tokens: longest reply.
        temperature: divides the logits; 0 takes the most likely token.
        seeded: whether each row draws from its own random numbers.
        never: ids that are not sampled, such as those that stand for images.
    """

    end_ids: Sequence[int]
    max_new_tokens: int
    temperature: float = 1.0
    seeded: bool = True
    never: Sequence[int] = ()

    def settings(self) -> dict[str, object]:
        """Arguments of vLLM's SamplingParams for the whole distribution."""
        bias = {"logit_bias": dict.fromkeys(self.never, -100.0)} if self.never else {}
        return {
            **bias,
            "n": 1,
            "temperature": self.temperature,
            "top_p": 1.0,
            "top_k": 0,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "max_tokens": self.max_new_tokens,
            "logprobs": 0,
        }

    def sample(self, token_ids: Sequence[int], logprobs: Sequence[float] | None) -> Sample:
        """Write down a reply."""
        ended = bool(token_ids) and token_ids[-1] in self.end_ids
        return Sample(
            token_ids=tuple(token_ids),
            logprobs=None if logprobs is None else tuple(logprobs),
            finish_reason="stop" if ended else "length",
        )


def _seed(key: int) -> int:
    """A seed as vLLM's server takes it: 63 bits."""
    return key >> 1


def ask_engine(llm: LLM, rows: Sequence[Row], sampling: Sampling) -> list[Sample]:
    """Samples of a colocated engine, one a row."""
    from vllm import SamplingParams  # type: ignore[import-not-found,unused-ignore]  # CUDA only

    answers = llm.generate(
        [_prompt(prompt, images) for prompt, _, images in rows],
        sampling_params=[
            SamplingParams(
                **sampling.settings(),
                stop_token_ids=list(sampling.end_ids),
                seed=_seed(key) if sampling.seeded else None,
            )
            for _, key, _ in rows
        ],
        use_tqdm=False,
    )
    samples = []
    for answer in answers:
        [reply] = answer.outputs
        logprobs = None
        if reply.logprobs is not None:
            logprobs = [
                known[token].logprob if token in known else math.nan
                for token, known in zip(reply.token_ids, reply.logprobs, strict=True)
            ]
        samples.append(sampling.sample(reply.token_ids, logprobs))
    return samples


def _prompt(ids: Sequence[int], images: Sequence[Image]) -> dict[str, object]:
    """A prompt as vLLM takes it: ids with the places of images, and these."""
    if not images:
        return {"prompt_token_ids": list(ids)}
    from PIL.Image import fromarray  # a vision-language model's processor needs it too

    shown = [fromarray(image) for image in images]
    return {"prompt_token_ids": list(ids), "multi_modal_data": {"image": shown}}


def ask_server(client: Client, rows: Sequence[Row], sampling: Sampling) -> list[Sample]:
    """Samples of a server: a request a row, side by side, or one request where none is seeded."""
    ends = {"stop_token_ids": list(sampling.end_ids)}
    if not sampling.seeded:
        prompts = [list(prompt) for prompt, _, _ in rows]
        return _samples(
            client.generate(prompts, generation_kwargs=ends, **sampling.settings()), sampling
        )

    def ask(row: Row) -> Sample:
        prompt, key, _ = row
        own = {**ends, "seed": _seed(key)}
        [sample] = _samples(
            client.generate([list(prompt)], generation_kwargs=own, **sampling.settings()), sampling
        )
        return sample

    with ThreadPoolExecutor(max_workers=min(_SIDE_BY_SIDE, len(rows))) as executor:
        return list(executor.map(ask, rows))


def _samples(answer: Mapping[str, object], sampling: Sampling) -> list[Sample]:
    """Read what TRL's client returns: candidates for each token, the sampled one among them."""
    replies = cast(list[list[int]], answer["completion_ids"])
    values = cast(list[list[list[float | None]]] | None, answer["logprobs"])
    names = cast(list[list[list[int]]] | None, answer["logprob_token_ids"])
    if values is None or names is None:
        return [sampling.sample(token_ids, None) for token_ids in replies]
    return [
        sampling.sample(
            token_ids,
            [
                _known(dict(zip(candidates, logprobs, strict=True)).get(token))
                for token, candidates, logprobs in zip(token_ids, ids, row, strict=True)
            ],
        )
        for token_ids, row, ids in zip(replies, values, names, strict=True)
    ]


def _known(logprob: float | None) -> float:
    return math.nan if logprob is None else logprob
