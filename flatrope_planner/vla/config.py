"""Everything that is fixed once nano's weights are trained; ships beside them as `config.json`."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from transformers import Qwen3VLConfig, Qwen3VLTextConfig

from flatrope_planner.errors import SetupError, reason
from flatrope_planner.speculation.checkpoints.files import file_in, read_json
from flatrope_planner.vla.pictures import PICTURE_HEIGHT, PICTURE_WIDTH

CONFIG_FILE = "config.json"
MODEL_TYPE = "flatrope_nano"
# Most characters of a wrong value that a message shows.
SHOWN = 60

PATCH_PX = 16
MERGE = 2
# Merged tokens of one picture, rows and columns.
TOKEN_ROWS = PICTURE_HEIGHT // PATCH_PX // MERGE
TOKEN_COLUMNS = PICTURE_WIDTH // PATCH_PX // MERGE
TOKENS_PER_PICTURE = TOKEN_ROWS * TOKEN_COLUMNS


@dataclass(frozen=True)
class NanoConfig:
    """Sizes of nano, what it looks at, and how its actions are scaled."""

    vocab_size: int
    cameras: tuple[str, ...] = ("front_wide", "front_tele")
    frames_per_camera: int = 2
    frame_period_s: float = 0.5
    text_hidden: int = 192
    text_intermediate: int = 512
    layers: int = 4
    text_heads: int = 6
    # The expert reads the target's keys and values, so these three hold for both.
    kv_heads: int = 2
    head_dim: int = 32
    # Rotary dimensions of time, height and width, interleaved; half of head_dim in all.
    mrope_section: tuple[int, int, int] = (6, 5, 5)
    rope_theta: float = 1000.0
    vision_hidden: int = 128
    vision_intermediate: int = 512
    vision_layers: int = 4
    vision_heads: int = 4
    # Vision layers whose features are added after the text layers 0, 1, ...
    deepstack_layers: tuple[int, ...] = (1, 2)
    expert_hidden: int = 128
    expert_intermediate: int = 384
    expert_heads: int = 4
    # Five plan as well as ten: docs/results.md.
    flow_steps: int = 5
    # Acceleration (m/s^2) and curvature (1/m) over the training data.
    action_mean: tuple[float, float] = (0.0, 0.0)
    action_std: tuple[float, float] = (1.0, 1.0)

    @property
    def pictures(self) -> int:
        """Pictures in a prompt."""
        return len(self.cameras) * self.frames_per_camera

    def save(self, directory: Path) -> None:
        """Write `config.json`."""
        content = {"model_type": MODEL_TYPE, **asdict(self)}
        (directory / CONFIG_FILE).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, directory: Path) -> "NanoConfig":
        """Read `config.json`.

        Raises:
            SetupError: when it is missing, describes another model, or sizes that do not go together.
        """
        path = file_in(directory, CONFIG_FILE)
        try:
            content: dict[str, Any] = read_json(path)
            if content.pop("model_type") != MODEL_TYPE:
                raise KeyError(MODEL_TYPE)
            fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}
            config = cls(**fields)
            _check(config)
            return config
        except (AttributeError, OSError, ValueError, KeyError, TypeError) as err:
            msg = f"{path}: no configuration of nano ({reason(err)}); train one with `flatrope train target`"
            raise SetupError(msg) from err


# Fields in which zero or less is possible.
_SIGNED = ("action_mean", "deepstack_layers")
# Nothing larger is a nano: the most of whole numbers, and of those that stand for things made one by one.
_MOST, _MOST_THINGS = 65_536, 256
_THINGS = ("layers", "vision_layers", "frames_per_camera", "flow_steps", "text_heads", "expert_heads", "vision_heads")


def _check(config: NanoConfig) -> None:
    """Raise a ValueError for a field that is not of its type, or that does not go with the others."""
    for name, hint in get_type_hints(NanoConfig).items():
        value = getattr(config, name)
        too_large = hint is int and type(value) is int and value > (_MOST_THINGS if name in _THINGS else _MOST)
        if too_large or not _fits(value, hint) or (name not in _SIGNED and not _all_positive(value)):
            msg = f"{name} is {str(value)[:SHOWN]!r}"
            raise ValueError(msg)
    wanted = {
        "text_hidden is even": config.text_hidden % 2 == 0,
        "head_dim is twice the sum of mrope_section": config.head_dim == 2 * sum(config.mrope_section),
        "kv_heads divides text_heads": config.text_heads % config.kv_heads == 0,
        "kv_heads divides expert_heads": config.expert_heads % config.kv_heads == 0,
        "4 vision_heads divide vision_hidden": config.vision_hidden % (4 * config.vision_heads) == 0,
        "deepstack_layers are among vision_layers": set(config.deepstack_layers) <= set(range(config.vision_layers)),
        "deepstack_layers are no more than layers": len(config.deepstack_layers) <= config.layers,
    }
    for rule, holds in wanted.items():
        if not holds:
            msg = f"expected that {rule}"
            raise ValueError(msg)


def _fits(value: object, hint: Any) -> bool:
    """Whether a value is of a field's type: int, float, str, or a tuple of these."""
    if not get_args(hint):
        # JSON writes 1000.0 as 1000, too.
        kinds = (int, float) if hint is float else (hint,)
        return type(value) in kinds and (hint is str or math.isfinite(value))  # type: ignore[arg-type]
    kind, *others = get_args(hint)
    if not isinstance(value, tuple) or (Ellipsis not in others and len(value) != 1 + len(others)):
        return False
    return all(_fits(item, kind) for item in value)


