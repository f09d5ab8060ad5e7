"""Pictures: sensor_msgs/Image and CompressedImage to RGB arrays, and RGB arrays to the bgra8 that CARLA's bridge sends.

Colour order follows `encoding`, rows follow `step`: drivers pad rows, and the padding is rarely a whole pixel.
"""

from array import array

import cv2
import numpy as np
from sensor_msgs.msg import CompressedImage
from sensor_msgs.msg import Image as ImageMessage

from flatrope_planner.conversion.stamps import to_header, to_nanoseconds
from flatrope_planner.domain import CameraFrame, Image
from flatrope_planner.errors import InputError

# Encoding -> bytes of a pixel, and which of them are red, green and blue. The 8UC names carry no order; OpenCV's holds.
_LAYOUTS: dict[str, tuple[int, tuple[int, int, int]]] = {
    "rgb8": (3, (0, 1, 2)),
    "bgr8": (3, (2, 1, 0)),
    "rgba8": (4, (0, 1, 2)),
    "bgra8": (4, (2, 1, 0)),
    "mono8": (1, (0, 0, 0)),
    "8UC1": (1, (0, 0, 0)),
    "8UC3": (3, (2, 1, 0)),
    "8UC4": (4, (2, 1, 0)),
}
RGB = (0, 1, 2)


def camera_frame(message: ImageMessage | CompressedImage) -> CameraFrame:
    """The picture of either kind of message with its time of exposure.

    Raises:
        InputError: if the message contradicts itself, cannot be decoded, or has an encoding that is not supported.
    """
    image = from_image(message) if isinstance(message, ImageMessage) else from_compressed(message)
    return CameraFrame(to_nanoseconds(message.header.stamp), image)


def from_image(message: ImageMessage) -> Image:
    """uint8 (H, W, 3), RGB, a copy of the message's pixels.

    Raises:
        InputError: naming the encoding, or the sizes that do not fit each other.
    """
    if message.encoding not in _LAYOUTS:
        msg = f"image encoding {message.encoding!r} is not supported; supported are {', '.join(_LAYOUTS)}"
        raise InputError(msg)
    pixel_bytes, order = _LAYOUTS[message.encoding]
    height, width, step = int(message.height), int(message.width), int(message.step)
    if height == 0 or width == 0 or step < width * pixel_bytes or len(message.data) < height * step:
        msg = (
            f"image of {width}x{height} {message.encoding} with step {step} and {len(message.data)} bytes: "
            f"needs a step of at least {width * pixel_bytes} and {height} rows of it"
        )
        raise InputError(msg)
    rows = np.frombuffer(message.data, np.uint8, height * step).reshape(height, step)
    pixels = rows[:, : width * pixel_bytes].reshape(height, width, pixel_bytes)
    return _pick_channels(pixels, order)


def from_compressed(message: CompressedImage) -> Image:
    """uint8 (H, W, 3), RGB, of a JPEG or PNG.

    Raises:
        InputError: if the bytes are no picture.
    """
    data = np.frombuffer(message.data, np.uint8)
    # OpenCV answers damaged data with None and an empty buffer with an exception.
    decoded = cv2.imdecode(data, cv2.IMREAD_COLOR) if data.size else None
    if decoded is None:
        msg = f"compressed image of format {message.format!r} and {data.size} bytes cannot be decoded"
        raise InputError(msg)
    return _pick_channels(np.asarray(decoded, np.uint8), (2, 1, 0))


def to_bgra8(image: Image, stamp_ns: int, frame_id: str) -> ImageMessage:
    """The uint8 (H, W, 3) RGB picture as a message, opaque."""
    height, width, _ = image.shape
    pixels = np.empty((height, width, 4), np.uint8)
    pixels[..., :3] = _pick_channels(image, (2, 1, 0))
    pixels[..., 3] = 255
    message = ImageMessage(
        header=to_header(stamp_ns, frame_id),
        height=int(height),
        width=int(width),
        encoding="bgra8",
        is_bigendian=0,
        step=int(width) * 4,
    )
    # An array of the right type is taken over as it is; anything else is copied byte by byte (hundreds of ms).
    data = array("B")
    data.frombytes(pixels.data)
    message.data = data
    return message


def _pick_channels(pixels: Image, order: tuple[int, int, int]) -> Image:
    """A (H, W, 3) copy of the channels in that order."""
    # One channel at a time is several times faster than one copy through a reversed view.
    image = np.empty((*pixels.shape[:2], 3), np.uint8)
    for channel, source in zip(RGB, order, strict=True):
        image[..., channel] = pixels[..., source]
    return image
