"""A critic beside the policy: values of an iteration's tokens, its updates, its checkpoint.

Leaves out a separate critic under DeepSpeed or FSDP: there, share the policy's trunk.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import torch
from accelerate.utils import gather_object
from numpy.typing import NDArray

from milegpo_algo.batch import Floats, Row
from milegpo_algo.critic import Critic, before_tokens, load_critic, value_loss
from milegpo_algo.trainer.clock import Batch
from milegpo_algo.trainer.logprobs import LogProbs

CRITIC_FILE = "critic.pt"


class Values(LogProbs):
    """Keeps a critic, where the estimator needs values."""

    critic: Critic | None = None
    _critic_model: torch.nn.Module  # as wrapped for several processes
    _critic_optimizer: torch.optim.Optimizer
    _states: torch.Tensor | None = None  # the policy's last hidden states, where they are shared

    def _add_critic(self, policy_name: str) -> None:
        """Make the critic that the settings ask for."""
        if self.args.fp16:
            raise ValueError("A critic is trained in bf16 or float32: set fp16 to False.")
        policy = self.accelerator.unwrap_model(self.model)
        if self.vision is not None and self.args.critic != "shared":
            raise ValueError(
                "A separate critic reads text only: set critic='shared', a value head on the "
                "vision-language model's trunk."
            )
        if self.args.critic == "shared":
            base = policy.get_base_model() if hasattr(policy, "peft_config") else policy
            base.get_decoder().register_forward_hook(self._keep_states)
            self.critic = Critic(base.config.get_text_config().hidden_size)
            self.critic.to(self.accelerator.device)
            self._critic_model = self.critic
        else:
            if self.is_deepspeed_enabled or self.is_fsdp_enabled:
                raise ValueError(
                    "critic='separate' is not available under DeepSpeed or FSDP: set "
                    "critic='shared', a value head on the policy's trunk."
                )
            self.critic = load_critic(self.args.critic_model or policy_name)
            if self.args.gradient_checkpointing and self.critic.trunk is not None:
                self.critic.trunk.gradient_checkpointing_enable(
                    self.args.gradient_checkpointing_kwargs
                )
            self._critic_model = self.accelerator.prepare_model(self.critic)
        self.critic.train()
        self._critic_optimizer = torch.optim.AdamW(
            self.critic.parameters(), lr=self.args.critic_learning_rate, weight_decay=0.0
        )

    def _keep_states(self, module: torch.nn.Module, args: object, output: object) -> None:
        self._states = cast("tuple[torch.Tensor, ...]", output)[0]

    # ---- values ----------------------------------------------------------------------------

    @torch.no_grad()
    def _values(self, rows: list[Row]) -> list[NDArray[np.float64]]:
        """Values before each token of every row, the same list on every process.

        Equal numbers of rows are scored on each, some twice; an empty reply has one value.
        """
        world, rank = self.accelerator.num_processes, self.accelerator.process_index
        each = -(-len(rows) // world)
        mine = [i % len(rows) for i in range(rank * each, (rank + 1) * each)]
        scored = self._score([rows[i] for i in mine], self._values_of)
        found = list(zip(mine, scored, strict=True))
        if world > 1:
            found = cast("list[tuple[int, Floats]]", gather_object(found))
        known = dict(found)
        return [
            known[i].astype(np.float64) if len(known[i]) else np.zeros(1) for i in range(len(rows))
        ]

    def _values_of(self, batch: Batch) -> torch.Tensor:
        critic = cast(Critic, self.critic)
        width = batch["completion_ids"].size(1)
        if critic.trunk is None:
            self._logprobs(self.model, batch)
            return critic.of_states(before_tokens(self._taken_states(), width))
        with self.accelerator.autocast():
            return cast(torch.Tensor, self._critic_model(*_sequences(batch), width))

    def _taken_states(self) -> torch.Tensor:
        states, self._states = self._states, None
        return cast(torch.Tensor, states)

    # ---- updates ---------------------------------------------------------------------------

    def _shared_value_loss(self, batch: Batch) -> torch.Tensor:
        """Sum over the tokens of a micro-batch whose policy loss was just computed."""
        width = batch["completion_ids"].size(1)
        states = before_tokens(self._taken_states(), width)
        return self._value_loss(cast(Critic, self.critic).of_states(states), batch)

    def _separate_backward(self, batch: Batch, scale: float) -> torch.Tensor:
        """Gradient of a separate critic on a micro-batch; its loss."""
        with self.accelerator.autocast():
            values = self._critic_model(*_sequences(batch), batch["completion_ids"].size(1))
        loss = self._value_loss(values.float(), batch) * scale
        self.accelerator.backward(loss)
        return loss.detach()

    def _value_loss(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        return value_loss(
            values,
            batch["old_values"],
            batch["returns"],
            batch["completion_mask"],
            self.args.value_clip,
        )

    def _critic_step(self) -> None:
        critic = cast(Critic, self.critic)
        if critic.trunk is None:  # the policy's wrapper does not know the head
            for parameter in critic.parameters():
                if parameter.grad is not None:
                    parameter.grad = self.accelerator.reduce(parameter.grad, reduction="mean")
        if self.args.max_grad_norm > 0:
            torch.nn.utils.clip_grad_norm_(critic.parameters(), self.args.max_grad_norm)
        self._critic_optimizer.step()
        self._critic_optimizer.zero_grad()

    # ---- checkpoints -----------------------------------------------------------------------

    def _save_critic(self, checkpoint: Path) -> None:
        if self.critic is not None:
            state = {
                "critic": self.critic.state_dict(),
                "optimizer": self._critic_optimizer.state_dict(),
            }
            torch.save(state, checkpoint / CRITIC_FILE)

    def _load_critic(self, checkpoint: Path) -> None:
        if self.critic is not None:
            # to "cpu" first: torch.load knows no "cpu:0", the device of a process among several
            state = torch.load(checkpoint / CRITIC_FILE, weights_only=True, map_location="cpu")
            self.critic.load_state_dict(state["critic"])
            self._critic_optimizer.load_state_dict(state["optimizer"])


def explained_variance(rows: list[Row]) -> float:
    """1 - var(R - v) / var(R) over all tokens; 0 where returns do not vary."""
    known = [
        (row.returns, row.values)
        for row in rows
        if row.returns is not None and row.values is not None
    ]
    if not known:
        return 0.0
    returns = np.concatenate([r for r, _ in known]).astype(np.float64)
    values = np.concatenate([v for _, v in known]).astype(np.float64)
    spread = float(returns.var()) if len(returns) else 0.0
    return 1.0 - float((returns - values).var()) / spread if spread > 0 else 0.0


def first_value(row: Row) -> float | None:
    """What a critic said of a row's prompt, before its reply; None of an empty reply."""
    return float(row.values[0]) if row.values is not None and len(row.values) else None


def _sequences(batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Prompt and completion in one: ids and mask, (B, P + C)."""
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    return ids, torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
