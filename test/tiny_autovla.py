"""A small random AutoVLA: a Qwen2.5-VL as transformers saves it, action tokens, and a codebook of a car's motions."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import save_file
from tiny_alpamayo import CRUISE, FAST, STANDING, TIGHT_TURN, history, picture
from tiny_nano import SENTENCES
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import Qwen2_5_VLForConditionalGeneration

from flatrope_planner.domain import CameraFrame, Floats, Observation
from flatrope_planner.vla.autovla.cameras import CAMERAS
from flatrope_planner.vla.autovla.codebook import CODEBOOK_FILE, TENSOR
from flatrope_planner.vla.autovla.config import AutoVlaConfig
from flatrope_planner.vla.autovla.ego_motion import EgoMotion
from flatrope_planner.vla.autovla.prompt import motion_text, prompt_text
from flatrope_planner.vla.autovla.vocabulary import action_token

ACTIONS = 96
LENGTH_M, WIDTH_M = 4.8, 2.0
# Qwen2.5-VL's in its order; two more bring the image token to where it is in Qwen's own.
QWEN_NAMES = "endoftext im_start im_end vision_start vision_end vision_pad image_pad video_pad"
QWEN = [f"<|{name}|>" for name in QWEN_NAMES.split()]
# The greater, the likelier the end of a text is, and an action.
END_SCALE, ACTION_SCALE = 3.6, 1.3
MIN_PIXELS, MAX_PIXELS = 28 * 28 * 6, 28 * 28 * 12


def tokenizer(actions: int = ACTIONS) -> Tokenizer:
    """A byte-level tokenizer with Qwen's marks and the actions."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=500, show_progress=False, initial_alphabet=alphabet)
    texts = [prompt_text([], motion_text(EgoMotion(5.0, 0.5), "turn left"), reasons=each) for each in (True, False)]
    made.train_from_iterator([*SENTENCES * 20, *texts * 20], trainer)
    made.add_special_tokens([AddedToken(token, special=True) for token in QWEN])
    made.add_tokens([AddedToken(action_token(number), normalized=True) for number in range(actions)])
    return made


def outlines(actions: int = ACTIONS, steps: int = 6) -> NDArray[np.float32]:
    """float32 (actions, steps, 4, 2): arcs of up to 7.5 m in half a second, the first one standing."""
    random = np.random.default_rng(7)
    way, turn = random.uniform(0.0, 7.5, actions), random.normal(0.0, 0.1, actions)
    way[0] = turn[0] = 0.0
    share = np.linspace(0.0, 1.0, steps) if steps > 1 else np.ones(1)
    heading = turn[:, None] * share
    centre = way[:, None, None] * share[:, None] * np.stack([np.cos(heading / 2), np.sin(heading / 2)], axis=-1)
    ahead = np.stack([np.cos(heading), np.sin(heading)], axis=-1)[:, :, None] * LENGTH_M / 2
    left = np.stack([-np.sin(heading), np.cos(heading)], axis=-1)[:, :, None] * WIDTH_M / 2
    corners = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]])
    made: Floats = centre[:, :, None] + ahead * corners[:, :1] + left * corners[:, 1:]
    return made.astype(np.float32)


def config_of(base: Tokenizer) -> dict[str, object]:
    """A checkpoint's configuration, flat as transformers 4.49 wrote it."""
    return {
        "architectures": ["Qwen2_5_VLForConditionalGeneration"],
        "model_type": "qwen2_5_vl",
        "vocab_size": base.get_vocab_size(),
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 8192,
        "max_window_layers": 4,
        "use_sliding_window": False,
        "sliding_window": 4096,
        "rope_theta": 1000000.0,
        "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": True,
        "torch_dtype": "float32",
        "image_token_id": base.token_to_id("<|image_pad|>"),
        "video_token_id": base.token_to_id("<|video_pad|>"),
        "vision_start_token_id": base.token_to_id("<|vision_start|>"),
        "vision_end_token_id": base.token_to_id("<|vision_end|>"),
        "vision_config": {
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_heads": 2,
            "in_chans": 3,
            "out_hidden_size": 64,
            "patch_size": 14,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "window_size": 56,
            "fullatt_block_indexes": [1],
            "tokens_per_second": 2,
        },
        "autovla": {"use_cot": True, "min_pixels": MIN_PIXELS, "max_pixels": MAX_PIXELS},
    }


