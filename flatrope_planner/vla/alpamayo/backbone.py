"""The Qwen3-VL beneath a checkpoint, and the expert that is made in its likeness."""

import copy
from pathlib import Path
from typing import Any

from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration, Qwen3VLTextConfig

from flatrope_planner.errors import SetupError, reason
from flatrope_planner.vla.alpamayo.config import AlpamayoConfig
from flatrope_planner.vla.checkpoint.fields import Section
from flatrope_planner.vla.checkpoint.files import CONFIG_FILE, read_json
from flatrope_planner.vla.config import MERGE, PATCH_PX

PREPROCESSOR_FILE = "preprocessor_config.json"
# What a configuration may say of how a model is run; here the target says it.
RUN_TIME_FIELDS = {"dtype", "torch_dtype", "attn_implementation", "_attn_implementation"}


def load_backbone(folder: Path, vocab_size: int) -> Qwen3VLConfig:
    """The backbone's configuration, with the vocabulary of the checkpoint.

    Raises:
        SetupError: when it is missing, or none of a Qwen3-VL.
    """
    path = folder / CONFIG_FILE
    content = read_json(path)
    whole = Section(path, content)
    if content.get("model_type") != "qwen3_vl":
        whole.refuse("model_type", "qwen3_vl")
    vision = whole.section("vision_config")
    for key, size in (("patch_size", PATCH_PX), ("spatial_merge_size", MERGE), ("temporal_patch_size", 2)):
        vision.must_be(key, size)
    try:
        config = Qwen3VLConfig(**{key: value for key, value in content.items() if key != "model_type"})
    except (TypeError, ValueError, KeyError, AttributeError) as err:
        msg = f"{path}: no configuration of a Qwen3-VL ({reason(err)})"
        raise SetupError(msg) from err
    config.text_config.vocab_size = vocab_size
    return config


def expert_config(checkpoint: Path, config: AlpamayoConfig, text: Qwen3VLTextConfig) -> Qwen3VLTextConfig:
    """The expert's configuration: the backbone's text model, with what the checkpoint changes of it.

    Raises:
        SetupError: when it could not read the keys and values of the backbone.
    """
    expert = copy.deepcopy(text)
    whole = Section(checkpoint / CONFIG_FILE, config.expert, "expert_cfg.")
    for key, value in config.expert.items():
        if key not in RUN_TIME_FIELDS:
            setattr(expert, key, value)
    # The expert reads the backbone's keys and values.
    for key in ("num_hidden_layers", "num_key_value_heads", "head_dim"):
        whole.must_be(key, getattr(text, key))
    heads = whole.whole("num_attention_heads", text.num_attention_heads)
    if heads % text.num_key_value_heads:
        whole.refuse("num_attention_heads", f"a multiple of {text.num_key_value_heads} key-value heads")
    # It never sees a token.
    expert.vocab_size, expert.pad_token_id = 1, None
    return expert


def eos_tokens(vlm: Qwen3VLForConditionalGeneration) -> frozenset[int]:
    """Tokens behind which transformers' `generate` would stop, by the backbone's configuration."""
    found = vlm.generation_config.eos_token_id
    return frozenset(() if found is None else [found] if isinstance(found, int) else found)


def check_processor(folder: Path) -> None:
    """Refuse pictures that were prepared in another way than here.

    Raises:
        SetupError: naming the setting.
    """
    path = folder / PREPROCESSOR_FILE
    if not path.is_file():
        return
    content: dict[str, Any] = read_json(path)
    whole = Section(path, content)
    expected: dict[str, Any] = {
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "patch_size": PATCH_PX,
        "merge_size": MERGE,
        "temporal_patch_size": 2,
        "resample": 3,
    }
    for key, value in expected.items():
        whole.must_be(key, value)
