"""Pictures: sensor_msgs/Image and CompressedImage to RGB arrays, and RGB arrays to the bgra8 that CARLA's bridge sends.

Colour order follows `encoding`, rows follow `step`: drivers pad rows, and the padding is rarely a whole pixel.
"""

from array import array

import numpy as np
from sensor_msgs.msg import CompressedImage
from sensor_msgs.msg import Image as ImageMessage

from flatrope_planner.conversion.bridge import Bridge
from flatrope_planner.conversion.decompression import from_compressed
from flatrope_planner.conversion.encodings import ENCODINGS, RawImage, pick_channels
from flatrope_planner.conversion.limits import require_bounded_size, shortened
from flatrope_planner.conversion.stamps import to_header, to_nanoseconds
from flatrope_planner.domain import CameraFrame, Image
from flatrope_planner.errors import InputError

__all__ = ["camera_frame", "from_compressed", "from_image", "to_bgra8"]


def camera_frame(message: ImageMessage | CompressedImage, bridge: Bridge | None = None) -> CameraFrame:
    """The picture of either kind of message with its time of exposure, read by cv_bridge where `bridge` can.

    Raises:
        InputError: if the message contradicts itself, cannot be decoded, or has an encoding that is not supported.
    """
    compressed = isinstance(message, CompressedImage)
    image = from_compressed(message) if compressed else from_image(message, bridge)
    return CameraFrame(to_nanoseconds(message.header.stamp), image)


def from_image(message: ImageMessage, bridge: Bridge | None = None) -> Image:
    """uint8 (H, W, 3), RGB, a copy of the message's pixels; the same with and without cv_bridge.

    Raises:
        InputError: naming the encoding, or the sizes that do not fit each other.
    """
    encoding = ENCODINGS.get(message.encoding)
    if encoding is None:
        msg = f"image encoding {shortened(message.encoding)} is not supported; supported are {', '.join(ENCODINGS)}"
        raise InputError(msg)
    height, width, step = int(message.height), int(message.width), int(message.step)
    require_bounded_size(width, height)
    least_step, data_bytes = encoding.least_step(width), encoding.data_bytes(height, step)
    if step < least_step or len(message.data) != data_bytes:
        msg = (
            f"image of {width}x{height} {message.encoding} with step {step} and {len(message.data)} bytes: "
            f"expected a step of at least {least_step} and, for {height} rows of this step, {data_bytes} bytes"
        )
        raise InputError(msg)
    image = None if bridge is None else bridge.to_rgb(message, padded=step > least_step)
    if image is not None:
        return image
    data = np.frombuffer(message.data, np.uint8)
    return encoding.to_rgb(RawImage(data, height, width, step, bool(message.is_bigendian)))


def to_bgra8(image: Image, stamp_ns: int, frame_id: str) -> ImageMessage:
    """The uint8 (H, W, 3) RGB picture as a message, opaque."""
    height, width, _ = image.shape
    pixels = np.empty((height, width, 4), np.uint8)
    pixels[..., :3] = pick_channels(image, (2, 1, 0))
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