def write_checkpoint(folder: Path, seed: int = 8, shards: int = 1, changes: Mapping[str, object] | None = None) -> Path:
    """A checkpoint in that folder; `changes` replace fields of the configuration. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    base = tokenizer()
    base.save(str(folder / "tokenizer.json"))
    content = config_of(base)
    write_json(folder / "config.json", content)
    write_json(
        folder / "preprocessor_config.json",
        {
            "image_mean": [0.48145466, 0.4578275, 0.40821073],
            "image_std": [0.26862954, 0.26130258, 0.27577711],
            "patch_size": 14,
            "merge_size": 2,
            "temporal_patch_size": 2,
            "min_pixels": 3136,
            "max_pixels": 12845056,
        },
    )
    weights = _random_weights(folder, base, seed)
    if changes:
        write_json(folder / "config.json", {**content, **changes})
    save_arrays({TENSOR: outlines()}, folder / CODEBOOK_FILE)
    _save(folder, weights, shards)
    return folder


@dataclass(frozen=True)
class Case:
    """What a recorded run of AutoVLA's code was given."""

    moment: tuple[float, float]
    # Of the pictures.
    seed: int
    command: str | None = None
    height_px: int = 96
    width_px: int = 160


CASES = {
    "standing": Case(STANDING, 0, "Go Straight"),
    "cruise": Case(CRUISE, 1, "TURN LEFT"),
    # Too large, and too small for the processor.
    "tight": Case(TIGHT_TURN, 2, "keep forward", 270, 480),
    "fast": Case(FAST, 3, None, 70, 90),
}


def observation(case: Case, cameras: tuple[str, ...] = CAMERAS) -> Observation:
    """Four pictures of each camera, and a history."""
    frames = {
        camera: tuple(
            CameraFrame(500_000_000 * i, picture(100 * case.seed + 10 * place + i, case.height_px, case.width_px))
            for i in range(4)
        )
        for place, camera in enumerate(cameras)
    }
    return Observation(1_500_000_000, frames, history(*case.moment), case.command)


def _random_weights(folder: Path, base: Tokenizer, seed: int) -> dict[str, torch.Tensor]:
    """By the names that transformers writes into files, without the head, which is the embeddings."""
    model = Qwen2_5_VLForConditionalGeneration(AutoVlaConfig.load(folder).vlm)
    random = torch.Generator().manual_seed(seed)
    weights = {}
    for name, value in sorted(model.state_dict().items()):
        if name == "lm_head.weight":
            continue
        stored = name.replace("model.language_model.", "model.").replace("model.visual.", "visual.")
        weights[stored] = value.clone()
        if name.endswith(".bias") or value.ndim >= 2:
            spread = 0.1 if name.endswith(".bias") else 1.6 / math.sqrt(value[0].numel())
            weights[stored] = torch.randn(value.shape, generator=random) * (1.0 if "embed" in name else spread)
    embedding = weights["model.embed_tokens.weight"]
    embedding[base.token_to_id("<|im_end|>")] *= END_SCALE
    embedding[base.token_to_id(action_token(0)) :] *= ACTION_SCALE
    return weights


def _save(folder: Path, weights: dict[str, torch.Tensor], shards: int) -> None:
    if shards == 1:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names = sorted(weights)
    place = {
        name: f"model-{i * shards // len(names) + 1:05d}-of-{shards:05d}.safetensors" for i, name in enumerate(names)
    }
    for file in set(place.values()):
        save_file({n: weights[n] for n in names if place[n] == file}, folder / file, metadata={"format": "pt"})
    total = sum(weight.numel() * weight.element_size() for weight in weights.values())
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": place})


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """An object."""
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
