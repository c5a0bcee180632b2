"""Episodes of all processes: the policy plays each iteration's tasks, and evaluation's."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import cast

from accelerate.utils import gather_object
from tqdm.auto import tqdm  # type: ignore[import-untyped]  # no stubs among our dependencies
from transformers import PreTrainedModel
from trl.models.utils import unwrap_model_for_generation

from milegpo_algo.rollout.collect import Episode, Pool, assign, check_some_ran, play
from milegpo_algo.rollout.generator import Codec, Generator, Sample
from milegpo_algo.rollout.metrics import TimedCodec, TimedGenerator, TimedPool
from milegpo_algo.rollout.probe import check_follows, last_trainable, probe
from milegpo_algo.rollout.schedule import TaskSchedule
from milegpo_algo.rollout.vision import generator_of
from milegpo_algo.rollout.vllm_backend import VLLMEngine
from milegpo_algo.rollout.vllm_requests import Sampling
from milegpo_algo.trainer.clock import Clock


class Playing(Clock):
    """Plays.

    Attributes:
        played: every episode of the latest rollout, those of replaced groups included.
    """

    pool: Pool
    codec: Codec
    schedule: TaskSchedule
    prompt_budget: int
    engine: VLLMEngine | None
    played: list[Episode]
    _engine_checked = False

    def _rollout(self, iteration: int) -> list[Episode]:
        """Episodes of all processes that are trained on, in the order of the schedule.

        With `dynamic_sampling_rounds` above 1, groups with equal returns are replaced by fresh
        tasks' (dynamic sampling of DAPO, arXiv:2503.14476), but not in the last round.
        """
        rounds, size = self.args.dynamic_sampling_rounds, self.num_generations
        if rounds == 1:
            self.played = self._round(assign(self.schedule.tasks(iteration), size), iteration)
            return self.played
        tasks: list[str] = []
        kept: list[Episode] = []
        self.played = []
        for number in range(1, rounds + 1):
            missing = self.args.tasks_per_iteration - len(kept) // size
            tasks += self.schedule.take(self.progress.position, missing)
            self.progress = replace(self.progress, position=self.progress.position + missing)
            # numbered over all rounds, so that a task that comes again has other rollouts
            fresh = self._round(assign(tasks, size)[len(self.played) :], iteration)
            self.played += fresh
            groups = [fresh[at : at + size] for at in range(0, len(fresh), size)]
            last = number == rounds
            kept += [e for group in groups if last or not degenerate(group) for e in group]
            if len(kept) == self.args.tasks_per_iteration * size:
                break
        self._log_metrics(
            {
                "dynamic/rounds": number,
                "dynamic/replaced_groups": (len(self.played) - len(kept)) / size,
            }
        )
        return kept

    def _round(self, assignments: Sequence[tuple[str, int]], iteration: int) -> list[Episode]:
        with self.watch.phase("rollout"):
            return self._play(
                self.pool,
                assignments,
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
        with (
            self._generator(temperature) as generator,
            self._progress(title, len(mine)) as on_progress,
        ):
            episodes = play(
                TimedPool(pool, self.watch),
                TimedGenerator(generator, self.watch),
                TimedCodec(self.codec, self.watch),
                mine,
                max_prompt_tokens=self.prompt_budget,
                seed=seed,
                iteration=iteration,
                halves=self.args.rollout_halves,
                on_progress=on_progress,
            )
        if world > 1:
            episodes = cast(list[Episode], gather_object(episodes))
        check_some_ran(episodes)
        return episodes

    @contextlib.contextmanager
    def _generator(self, temperature: float) -> Iterator[Generator]:
        """The policy as it is now, to sample from; every process enters and leaves together."""
        if self.engine is not None:
            if not self._engine_checked:
                self._check_engine(self.engine)
            with self.engine.rollout(
                int(self.state.global_step), self._sampling(temperature, self.max_completion_length)
            ) as generator:
                yield generator
            return
        with self._policy() as policy:
            yield generator_of(
                policy,
                self.vision,
                end_ids=self.eos_token_ids,
                max_new_tokens=self.max_completion_length,
                temperature=temperature,
                max_rows=self.args.generation_rows,
            )

    def _sampling(self, temperature: float, longest: int) -> Sampling:
        return Sampling(
            end_ids=self.eos_token_ids,
            max_new_tokens=longest,
            temperature=temperature,
            seeded=self.args.vllm_seeded,
            never=() if self.vision is None else self.vision.never_sampled,
        )

    def _check_engine(self, engine: VLLMEngine) -> None:
        """Once, before the first rollout: room for the longest row, and weights that arrive."""
        self._engine_checked = True
        engine.check_room(self.prompt_budget + self.max_completion_length)
        if self._sharded:
            return  # weights in parts cannot be disturbed here
        version = itertools.count(-1, -1)
        prompt = self.codec.encode([{"role": "user", "content": "Where am I?"}])

        def look() -> list[Sample]:
            with engine.rollout(next(version), self._sampling(0.0, 1)) as generator:
                return probe(generator, [prompt])

        check_follows(look, last_trainable(self.accelerator.unwrap_model(self.model)))

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


def degenerate(group: Sequence[Episode]) -> bool:
    """Whether all rollouts of a group have the same return, so that none is better."""
    return len({sum(step.reward for step in episode.steps) for episode in group}) == 1
