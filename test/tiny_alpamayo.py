"""A small random Alpamayo in NVIDIA's layout, written by this file: nothing of theirs is needed to test against it."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from tiny_nano import SENTENCES, arc
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from flatrope_planner.domain import CameraFrame, EgoHistory, Image, Observation
from flatrope_planner.vla.alpamayo.backbone import expert_config, load_backbone
from flatrope_planner.vla.alpamayo.config import TRAJECTORY_MARKS, AlpamayoConfig, Release
from flatrope_planner.vla.alpamayo.model import AlpamayoModel
from flatrope_planner.vla.alpamayo.vocabulary import marks_of
from flatrope_planner.vla.prompt import prompt_texts

PACKAGES = {Release.R1: "alpamayo_r1", Release.V1_5: "alpamayo1_5"}
NUMBERS, FUTURE_BINS = 4000, 3000
QWEN_NAMES = "endoftext im_start im_end vision_start vision_end vision_pad image_pad video_pad"
QWEN = [f"<|{name}|>" for name in QWEN_NAMES.split()]
# The greater, the likelier an end mark is.
END_SCALE = 3.0
# A few of a car's moments: (speed m/s, curvature 1/m).
STANDING, CRUISE, TIGHT_TURN, FAST = (0.0, 0.0), (8.0, 0.01), (4.0, 0.15), (45.0, 0.001)


def tokenizer() -> Tokenizer:
    """A byte-level tokenizer with Qwen's marks."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=400, show_progress=False, initial_alphabet=alphabet)
    made.train_from_iterator([*SENTENCES * 20, *prompt_texts() * 20, "Front left camera: frame 0 "], trainer)
    made.add_special_tokens([AddedToken(token, special=True) for token in QWEN])
    return made


def write_backbone(folder: Path, unusual: Mapping[str, object] | None = None) -> Tokenizer:
    """Configuration, tokenizer and processor settings of a Qwen3-VL; `unusual` are fields of its text model."""
    folder.mkdir(parents=True)
    made = tokenizer()
    made.save(str(folder / "tokenizer.json"))
    text = {
        "vocab_size": made.get_vocab_size(),
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 8192,
        "rope_theta": 5000000.0,
        "rope_scaling": {"rope_type": "default", "mrope_interleaved": True, "mrope_section": [4, 2, 2]},
        "model_type": "qwen3_vl_text",
        **(unusual or {}),
    }
    vision = {
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_heads": 2,
        "patch_size": 16,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "out_hidden_size": 64,
        "num_position_embeddings": 64,
        "deepstack_visual_indexes": [0, 1],
        "model_type": "qwen3_vl",
    }
    ids = {
        f"{name}_token_id": made.token_to_id(f"<|{token}|>")
        for name, token in (
            ("image", "image_pad"),
            ("video", "video_pad"),
            ("vision_start", "vision_start"),
            ("vision_end", "vision_end"),
        )
    }
    _write(
        folder / "config.json",
        {"model_type": "qwen3_vl", "text_config": text, "vision_config": vision, "tie_word_embeddings": False, **ids},
    )
    _write(
        folder / "preprocessor_config.json",
        {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "patch_size": 16, "merge_size": 2, "resample": 3},
    )
    return made


