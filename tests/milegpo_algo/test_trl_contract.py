"""What the trainer uses of TRL, transformers and accelerate beneath their public surface.

An upgrade that moves one of these fails here, in a second and by name, and not in a training run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import accelerate
import pytest
import torch
import transformers
import trl
from packaging.version import Version
from transformers.cache_utils import Cache, DynamicLayer
from trl import GRPOConfig, GRPOTrainer
from trl.distributed import DistributedBackend
from trl.models.utils import disable_gradient_checkpointing, unwrap_model_for_generation
from trl.trainer.utils import use_adapter

from milegpo_algo.trainer.clock import IMAGE_COLUMNS


def parameters(function: Callable[..., object]) -> list[str]:
    return list(inspect.signature(inspect.unwrap(function)).parameters)


def source(thing: object) -> str:
    return inspect.getsource(inspect.unwrap(thing))


def test_trl_is_a_version_these_pins_were_read_from():
    assert Version("1.16") <= Version(trl.__version__) < Version("1.17")


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (GRPOTrainer.training_step, ["self", "model", "inputs", "num_items_in_batch"]),
        (
            transformers.Trainer.training_step,
            ["self", "model", "inputs", "num_items_in_batch"],
        ),
        (GRPOTrainer._compute_loss, ["self", "model", "inputs"]),
        (GRPOTrainer._prepare_inputs, ["self", "generation_batch"]),
        (
            transformers.Trainer.evaluate,
            ["self", "eval_dataset", "ignore_keys", "metric_key_prefix"],
        ),
        (GRPOTrainer._save_checkpoint, ["self", "model", "trial"]),
        (transformers.Trainer._load_optimizer_and_scheduler, ["self", "checkpoint"]),
        (transformers.Trainer._clip_grad_norm, ["self", "model"]),
        (transformers.Trainer._get_grad_norm, ["self", "model", "grad_norm"]),
        (disable_gradient_checkpointing, ["model", "gradient_checkpointing_kwargs"]),
        (use_adapter, ["model", "adapter_name"]),
    ],
    ids=lambda value: getattr(value, "__qualname__", ""),
)
def test_a_signature_is_as_it_was(function, expected):
    assert parameters(function) == expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (
            GRPOTrainer.__init__,
            {
                "model",
                "reward_funcs",
                "args",
                "train_dataset",
                "eval_dataset",
                "processing_class",
                "callbacks",
                "peft_config",
            },
        ),
        (
            GRPOTrainer._get_per_token_logps_and_entropies,
            {
                "model",
                "input_ids",
                "attention_mask",
                "logits_to_keep",
                "compute_entropy",
                "compute_aux_loss",
                *IMAGE_COLUMNS,
            },
        ),
        (
            transformers.Trainer._get_dataloader,
            {"dataset", "description", "batch_size", "sampler_fn", "is_training"},
        ),
        (
            unwrap_model_for_generation,
            {"model", "accelerator", "gather_deepspeed3_params", "gradient_checkpointing_kwargs"},
        ),
        (DynamicLayer.update, {"key_states", "value_states"}),
        (Cache.__init__, {"layers"}),
    ],
    ids=lambda value: getattr(value, "__qualname__", ""),
)
def test_an_argument_still_exists(function, expected):
    assert expected <= set(parameters(function))


@pytest.mark.parametrize(
    "key",
    [
        "prompt_ids",
        "prompt_mask",
        "completion_ids",
        "completion_mask",
        "advantages",
        "old_per_token_logps",
        "ref_per_token_logps",
        "num_items_in_batch",
        *IMAGE_COLUMNS,
    ],
)
def test_the_loss_reads_its_inputs_under_the_same_keys(key):
    assert f'"{key}"' in source(GRPOTrainer._compute_loss)


@pytest.mark.parametrize(
    "line",
    [
        # dapo: what num_items_in_batch has to be so that a micro-batch is divided by its own tokens
        'normalizer = inputs["num_items_in_batch"].clamp(min=1.0) / self.accelerator.num_processes',
        "normalizer * self.current_gradient_accumulation_steps / self.args.steps_per_generation",
        # bnpo divides by the tokens of the micro-batch, grpo by its rows
        "loss = (per_token_loss * mask).sum() / mask.sum().clamp(min=1.0)",
        "loss = ((per_token_loss * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)).mean()",
        # the dual clip, and the KL term that kl_limit guards
        "coef_1 = torch.clamp(coef_1, max=self.args.delta)",
        "torch.exp(ref_per_token_logps - per_token_logps)",
        # advantages of tokens, which carry a critic's credit and importance weights
        "if advantages.dim() == 1:",
        "per_token_loss1 = coef_1 * advantages",
        "per_token_loss2 = coef_2 * advantages",
        # TRL's own importance weights stay off
        "if self.use_vllm and self.vllm_importance_sampling_correction",
        # the entropy bonus, a mean over the micro-batch that `_entropy_by_token` turns into one
        # over all tokens
        "(entropies * effective_mask).sum() / effective_mask.sum().clamp(min=1.0)",
        "loss = loss - apply_coef * entropy_loss",
    ],
)
def test_the_loss_still_computes(line):
    assert line in source(GRPOTrainer._compute_loss)


@pytest.mark.parametrize(
    "line",
    [
        # images of a batch are cut by a list of counts, patches by the grids of images
        "cum_imgs = torch.tensor([0] + num_images).cumsum(0)",
        "rows_per_image = image_grid_thw.prod(dim=-1)",
        "elif pixel_values is not None and pixel_values.size(0) == sum(num_images):",
        'model_inputs["mm_token_type_ids"] = mm_token_type_ids[start:end]',
    ],
)
def test_log_probs_still_cut_images_by_rows(line):
    assert line in source(GRPOTrainer._get_per_token_logps_and_entropies)


@pytest.mark.parametrize(
    "line",
    [
        "self._tokenizer = processing_class.tokenizer",
        "processing_class = AutoProcessor.from_pretrained(",
    ],
)
def test_a_processor_is_still_taken_for_a_tokenizer(line):
    assert line in source(GRPOTrainer.__init__)


def test_what_processors_and_generate_are_asked_for_still_exists():
    processor = transformers.ProcessorMixin
    assert {"image_token_ids", "video_token_ids", "audio_token_ids"} <= set(dir(processor))
    assert {"model_input_names", "apply_chat_template"} <= set(dir(processor))
    generate = transformers.generation.utils.GenerationMixin.generate
    assert {"inputs", "generation_config", "logits_processor"} <= set(parameters(generate))


@pytest.mark.parametrize(
    "name",
    [
        "_metrics",
        "_tokenizer",
        "_dist",
        "_entropy_bonus_enabled",
        "beta",
        "chat_template_kwargs",
        "eos_token_ids",
        "loss_type",
        "entropy_coef",
        "max_completion_length",
        "num_generations",
        "num_iterations",
        "use_vllm",
        "vllm_generation",
        "ref_model",
        "temperature",
    ],
)
def test_the_constructor_still_sets(name):
    assert f"self.{name} = " in source(GRPOTrainer.__init__)


@pytest.mark.parametrize(
    "name",
    [
        "use_bias_correction_kl",
        "delta",
        "steps_per_generation",
        "generation_batch_size",
        "ds3_gather_for_generation",
        "shuffle_dataset",
        "chat_template_kwargs",
        "entropy_coef",
        "use_adaptive_entropy",
        "use_vllm",
        "vllm_importance_sampling_correction",
    ],
)
def test_a_setting_still_exists(name):
    assert name in GRPOConfig.__dataclass_fields__


def test_the_optimizer_loop_counts_a_training_step_as_a_global_step():
    loop = source(transformers.Trainer._run_epoch)
    for line in [
        "tr_loss_step = self.training_step(model, inputs, num_items_in_batch)",
        "self.accelerator.gradient_state._set_sync_gradients(do_sync_step)",
        "self.optimizer.step()",
        "self.state.global_step += 1",
    ]:
        assert line in loop


def test_gradients_are_synchronised_as_transformers_does():
    state = accelerate.state.GradientState()
    assert hasattr(state, "_set_sync_gradients")
    assert hasattr(state, "plugin_kwargs")


def test_a_cache_layer_holds_what_its_subclasses_set():
    layer = DynamicLayer()
    assert set(vars(layer)) == {"keys", "values", "is_initialized"}
    layer.lazy_initialization(torch.zeros(1), torch.zeros(1))
    assert {"dtype", "device"} <= set(vars(layer))
    assert layer.is_initialized


def test_the_last_hidden_states_come_first_from_the_trunk():
    """A shared critic hooks the trunk's output."""
    config = transformers.Qwen2Config(
        vocab_size=8,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        intermediate_size=8,
    )
    model = transformers.Qwen2ForCausalLM(config)
    output = model.get_decoder()(torch.tensor([[1, 2]]))
    assert output[0] is output.last_hidden_state


def test_how_a_model_is_spread_over_processes_is_told_as_before():
    assert {"is_zero3", "is_fsdp", "summon_full_params"} <= set(vars(DistributedBackend))
    constructor = source(transformers.Trainer.__init__)
    creation = source(transformers.Trainer.create_accelerator_and_postprocess)
    assert "self.model_wrapped = " in constructor
    for name in ("is_deepspeed_enabled", "is_fsdp_enabled"):
        assert f"self.{name} = " in constructor + creation


def test_the_bench_can_still_ask_trl_for_one_turn():
    expected = ["self", "prompt_ids", "images", "multimodal_fields", "num_generations"]
    assert parameters(GRPOTrainer._generate_single_turn)[:5] == expected
