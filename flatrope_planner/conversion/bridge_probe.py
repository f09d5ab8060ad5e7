"""Prints as JSON what the installed cv_bridge reads as our own codec does; runs in a process of its own (`bridge`)."""

import json
from importlib import import_module
from typing import Any

import numpy as np
from sensor_msgs.msg import Image as ImageMessage

from flatrope_planner.conversion.bridge import Case, read_with
from flatrope_planner.conversion.encodings import ENCODINGS
from flatrope_planner.conversion.images import from_image

# Of even sides, as sub-sampled encodings and bayer patterns have; not square, so that no side is taken for the other.
HEIGHT, WIDTH = 6, 10
# No whole number of pixels or samples in any encoding.
PADDING = 5


def agreed(cv_bridge: Any) -> list[Case]:
    """The cases in which a CvBridge reads noise as our own codec does, in both byte orders where there are two."""
    return [
        (encoding, padded)
        for encoding in ENCODINGS
        for padded in (False, True)
        if all(_agrees(cv_bridge, _noise(encoding, padded, big_endian)) for big_endian in (False, True))
    ]


def _agrees(cv_bridge: Any, message: ImageMessage) -> bool:
    image = read_with(cv_bridge, message)
    return image is not None and np.array_equal(image, from_image(message))


def _noise(encoding: str, padded: bool, big_endian: bool) -> ImageMessage:
    layout = ENCODINGS[encoding]
    step = layout.least_step(WIDTH) + (PADDING if padded else 0)
    noise = np.random.default_rng(0).integers(0, 256, layout.data_bytes(HEIGHT, step), np.uint8)
    message = ImageMessage(height=HEIGHT, width=WIDTH, encoding=encoding, step=step)
    # The byte order of single bytes says nothing; it must not matter there.
    message.is_bigendian = int(big_endian)
    message.data.frombytes(noise.tobytes())
    return message


if __name__ == "__main__":
    print(json.dumps(agreed(import_module("cv_bridge").CvBridge())))
