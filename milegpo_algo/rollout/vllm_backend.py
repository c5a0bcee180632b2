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

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, cast

import torch
from accelerate import Accelerator

from milegpo_algo.rollout.generator import Image, Sample
from milegpo_algo.rollout.ranks import Alone, Ranks, TensorParallel, World
from milegpo_algo.rollout.vllm_requests import (
    LLM,
    Client,
    Row,
    Sampling,
    ask_engine,
    ask_server,
)


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
            return ask_server(self.generation.vllm_client, rows, sampling)
        return ask_engine(self.generation.llm, rows, sampling)

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
