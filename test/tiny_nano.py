"""A nano with few, random weights, and observations for it: shared by the tests of targets, decoding and training."""

import numpy as np
import torch

from flatrope_planner.domain import CameraFrame, EgoHistory, Floats, Image, Observation
from flatrope_planner.vla.config import NanoConfig
from flatrope_planner.vla.model import NanoModel
from flatrope_planner.vla.nano import NanoTarget
from flatrope_planner.vla.prompt import prompt_texts
from flatrope_planner.vla.tokenizer import NanoTokenizer, train_tokenizer

SENTENCES = (
    "Keep distance to the van ahead because it is braking.",
    "Stop for the pedestrian who crosses from the left.",
    "Accelerate since the lane ahead is free.",
)
CAMERAS = ("front_wide", "front_tele")
SIZES = {
    "text_hidden": 48,
    "text_intermediate": 64,
    "layers": 3,
    "text_heads": 4,
    "head_dim": 12,
    "mrope_section": (2, 2, 2),
    "vision_hidden": 32,
    "vision_intermediate": 48,
    "vision_layers": 2,
    "vision_heads": 2,
    "deepstack_layers": (0, 1),
    "expert_hidden": 24,
    "expert_intermediate": 32,
    "expert_heads": 2,
    "flow_steps": 4,
}


def tiny_tokenizer() -> NanoTokenizer:
    return NanoTokenizer(train_tokenizer([*SENTENCES * 20, *prompt_texts() * 20]))


def tiny_model(seed: int = 0) -> NanoModel:
    """Weights large enough for pictures to matter and for logits to differ clearly."""
    tokenizer = tiny_tokenizer()
    torch.manual_seed(seed)
    model = NanoModel(NanoConfig(tokenizer.size, **SIZES), tokenizer)  # type: ignore[arg-type]
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim >= 2 and "expert" not in name:
                weight.mul_(5.0)
    return model.eval()


def tiny_target(seed: int = 0) -> NanoTarget:
    return NanoTarget(tiny_model(seed), tiny_tokenizer())


def arc(speed_mps: float, curvature: float) -> EgoHistory:
    """Driven at constant speed along a circle that ends at the origin, heading along x."""
    yaw = (np.arange(16) - 15) * 0.1 * speed_mps * curvature
    way = (np.arange(16) - 15) * 0.1 * speed_mps
    x, y = (np.sin(yaw) / curvature, (1 - np.cos(yaw)) / curvature) if curvature else (way, np.zeros(16))
    rotation = np.zeros((16, 3, 3))
    rotation[:, 0, 0] = rotation[:, 1, 1] = np.cos(yaw)
    rotation[:, 1, 0], rotation[:, 0, 1], rotation[:, 2, 2] = np.sin(yaw), -np.sin(yaw), 1.0
    position: Floats = np.stack([x, y, np.zeros(16)], axis=1)
    return EgoHistory(position, rotation)


def noise_picture(seed: int) -> Image:
    coarse = np.random.default_rng(seed).integers(0, 256, (10, 28, 3), dtype=np.uint8)
    return np.kron(coarse, np.ones((16, 16, 1), dtype=np.uint8))


def noise_observation(seed: int, command: str | None = None) -> Observation:
    pictures = [CameraFrame(500_000_000 * (i % 2), noise_picture(10 * seed + i)) for i in range(4)]
    frames = {CAMERAS[0]: tuple(pictures[:2]), CAMERAS[1]: tuple(pictures[2:])}
    return Observation(500_000_000, frames, arc(5.0 + seed, 0.01), command)
