"""Pictures as other cameras in other light would have taken them: nothing moves, so actions and rationale stay true."""

from dataclasses import dataclass

import cv2
import numpy as np

from flatrope_planner.domain import Floats, Image
from flatrope_planner.simulation.sensor_noise import add_noise

GAIN_RANGE = (0.75, 1.25)
BIAS_RANGE = (-18.0, 18.0)
CHANNEL_GAIN_RANGE = (0.94, 1.06)
NOISE_MAX = 5.0
PLAIN_SHARE = 0.25


@dataclass(frozen=True)
class Look:
    """Light and sensor of one drive."""

    # uint8 (256, 1, 3): what becomes of each grey level, channel by channel.
    curve: Image
    # Standard deviation of the noise, in grey levels.
    noise: float


def draw_look(rng: np.random.Generator) -> Look:
    """Brightness, contrast, tint and noise; some drives stay as they are."""
    if rng.uniform() < PLAIN_SHARE:
        return Look(_curve(np.ones(3), 0.0), 0.0)
    gain = rng.uniform(*GAIN_RANGE) * rng.uniform(*CHANNEL_GAIN_RANGE, size=3)
    return Look(_curve(gain, rng.uniform(*BIAS_RANGE)), float(rng.uniform(0.0, NOISE_MAX)))


def apply_look(picture: Image, look: Look, rng: np.random.Generator) -> Image:
    """A picture (H, W, 3) with the look of its drive and noise of its own."""
    seen: Image = np.asarray(cv2.LUT(picture, look.curve), dtype=np.uint8)
    add_noise(seen, look.noise, int(rng.integers(1 << 31)))
    return seen


def _curve(gain: Floats, bias: float) -> Image:
    levels: Floats = (np.arange(256.0)[:, None, None] - 128.0) * gain + 128.0 + bias
    return np.asarray(np.clip(levels, 0.0, 255.0), dtype=np.uint8)
