"""sensor_msgs/CompressedImage to RGB arrays.

The bytes decide what a picture is, not the `format` string: drivers fill it in as they like. Two things are read from
it: image_transport's order of colours, and whether the picture is one of depths.
"""

import cv2
import numpy as np
from sensor_msgs.msg import CompressedImage

from flatrope_planner.conversion.encodings import pick_channels
from flatrope_planner.conversion.limits import require_bounded_size, shortened
from flatrope_planner.conversion.picture_files import JPEG_SIGNATURE, FileHeader, file_header
from flatrope_planner.domain import Image
from flatrope_planner.errors import InputError, reason

# The camera's pixels as they are: whoever mounts it upside down says so elsewhere.
FLAGS = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
BGR, RGB = (2, 1, 0), (0, 1, 2)
# What a JPEG decoder fills in when a scan ends early.
FILLING = 128
# Entropy-coded data without meaning, and without marks.
MORE_DATA = bytes(range(1, 200)) * 8
END = b"\xff\xd9"


def from_compressed(message: CompressedImage) -> Image:
    """uint8 (H, W, 3), RGB, of a JPEG or PNG; alpha is dropped, 16 bits become 8 (v >> 8).

    Raises:
        InputError: if the bytes are no whole picture, too large a one, or one of depths.
    """
    label = message.format.lower()
    try:
        if "compresseddepth" in label:
            msg = "a picture of depths, expected one of colours"
            raise InputError(msg)
        image = _decoded(bytes(message.data))
    except InputError as err:
        msg = f"compressed image of format {shortened(message.format)}: {err}"
        raise InputError(msg) from err
    # "..., compressed rgb8" is image_transport's word for colours that were swapped before they were compressed.
    return pick_channels(image, RGB if "compressed rgb" in label else BGR)


def _decoded(data: bytes) -> Image:
    """The picture as OpenCV has it, in BGR."""
    header = file_header(data)
    require_bounded_size(header.width, header.height)
    image = _decode(data)
    if image.shape != (header.height, header.width, 3):
        msg = f"decoded to {image.shape[1]}x{image.shape[0]}, its header says {header.width}x{header.height}"
        raise InputError(msg)
    if data.startswith(JPEG_SIGNATURE) and _ends_early(data, header, image):
        msg = "JPEG is cut short: its scan ends before the last row"
        raise InputError(msg)
    return image


def _decode(data: bytes) -> Image:
    # OpenCV answers damaged data with None or with an exception.
    try:
        image = cv2.imdecode(np.frombuffer(data, np.uint8), FLAGS)
    except cv2.error as err:
        msg = f"cannot be decoded: {reason(err)}"
        raise InputError(msg) from err
    if image is None:
        msg = f"{len(data)} bytes cannot be decoded"
        raise InputError(msg)
    return np.asarray(image, np.uint8)


def _ends_early(data: bytes, header: FileHeader, image: Image) -> bool:
    """Whether the decoder ran out of data before the end mark, as when a camera's bus loses packets."""
    if np.any(image[-1, -1] != FILLING):
        return False
    # The corner looks filled in. Then more data changes the picture; a whole one has no use for more.
    longer = _decode(data[: header.end] + MORE_DATA + END)
    return not np.array_equal(longer, image)
