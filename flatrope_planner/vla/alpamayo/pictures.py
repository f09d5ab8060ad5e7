"""Camera pictures as Qwen's processor resizes them: to whole merged patches, within a number of pixels."""

import math

import numpy as np
import torch
from torch.nn import functional as F

from flatrope_planner.domain import Image
from flatrope_planner.errors import InputError
from flatrope_planner.vla.config import MERGE, PATCH_PX

# Sides are multiples of this (px).
STEP_PX = PATCH_PX * MERGE
MAX_ASPECT = 200


def target_size(height: int, width: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """Height and width (px) that a picture is brought to: nearest multiples of 32, smaller or larger where need be.

    Raises:
        InputError: for a picture that is a mere line.
    """
    if max(height, width) > MAX_ASPECT * min(height, width):
        msg = f"camera image: {width} x {height} px, expected sides that differ less than {MAX_ASPECT}-fold"
        raise InputError(msg)
    rows, columns = round(height / STEP_PX), round(width / STEP_PX)
    if rows * columns * STEP_PX**2 > max_pixels:
        shrink = math.sqrt(height * width / max_pixels)
        rows, columns = (max(1, math.floor(size / shrink / STEP_PX)) for size in (height, width))
    elif rows * columns * STEP_PX**2 < min_pixels:
        grow = math.sqrt(min_pixels / (height * width))
        rows, columns = (math.ceil(size * grow / STEP_PX) for size in (height, width))
    return rows * STEP_PX, columns * STEP_PX


def resized(image: Image, size: tuple[int, int]) -> Image:
    """A uint8 (H, W, 3) picture in another size: bicubic, smoothed beforehand where it shrinks, rounded to bytes."""
    if image.shape[:2] == size:
        return image
    planes = torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))[None]
    small = F.interpolate(planes, size=size, mode="bicubic", align_corners=False, antialias=True)
    return np.ascontiguousarray(small[0].permute(1, 2, 0).numpy())
