"""Noise of an image sensor, cut out of a bank: to draw it anew takes longer than to draw the picture."""

from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from flatrope_planner.domain import Image

LEVEL_STEP = 0.5
MARGIN_PX = 64


def add_noise(image: Image, level: float, place: int) -> None:
    """Add normal noise to a picture (H, W, 3) in place.

    Args:
        image: the picture.
        level: standard deviation in grey levels, used to the next half.
        place: which of 4096 cuts of the bank to take.
    """
    height, width = image.shape[:2]
    bank = _noise_bank(height, width, round(level / LEVEL_STEP))
    dy, dx = place % MARGIN_PX, place // MARGIN_PX % MARGIN_PX
    cv2.add(image, bank[dy : dy + height, dx : dx + width], dst=image, dtype=cv2.CV_8U)


@lru_cache(maxsize=32)
def _noise_bank(height: int, width: int, steps: int) -> NDArray[np.int16]:
    """Noise of one strength, larger than a picture."""
    shape = (height + MARGIN_PX, width + MARGIN_PX, 3)
    noise = np.random.default_rng(7).normal(0.0, steps * LEVEL_STEP, shape)
    return np.round(noise).astype(np.int16)
