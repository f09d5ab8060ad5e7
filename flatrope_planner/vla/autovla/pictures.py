"""Camera pictures as Qwen2.5-VL's processor prepares the frames of a video, to the byte: resized by Pillow, scaled."""

import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from flatrope_planner.domain import Image
from flatrope_planner.errors import InputError
from flatrope_planner.vla.autovla.config import IMAGE_MEAN, IMAGE_STD, MERGE, PATCH_PX

# Sides are multiples of this (px).
STEP_PX = PATCH_PX * MERGE
MAX_ASPECT = 200


def target_size(height: int, width: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """Height and width (px) that a picture is brought to: nearest multiples of 28, smaller or larger where need be.

    Raises:
        InputError: for a picture that is a mere line.
    """
    if max(height, width) > MAX_ASPECT * min(height, width):
        msg = f"camera image: {width} x {height} px, expected sides that differ less than {MAX_ASPECT}-fold"
        raise InputError(msg)
    rows, columns = (max(1, round(size / STEP_PX)) for size in (height, width))
    if rows * columns * STEP_PX**2 > max_pixels:
        shrink = math.sqrt(height * width / max_pixels)
        rows, columns = (math.floor(size / shrink / STEP_PX) for size in (height, width))
    elif rows * columns * STEP_PX**2 < min_pixels:
        grow = math.sqrt(min_pixels / (height * width))
        rows, columns = (math.ceil(size * grow / STEP_PX) for size in (height, width))
    if not rows or not columns:
        msg = f"camera image: {width} x {height} px does not fit into {max_pixels} pixels of whole patches"
        raise InputError(msg)
    return rows * STEP_PX, columns * STEP_PX


def resized(image: Image, size: tuple[int, int]) -> Image:
    """A uint8 (H, W, 3) picture in another size: Pillow's bicubic."""
    if image.shape[:2] == size:
        return image
    made = Pillow.fromarray(np.ascontiguousarray(image)).resize(size[::-1], Pillow.Resampling.BICUBIC)
    return np.asarray(made, dtype=np.uint8)


def patches_of(pair: Image) -> NDArray[np.float32]:
    """Two frames, uint8 (2, H, W, 3) -> (patches, 1176): in Qwen's order, merged blocks together.

    The steps are those of transformers' processor, in its precisions: a byte is scaled in double precision, rounded,
    then normalised in single precision.
    """
    mean, std = (np.array(values, dtype=np.float32) for values in (IMAGE_MEAN, IMAGE_STD))
    scaled = ((pair * (1 / 255)).astype(np.float32) - mean) / std
    rows, columns = (size // STEP_PX for size in pair.shape[1:3])
    blocks = scaled.reshape(2, rows, MERGE, PATCH_PX, columns, MERGE, PATCH_PX, 3)
    # (row, column, row in block, column in block, channel, frame, y, x)
    ordered = blocks.transpose(1, 4, 2, 5, 7, 0, 3, 6)
    return np.ascontiguousarray(ordered.reshape(rows * columns * MERGE**2, -1))