def config_of(release: Release, base: Tokenizer) -> dict[str, object]:
    """A checkpoint's configuration."""
    package, base_size = PACKAGES[release], base.get_vocab_size()
    added = [mark for mark in marks_of(release) if mark not in QWEN]
    id_of = {mark: base_size + NUMBERS + place for place, mark in enumerate(added)}
    names = ("history", "future", "history_start", "future_start", "history_end", "future_end")
    space = {
        "_target_": f"{package}.action_space.unicycle_accel_curvature.UnicycleAccelCurvatureActionSpace",
        "accel_mean": 0.03,
        "accel_std": 0.7,
        "curvature_mean": 0.0003,
        "curvature_std": 0.026,
        "n_waypoints": 64,
        "dt": 0.1,
    }
    return {
        "model_type": release.value,
        "vlm_name_or_path": "../backbone",
        "vlm_backend": "qwenvl3",
        "model_dtype": "float32",
        "attn_implementation": "sdpa",
        "traj_tokenizer_cfg": {
            "_target_": f"{package}.action_space.discrete_action_space.DiscreteTrajectoryTokenizer",
            "_recursive_": False,
            "action_space_cfg": space,
            "dims_min": [-10.0, -10.0],
            "dims_max": [10.0, 10.0],
            "num_bins": FUTURE_BINS,
        },
        "hist_traj_tokenizer_cfg": {
            "_target_": f"{package}.models.delta_tokenizer.DeltaTrajectoryTokenizer",
            "num_bins": 1000,
        },
        "traj_vocab_size": NUMBERS,
        "tokens_per_history_traj": 48,
        "tokens_per_future_traj": 64,
        "min_pixels": 4096,
        "max_pixels": 16384,
        "add_special_tokens": True,
        "vocab_size": base_size + NUMBERS + len(added),
        "traj_token_start_idx": base_size,
        "traj_token_ids": {name: id_of[f"<|traj_{name}|>"] for name in names},
        "diffusion_cfg": {"_target_": f"{package}.diffusion.flow_matching.FlowMatching", "num_inference_steps": 10},
        "action_space_cfg": space,
        "action_in_proj_cfg": {
            "_target_": f"{package}.models.action_in_proj.PerWaypointActionInProjV2",
            "hidden_size": 48,
            "num_enc_layers": 2,
            # Released models have 100. With random weights that makes a flow in which each step multiplies any
            # difference by five: rounding alone would then decide where it ends.
            "max_freq": 2.0,
            "num_fourier_feats": 20,
        },
        "action_out_proj_cfg": {"_target_": "torch.nn.Linear"},
        "expert_cfg": {
            "hidden_size": 48,
            "intermediate_size": 64,
            "num_attention_heads": 4,
            "head_dim": 16,
            "dtype": "float32",
        },
        "keep_same_dtype": True,
        "expert_non_causal_attention": True,
    }


def write_checkpoint(
    folder: Path,
    release: Release = Release.R1,
    seed: int = 8,
    shards: int = 1,
    changes: Mapping[str, object] | None = None,
) -> Path:
    """Backbone and checkpoint; `changes` replace fields of the configuration. Returns the checkpoint's folder."""
    checkpoint, weights = _made(folder, release, seed, Unusual())
    if changes:
        content = json.loads((checkpoint / "config.json").read_text())
        _write(checkpoint / "config.json", {**content, **changes})
    _save(checkpoint, weights, shards)
    return checkpoint


@dataclass(frozen=True)
class Unusual:
    """What a checkpoint's configuration may say, too: fields of the backbone's text model, and of its own."""

    text: Mapping[str, object] = field(default_factory=dict)
    config: Mapping[str, object] = field(default_factory=dict)


def write_unusual(folder: Path, release: Release, unusual: Unusual) -> Path:
    """As `write_checkpoint`, of weights that fit the unusual configuration."""
    checkpoint, weights = _made(folder, release, 8, unusual)
    _save(checkpoint, weights, 1)
    return checkpoint


def _made(folder: Path, release: Release, seed: int, unusual: Unusual) -> tuple[Path, dict[str, torch.Tensor]]:
    base = write_backbone(folder / "backbone", unusual.text)
    checkpoint = folder / "checkpoint"
    checkpoint.mkdir()
    _write(checkpoint / "config.json", {**config_of(release, base), **unusual.config})
    return checkpoint, _random_weights(checkpoint, base, seed)


def history(speed_mps: float, curvature: float) -> EgoHistory:
    """Poses in single precision, as a data set holds them."""
    driven = arc(speed_mps, curvature)
    return EgoHistory(
        driven.position_m.astype(np.float32).astype(float), driven.rotation.astype(np.float32).astype(float)
    )


@dataclass(frozen=True)
class Case:
    """What a recorded run of NVIDIA's code was given."""

    moment: tuple[float, float]
    # Of the pictures, and of the flow's noise.
    seed: int
    cameras: tuple[str, ...]
    command: str | None = None
    height_px: int = 96
    width_px: int = 160


