"""What TRL imports of vLLM 0.31, for machines without a GPU: the engine is a transformers model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

__version__ = "0.31.0"


class RequestOutput: ...


class SamplingParams:
    def __init__(self, **settings: object) -> None:
        self.__dict__.update(settings)


@dataclass
class LLM:
    """A colocated engine: its own copy of the model, asleep and awake, loaded by name."""

    settings: dict[str, object] = field(default_factory=dict)

    def __init__(self, **settings: object) -> None:
        from tests.milegpo_algo.rollout.fake_vllm import Engine

        self.settings, self.log = settings, []
        self.engine = Engine.load(settings["model"])
        runner = SimpleNamespace(model=self)
        worker = SimpleNamespace(model_runner=runner)
        self.llm_engine = SimpleNamespace(
            model_executor=SimpleNamespace(driver_worker=worker),
            model_config=SimpleNamespace(max_model_len=settings["max_model_len"]),
        )

    def load_weights(self, weights: Sequence[tuple[str, object]]) -> None:
        assert "sleep" not in self.log[-1:], "weights written to freed memory"
        self.log.append("weights")
        for name, value in weights:
            self.engine.load_weight(name, value)

    def generate(self, prompts, sampling_params, use_tqdm):
        self.log.append("generate")
        replies = [
            self.engine.reply(
                prompt["prompt_token_ids"],
                max_tokens=own.max_tokens,
                temperature=own.temperature,
                end_ids=own.stop_token_ids,
                seed=own.seed,
            )
            for prompt, own in zip(prompts, sampling_params, strict=True)
        ]
        return [
            SimpleNamespace(
                outputs=[
                    SimpleNamespace(
                        token_ids=ids,
                        logprobs=[
                            {token: SimpleNamespace(logprob=value, rank=1)}
                            for token, value in zip(ids, values, strict=True)
                        ],
                    )
                ]
            )
            for ids, values in replies
        ]

    def wake_up(self, tags):
        self.log.append(f"wake {tags[0]}")

    def sleep(self, level):
        self.log.append("sleep")
        self.engine.forget()

    def reset_prefix_cache(self):
        self.log.append("reset")
