"""Episodes of all processes: the policy plays each iteration's tasks, and evaluation's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import cast

from accelerate.utils import gather_object
from tqdm.auto import tqdm  # type: ignore[import-untyped]  # no stubs among our dependencies
from transformers import PreTrainedModel
from trl.models.utils import unwrap_model_for_generation

from milegpo_algo.rollout.collect import Episode, Pool, assign, play
from milegpo_algo.rollout.hf_backend import ChatCodec, HFGenerator
from milegpo_algo.rollout.metrics import TimedCodec, TimedGenerator, TimedPool
from milegpo_algo.rollout.schedule import TaskSchedule
from milegpo_algo.trainer.clock import Clock


class Sampling(Clock):
    """Plays."""

    pool: Pool
    codec: ChatCodec
    schedule: TaskSchedule

    def _rollout(self, iteration: int) -> list[Episode]:
        """Episodes of all processes, in the order of the schedule."""
        with self.watch.phase("rollout"):
            return self._play(
                self.pool,
                assign(self.schedule.tasks(iteration), self.num_generations),
                temperature=self.temperature,
                seed=self.args.seed,
                iteration=iteration,
                title="rollout",
            )

    def _play(
        self,
        pool: Pool,
        assignments: Sequence[tuple[str, int]],
        *,
        temperature: float,
        seed: int,
        iteration: int,
        title: str,
    ) -> list[Episode]:
        world, rank = self.accelerator.num_processes, self.accelerator.process_index
        cuts = [round(i * len(assignments) / world) for i in range(world + 1)]
        mine = assignments[cuts[rank] : cuts[rank + 1]]
        with self._policy() as policy, self._progress(title, len(mine)) as on_progress:
            generator = HFGenerator(
                policy,
                end_ids=self.eos_token_ids,
                max_new_tokens=self.max_completion_length,
                temperature=temperature,
                max_rows=self.args.generation_rows,
            )
            episodes = play(
                TimedPool(pool, self.watch),
                TimedGenerator(generator, self.watch),
                TimedCodec(self.codec, self.watch),
                mine,
                max_prompt_tokens=self.args.max_prompt_tokens,
                seed=seed,
                iteration=iteration,
                on_progress=on_progress,
            )
        if world == 1:
            return episodes
        return cast(list[Episode], gather_object(episodes))

    @contextlib.contextmanager
    def _policy(self) -> Iterator[PreTrainedModel]:
        """The model as it is trained, unwrapped, whole and in the precision of training."""
        with (
            unwrap_model_for_generation(
                self.model_wrapped,
                self.accelerator,
                gather_deepspeed3_params=self.args.ds3_gather_for_generation,
                gradient_checkpointing_kwargs=self.args.gradient_checkpointing_kwargs,
            ) as policy,
            self._dist.summon_full_params(self.model_wrapped, recurse=False),
            self.accelerator.autocast(),
        ):
            yield policy

    @contextlib.contextmanager
    def _progress(self, title: str, total: int) -> Iterator[Callable[[int, int], None]]:
        """A bar of finished episodes that vanishes when done; none where nobody watches."""
        hidden = self.args.disable_tqdm or not self.accelerator.is_main_process
        with tqdm(
            total=total, desc=title, unit="episode", leave=False, disable=True if hidden else None
        ) as bar:
            yield lambda finished, _: bar.update(finished - bar.n)