TWO = ("front_wide", "front_tele")
CASES = {
    "standing": Case(STANDING, 0, TWO),
    "cruise": Case(CRUISE, 1, ("cross_left", "front_wide", "cross_right", "front_tele"), "turn left"),
    # Too large, and too small for the processor.
    "tight": Case(TIGHT_TURN, 2, ("front_wide",), "Turn right onto Oak Ave in 40m", 270, 480),
    "fast": Case(FAST, 3, ("rear_left", "front_tele"), None, 70, 90),
    "guided": Case(CRUISE, 4, TWO, "turn left"),
}


def picture(seed: int, height: int = 96, width: int = 160) -> Image:
    """Random blocks of colour."""
    coarse = np.random.default_rng(seed).integers(0, 256, (-(-height // 8), -(-width // 8), 3), dtype=np.uint8)
    return np.kron(coarse, np.ones((8, 8, 1), dtype=np.uint8))[:height, :width]


def observation(case: Case) -> Observation:
    """Four pictures of each camera, and a history."""
    frames = {
        camera: tuple(
            CameraFrame(100_000_000 * i, picture(100 * case.seed + 10 * place + i, case.height_px, case.width_px))
            for i in range(4)
        )
        for place, camera in enumerate(case.cameras)
    }
    return Observation(300_000_000, frames, history(*case.moment), case.command)


def _random_weights(checkpoint: Path, base: Tokenizer, seed: int) -> dict[str, torch.Tensor]:
    config = AlpamayoConfig.load(checkpoint)
    size = config.vocabulary.size
    assert size is not None
    vlm = load_backbone(checkpoint.parent / "backbone", size)
    model = AlpamayoModel(config, vlm, expert_config(checkpoint, config, vlm.text_config))
    random = torch.Generator().manual_seed(seed)
    weights = {}
    for name, value in sorted(model.state_dict().items()):
        weights[name] = value.clone()
        # Of the others, norms begin at one; scales and frequencies are computed.
        if name.endswith(".bias") or (value.ndim >= 2 and "freqs" not in name):
            weights[name] = torch.randn(value.shape, generator=random) * _spread(name, value)
    head = "vlm.lm_head.weight"
    if vlm.tie_word_embeddings:
        del weights[head]
        head = "vlm.model.language_model.embed_tokens.weight"
    marks = [mark for mark in marks_of(config.release) if mark not in QWEN]
    if not config.vocabulary.marks_of_text:
        marks = [f"<|traj_{name}|>" for name in TRAJECTORY_MARKS]
    for mark in {"<|cot_end|>", "<|traj_future_start|>"} & set(marks):
        weights[head][base.get_vocab_size() + NUMBERS + marks.index(mark)] *= END_SCALE
    if config.release is Release.V1_5:
        computed = ("freqs", "action_space.")
        weights = {name: value for name, value in weights.items() if not any(part in name for part in computed)}
    return weights


def _spread(name: str, value: torch.Tensor) -> float:
    if "embed_tokens" in name:
        return 1.0
    if name.endswith(".bias"):
        return 0.1
    # As with the frequencies: a flow that does not magnify rounding.
    return (0.16 if "action_out_proj" in name else 1.6) / math.sqrt(value[0].numel())


def _save(checkpoint: Path, weights: dict[str, torch.Tensor], shards: int) -> None:
    if shards == 1:
        save_file(weights, checkpoint / "model.safetensors", metadata={"format": "pt"})
        return
    names = sorted(weights)
    place = {
        name: f"model-{i * shards // len(names) + 1:05d}-of-{shards:05d}.safetensors" for i, name in enumerate(names)
    }
    for file in set(place.values()):
        save_file({n: weights[n] for n in names if place[n] == file}, checkpoint / file, metadata={"format": "pt"})
    total = sum(weight.numel() * weight.element_size() for weight in weights.values())
    _write(checkpoint / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": place})


def _write(path: Path, content: Mapping[str, object]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
