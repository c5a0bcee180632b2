"""vLLM backend: TRL's engine or server, its weights and its client, asked a row at a time.

TRL builds the engine (colocated, or a client of `vllm serve`) and streams weights to it. Three
things are done here instead, for rollouts of many short generate calls:

- weights are sent once per version of the policy, and an engine that sleeps between iterations is
  woken once per rollout, not at every call;
- rows of several processes are told apart by process, not by position times length, and a process
  whose episodes are over keeps taking part until all are;
- every row has a seed of its own, made from its key. A server takes one seed a request, so rows are
  then sent one by one, side by side; `seeded=False` sends one request, and replies depend on the
  batch.

Log-probs are those of the sampled ids after temperature. One that the engine does not know is NaN.
A colocated engine takes images too. Leaves out: images for a server, guided decoding, top-p and
top-k.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, cast

import torch
from accelerate import Accelerator

from milegpo_algo.rollout.generator import Image, Sample
from milegpo_algo.rollout.ranks import Alone, Ranks, TensorParallel, World

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


class Generation(Protocol):
    """What is used of `trl.generation.vllm_generation.VLLMGeneration`.

    `llm` exists when colocated, `vllm_client` on the main process of server mode, `tp_group` when
    colocated on several GPUs an engine.
    """

    mode: str
    enable_sleep_mode: bool
    tensor_parallel_size: int
    accelerator: Accelerator
    llm: LLM
    vllm_client: Client
    tp_group: torch.distributed.ProcessGroup
    _llm_weights_sleeping: bool

    def sync_weights(self) -> None:
        """Send the policy's weights, adapters merged."""
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


class VLLMEngine:
    """A vLLM engine that follows a policy.

    Args:
        generation: TRL's; `GRPOTrainer` makes one as its `vllm_generation`.
        ranks: the processes that share the engine; found from `generation` if None.
    """

    def __init__(self, generation: Generation, ranks: Ranks | None = None) -> None:
        self.generation = generation
        self.ranks = _ranks(generation) if ranks is None else ranks
        self.version: int | None = None

    @contextmanager
    def rollout(self, version: int, sampling: Sampling) -> Iterator[VLLMGenerator]:
        """Keep the engine awake, with the policy's weights, for a rollout.

        Every process enters and leaves together. One that leaves early goes on answering for the
        others until all leave.

        Args:
            version: names the policy's weights, such as the number of the iteration. They are sent
                when it changes, or when the engine lost them in its sleep.
            sampling: of the replies.
        """
        self._wake(version)
        try:
            generator = VLLMGenerator(self, sampling)
            yield generator
            generator.wait_for_others()
        finally:
            self._sleep()

    def check_room(self, tokens: int) -> None:
        """Refuse an engine whose context is shorter than the longest prompt and reply.

        Raises:
            ValueError: naming the settings to change.
        """
        room = self.ranks.agree(self._context)
        if tokens > room:
            raise ValueError(
                f"The vLLM engine holds {room} tokens, and the longest prompt and reply are "
                f"{tokens}. Lower max_prompt_tokens or max_completion_length, or raise the "
                "engine's limit: vllm_max_model_length when colocated, --max-model-len of a server."
            )

    def answer(self, rows: Sequence[Row], sampling: Sampling) -> list[Sample]:
        """Ask the engine, for all processes that share it."""
        if self.generation.mode == "server":
            return _ask_server(self.generation.vllm_client, rows, sampling)
        return _ask_engine(self.generation.llm, rows, sampling)

    @property
    def _sleeps(self) -> bool:
        return self.generation.mode == "colocate" and self.generation.enable_sleep_mode

    def _wake(self, version: int) -> None:
        if version != self.version or (self._sleeps and self.generation._llm_weights_sleeping):
            self.generation.sync_weights()  # wakes the weights
            self.version = version
        if self._sleeps:
            self.generation.llm.wake_up(tags=["kv_cache"])
        if self.generation.mode == "colocate" and self.generation.tensor_parallel_size > 1:
            # Pending collectives of the training step race with the engine's own otherwise.
            self.generation.accelerator.wait_for_everyone()

    def _sleep(self) -> None:
        if self._sleeps:
            self.generation.llm.sleep(level=2)
            self.generation._llm_weights_sleeping = True

    def _context(self) -> int:
        if self.generation.mode == "server":
            info = self.generation.vllm_client.get_server_info()
            return cast(int, info["model_config"]["max_model_len"])
        llm = cast(_WithConfig, self.generation.llm)
        return llm.llm_engine.model_config.max_model_len


@dataclass(frozen=True)
class VLLMGenerator:
    """Samples from an engine during one rollout; see `VLLMEngine.rollout`."""

    engine: VLLMEngine
    sampling: Sampling

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        keys: Sequence[int],
        images: Sequence[Sequence[Image]] = (),
    ) -> list[Sample]:
        """Sample one reply per prompt; all processes that share the engine call it together."""
        if any(len(prompt) == 0 for prompt in prompts):
            raise ValueError("An empty prompt: a model needs at least one token to continue.")
        if any(images) and self.engine.generation.mode == "server":
            raise ValueError(
                "Images are not sent to a vLLM server: set vllm_mode='colocate', or use_vllm=False."
            )
        shown = images or [()] * len(prompts)
        return self._together(list(zip(prompts, keys, shown, strict=True)))[0]

    def wait_for_others(self) -> None:
        """Take part in the other processes' calls until none has rows."""
        while self._together([])[1]:
            pass

    def _together(self, mine: list[Row]) -> tuple[list[Sample], bool]:
        """This process's samples, and whether any process had rows."""
        ranks = self.engine.ranks
        asked = ranks.gather(mine)
        rows = [row for part in asked for row in part]
        if not rows:
            return [], False
        samples = ranks.agree(lambda: self.engine.answer(rows, self.sampling))
        first = sum(len(part) for part in asked[: ranks.index])
        return samples[first : first + len(mine)], True


class _ModelConfig(Protocol):
    max_model_len: int


class _Inner(Protocol):
    model_config: _ModelConfig


class _WithConfig(Protocol):
    llm_engine: _Inner


def _ranks(generation: Generation) -> Ranks:
    if generation.mode == "server":
        return World(generation.accelerator)
    if generation.tensor_parallel_size > 1:
        return TensorParallel(generation.tp_group, generation.tensor_parallel_size)
    return Alone()


def _seed(key: int) -> int:
    """A seed as vLLM's server takes it: 63 bits."""
    return key >> 1


def _ask_engine(llm: LLM, rows: Sequence[Row], sampling: Sampling) -> list[Sample]:
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


def _ask_server(client: Client, rows: Sequence[Row], sampling: Sampling) -> list[Sample]:
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