def _all_positive(value: object) -> bool:
    """Whether numbers are above zero, and lists of names and numbers are not empty."""
    if isinstance(value, tuple):
        return bool(value) and all(_all_positive(item) for item in value)
    return bool(value) if isinstance(value, str) else value > 0  # type: ignore[operator]


def vlm_config(config: NanoConfig, image_token: int, vision_start: int, vision_end: int) -> Qwen3VLConfig:
    """The Qwen3-VL configuration of the target."""
    return Qwen3VLConfig(
        text_config=_text_config(
            config, config.text_hidden, config.text_intermediate, config.text_heads, config.vocab_size
        ).to_dict(),
        vision_config={
            "depth": config.vision_layers,
            "hidden_size": config.vision_hidden,
            "intermediate_size": config.vision_intermediate,
            "num_heads": config.vision_heads,
            "patch_size": PATCH_PX,
            "spatial_merge_size": MERGE,
            "temporal_patch_size": 2,
            "out_hidden_size": config.text_hidden,
            # The learned grid is square and resampled to the picture's patches.
            "num_position_embeddings": (PICTURE_WIDTH // PATCH_PX) ** 2,
            "deepstack_visual_indexes": list(config.deepstack_layers),
        },
        image_token_id=image_token,
        video_token_id=config.vocab_size,
        vision_start_token_id=vision_start,
        vision_end_token_id=vision_end,
        tie_word_embeddings=False,
    )


def expert_config(config: NanoConfig) -> Qwen3VLTextConfig:
    """The text-model configuration of the action expert: narrower, but with the target's layers and KV shape."""
    return _text_config(config, config.expert_hidden, config.expert_intermediate, config.expert_heads, vocab_size=1)


def _text_config(config: NanoConfig, hidden: int, intermediate: int, heads: int, vocab_size: int) -> Qwen3VLTextConfig:
    return Qwen3VLTextConfig(
        vocab_size=vocab_size,
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_hidden_layers=config.layers,
        num_attention_heads=heads,
        num_key_value_heads=config.kv_heads,
        head_dim=config.head_dim,
        max_position_embeddings=4096,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": config.rope_theta,
            "mrope_section": list(config.mrope_section),
            "mrope_interleaved": True,
        },
        attn_implementation="sdpa",
    )
