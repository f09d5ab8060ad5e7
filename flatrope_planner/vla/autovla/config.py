"""What a checkpoint's `config.json` fixes: the Qwen2.5-VL itself, and in a section `autovla` how it was trained."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import Qwen2_5_VLConfig

from flatrope_planner.errors import SetupError, reason
from flatrope_planner.speculation.checkpoints.files import file_in
from flatrope_planner.vla.checkpoint.fields import MOST_THINGS, Section
from flatrope_planner.vla.checkpoint.files import CONFIG_FILE, read_json
from flatrope_planner.vla.checkpoint.sizes import check_rules, check_whole, counts

MODEL_TYPE = "qwen2_5_vl"
# AutoVLA's part of the configuration. Where it is missing, the values of its published configurations hold.
SECTION = "autovla"
# Pixels of a picture: 140 merged patches.
PIXELS = 28 * 28 * 140

PATCH_PX = 14
MERGE = 2
# Frames that one patch spans.
TEMPORAL_PATCH = 2
PREPROCESSOR_FILE = "preprocessor_config.json"
# What pictures are brought to, as OpenAI's CLIP had them.
IMAGE_MEAN = (0.48145466, 0.4578275, 0.40821073)
IMAGE_STD = (0.26862954, 0.26130258, 0.27577711)

_TEXT_SIZES = (
    *("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"),
    "vocab_size",
)
_VISION_SIZES = (
    *("depth", "hidden_size", "intermediate_size", "num_heads", "out_hidden_size", "window_size"),
    "tokens_per_second",
)


@dataclass(frozen=True)
class AutoVlaConfig:
    """A checkpoint's configuration."""

    # Of the network.
    vlm: Qwen2_5_VLConfig
    precision: str
    # Whether it is asked to think before it acts, and whether its videos are numbered (see `prompt.prompt_text`).
    reasons: bool
    numbered: bool
    min_pixels: int
    max_pixels: int

    @classmethod
    def load(cls, checkpoint: Path) -> "AutoVlaConfig":
        """Read `config.json`.

        Raises:
            SetupError: naming the field that is missing, or not as this package can run it.
        """
        path = checkpoint / CONFIG_FILE
        content = read_json(path)
        whole = Section(path, content)
        if content.get("model_type") != MODEL_TYPE:
            whole.refuse("model_type", MODEL_TYPE)
        own = whole.section(SECTION) if whole.holds(SECTION) else Section(path, {}, f"{SECTION}.")
        own.holds_only("use_cot", "min_pixels", "max_pixels", "add_vision_id")
        config = cls(
            vlm=_vlm(whole, path, content),
            precision=_precision(whole, content),
            reasons=own.flag("use_cot", default=True),
            numbered=own.flag("add_vision_id", default=False),
            min_pixels=own.whole("min_pixels", PIXELS),
            max_pixels=own.whole("max_pixels", PIXELS),
        )
        if config.min_pixels > config.max_pixels:
            own.refuse("max_pixels", f"at least min_pixels, {config.min_pixels}")
        return config

    @property
    def seconds_stride(self) -> int:
        """Temporal positions from one pair of frames to the next, which shows a second later."""
        return int(self.vlm.vision_config.tokens_per_second)


def _vlm(whole: Section, path: Path, content: dict[str, Any]) -> Qwen2_5_VLConfig:
    vision = whole.section("vision_config")
    for key, size in (("patch_size", PATCH_PX), ("spatial_merge_size", MERGE), ("temporal_patch_size", TEMPORAL_PATCH)):
        vision.must_be(key, size)
    text = whole.section("text_config") if whole.holds("text_config") else whole
    text.must_be("use_sliding_window", expected=False)
    if text.holds("num_hidden_layers"):
        # transformers says of each layer what it is like, which takes its time.
        text.whole("num_hidden_layers", most=MOST_THINGS)
    try:
        fields = {key: value for key, value in content.items() if key not in ("model_type", SECTION)}
        config = Qwen2_5_VLConfig(**fields)
        _check_sizes(config)
    except Exception as err:  # transformers checks fields in its own ways
        msg = f"{path}: no configuration of a Qwen2.5-VL ({reason(err)})"
        raise SetupError(msg) from err
    return config


def _check_sizes(config: Qwen2_5_VLConfig) -> None:
    """Raise a ValueError for sizes of which no network can be made, or none that is of use."""
    text, vision = config.text_config, config.vision_config
    check_whole(text, _TEXT_SIZES)
    check_whole(vision, _VISION_SIZES)
    rope, pairs = text.rope_parameters, text.hidden_size // text.num_attention_heads // 2
    section = rope.get("mrope_section")
    summed = counts(section, 3) and sum(section) == pairs
    wanted = {
        "num_attention_heads divides hidden_size": text.hidden_size % text.num_attention_heads == 0,
        "num_key_value_heads divides num_attention_heads": text.num_attention_heads % text.num_key_value_heads == 0,
        "4 num_heads divide the hidden_size of vision_config": vision.hidden_size % (4 * vision.num_heads) == 0,
        "out_hidden_size is hidden_size": vision.out_hidden_size == text.hidden_size,
        f"fullatt_block_indexes are some below {vision.depth}": _are_below(vision.fullatt_block_indexes, vision.depth),
        f"window_size is a multiple of {PATCH_PX * MERGE}": vision.window_size % (PATCH_PX * MERGE) == 0,
        f"mrope_section is three numbers that add up to {pairs}, half a head": summed,
        "rope_theta is a number above 1": type(rope["rope_theta"]) in (int, float) and 1.0 < rope["rope_theta"] < 1e12,
        "rope_type is default": rope["rope_type"] == "default",
    }
    check_rules(wanted)


def _are_below(indexes: Any, most: int) -> bool:
    return isinstance(indexes, list | tuple) and all(type(each) is int and 0 <= each < most for each in indexes)


def _precision(whole: Section, content: dict[str, Any]) -> str:
    """Transformers calls it `dtype`, and once called it `torch_dtype`."""
    return whole.text("dtype" if "dtype" in content else "torch_dtype", "bfloat16")


def check_processor(checkpoint: Path) -> None:
    """Refuse pictures that were prepared in another way than here.

    Raises:
        SetupError: naming the setting.
    """
    path = file_in(checkpoint, PREPROCESSOR_FILE)
    if not path.exists():
        return
    whole = Section(path, read_json(path))
    expected: dict[str, Any] = {
        "image_mean": list(IMAGE_MEAN),
        "image_std": list(IMAGE_STD),
        "patch_size": PATCH_PX,
        "merge_size": MERGE,
        "temporal_patch_size": TEMPORAL_PATCH,
        "resample": 3,
        "do_resize": True,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
    }
    for key, value in expected.items():
        whole.must_be(key, value)
