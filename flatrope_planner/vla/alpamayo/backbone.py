"""The Qwen3-VL beneath a checkpoint, and the expert that is made in its likeness."""

from pathlib import Path
from typing import Any

from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration, Qwen3VLTextConfig

from flatrope_planner.errors import SetupError, reason
from flatrope_planner.vla.alpamayo.config import AlpamayoConfig
from flatrope_planner.vla.alpamayo.sizes import check_sizes, check_text_sizes
from flatrope_planner.vla.checkpoint.fields import Section
from flatrope_planner.vla.checkpoint.files import CONFIG_FILE, read_json
from flatrope_planner.vla.config import MERGE, PATCH_PX

PREPROCESSOR_FILE = "preprocessor_config.json"
# What a configuration may say of how a model is run; here the target says it.
RUN_TIME_FIELDS = {"dtype", "torch_dtype", "attn_implementation", "_attn_implementation"}
# As transformers 4.57 calls what is one field today.
ROTARY_FIELDS = {"rope_theta", "rope_scaling"}


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
    vision, text = whole.section("vision_config"), whole.section("text_config")
    for key, size in (("patch_size", PATCH_PX), ("spatial_merge_size", MERGE), ("temporal_patch_size", 2)):
        vision.must_be(key, size)
    try:
        config = Qwen3VLConfig(**{key: value for key, value in content.items() if key != "model_type"})
        config.text_config.vocab_size = vocab_size
        # In transformers 4.57 the text model decides, later the whole; either may leave out the head's weights.
        config.tie_word_embeddings |= text.flag("tie_word_embeddings", default=False)
        check_sizes(config)
    except SetupError:
        raise
    except Exception as err:  # transformers checks fields in its own ways
        msg = f"{path}: no configuration of a Qwen3-VL ({reason(err)})"
        raise SetupError(msg) from err
    return config


def expert_config(checkpoint: Path, config: AlpamayoConfig, text: Qwen3VLTextConfig) -> Qwen3VLTextConfig:
    """The expert's configuration: the backbone's text model, with what the checkpoint changes of it.

    Raises:
        SetupError: when it could not read the keys and values of the backbone.
    """
    whole = Section(checkpoint / CONFIG_FILE, config.expert, "expert_cfg.")
    # The expert reads the keys and values of the backbone's first layers.
    for key in ("num_key_value_heads", "head_dim"):
        whole.must_be(key, getattr(text, key))
    whole.whole("num_hidden_layers", text.num_hidden_layers, text.num_hidden_layers)
    heads = whole.whole("num_attention_heads", text.num_attention_heads)
    if heads % text.num_key_value_heads:
        whole.refuse("num_attention_heads", f"a multiple of {text.num_key_value_heads} key-value heads")
    own = {key: value for key, value in config.expert.items() if key not in (*RUN_TIME_FIELDS, *ROTARY_FIELDS)}
    try:
        expert = Qwen3VLTextConfig(**{**text.to_dict(), **own, "rope_parameters": _rotary(whole, text)})
        check_text_sizes(expert)
    except SetupError:
        raise
    except Exception as err:  # transformers checks fields in its own ways
        msg = f"{checkpoint / CONFIG_FILE}: expert_cfg is none of a text model of Qwen3-VL ({reason(err)})"
        raise SetupError(msg) from err
    # It never sees a token.
    expert.vocab_size, expert.pad_token_id = 1, None
    return expert


def _rotary(whole: Section, text: Qwen3VLTextConfig) -> dict[str, Any]:
    """The expert's rotary positions: the backbone's base and scaling, each unless the expert has its own."""
    backbone = dict(text.rope_parameters)
    scaling = whole.fields("rope_scaling") if whole.holds("rope_scaling") else backbone
    return {**scaling, "rope_theta": whole.number("rope_theta", backbone["rope_theta"])}


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
        "do_resize": True,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
    }
    for key, value in expected.items():
        whole.must_be(key, value)
