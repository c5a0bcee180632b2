"""vLLM without a GPU: a stub package for TRL to import and a server that speaks its protocol.

TRL's own code runs unchanged but for one place: its client refuses to form a weight-transfer group
on anything but CUDA. `installed()` puts both in place, for as long as it is open.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import torch
import trl.generation.vllm_client as trl_client
import trl.generation.vllm_generation as trl_generation
from transformers import PreTrainedModel, Qwen2ForCausalLM

from milegpo_algo.rollout.hf_backend import HFGenerator

STUBS = Path(__file__).parent / "stubs"


@contextmanager
def installed() -> Iterator[None]:
    """Let TRL find the stub package; afterwards it is gone again, with what TRL sets for vLLM."""
    environment = dict(os.environ)  # a colocated engine's RANK would make later runs distributed
    sys.path.insert(0, str(STUBS))
    try:
        importlib.reload(trl_client)
        importlib.reload(trl_generation)
        trl_client.VLLMClient.init_communicator = _init_communicator
        yield
    finally:
        os.environ.clear()
        os.environ.update(environment)
        sys.path.remove(str(STUBS))
        for name in [name for name in sys.modules if name.split(".")[0] == "vllm"]:
            del sys.modules[name]
        importlib.invalidate_caches()
        importlib.reload(trl_client)
        importlib.reload(trl_generation)


def _init_communicator(self: trl_client.VLLMClient, device: object = 0) -> None:
    """TRL's handshake without CUDA."""
    assert self.get_server_info()["weight_transfer_config"] is not None
    info = {
        "master_address": trl_client.get_ip(),
        "master_port": self.group_port,
        "rank_offset": 1,
        "world_size": self.get_world_size() + 1,
        "packed": True,
    }
    self._post(f"{self.base_url}/init_weight_transfer_engine", json={"init_info": info})
    self.communicator = trl_client.open_trainer_endpoint(info)


@dataclass
class Engine:
    """A model of the engine's own."""

    model: PreTrainedModel
    lock: threading.Lock = field(default_factory=threading.Lock)
    unseeded: int = 0

    @classmethod
    def load(cls, folder: str) -> Engine:
        return cls(Qwen2ForCausalLM.from_pretrained(folder).eval())

    @torch.no_grad()
    def load_weight(self, name: str, value: torch.Tensor) -> None:
        target = dict(self.model.named_parameters())[name]
        assert target.shape == value.shape, name
        target.copy_(value)

    @torch.no_grad()
    def forget(self) -> None:
        for weight in self.model.parameters():
            weight.fill_(float("nan"))

    def reply(
        self,
        prompt: Sequence[int],
        *,
        max_tokens: int,
        temperature: float,
        end_ids: Sequence[int],
        seed: int | None,
    ) -> tuple[list[int], list[float]]:
        """A reply drawn from its seed, or from how many came before it."""
        with self.lock:
            if seed is None:
                self.unseeded += 1
            sampler = HFGenerator(self.model, end_ids, max_tokens, temperature)
            [sample] = sampler.generate([prompt], [self.unseeded if seed is None else seed])
        return list(sample.token_ids), list(sample.logprobs or ())


class Server:
    """`vllm serve` in development mode, as far as TRL's client uses it.

    `unknown` is a token whose log-prob is always NaN.
    """

    def __init__(self, engine: Engine, *, unknown: int | None = None, room: int = 1024) -> None:
        self.engine, self.unknown, self.room = engine, unknown, room
        self.calls: Counter[str] = Counter()
        self.weights = importlib.import_module("vllm.distributed.weight_transfer.nccl_common")
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: object) -> None: ...

            def do_GET(self) -> None:
                self.answer({})

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                self.answer(json.loads(self.rfile.read(length) or b"{}"))

            def answer(self, asked: dict[str, object]) -> None:
                path = self.path.partition("?")[0].strip("/")
                outer.calls[path] += 1
                body = json.dumps(outer.answer(path, asked)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def answer(self, path: str, asked: dict[str, object]) -> dict[str, object]:
        if path == "v1/completions":
            return {"choices": [self._choice(prompt, asked) for prompt in asked["prompt"]]}
        if path == "update_weights":
            news = asked["update_info"]
            for name, shape in zip(news["names"], news["shapes"], strict=True):
                value = self.weights.CHANNEL.get(timeout=30)
                assert list(value.shape) == shape, name
                self.engine.load_weight(name, value)
        return {
            "v1/models": {"data": [{"id": "tiny"}]},
            "get_world_size": {"world_size": 1},
            "server_info": {
                "vllm_config": {
                    "weight_transfer_config": {"backend": "nccl"},
                    "model_config": {
                        "logprobs_mode": "processed_logprobs",
                        "max_model_len": self.room,
                    },
                }
            },
            "reset_prefix_cache": {"success": True},
        }.get(path, {})

    def _choice(self, prompt: list[int], asked: dict[str, object]) -> dict[str, object]:
        ids, values = self.engine.reply(
            prompt,
            max_tokens=asked["max_tokens"],
            temperature=asked["temperature"],
            end_ids=asked["stop_token_ids"],
            seed=asked.get("seed"),
        )
        names = [f"token_id:{i}" for i in ids]
        values = [
            float("nan") if i == self.unknown else v for i, v in zip(ids, values, strict=True)
        ]
        return {
            "prompt_token_ids": prompt,
            "token_ids": ids,
            "logprobs": {
                "tokens": names,
                "token_logprobs": values,
                "top_logprobs": [{n: v} for n, v in zip(names, values, strict=True)],
            },
        }
