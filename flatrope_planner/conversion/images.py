"""Pictures: messages of either kind to RGB arrays, and RGB arrays to the bgra8 that CARLA's bridge sends."""

from array import array

import numpy as np
from sensor_msgs.msg import CompressedImage
from sensor_msgs.msg import Image as ImageMessage

from flatrope_planner.conversion.bridge import Bridge
from flatrope_planner.conversion.decompression import from_compressed
from flatrope_planner.conversion.encodings import pick_channels
from flatrope_planner.conversion.limits import require_bounded_name
from flatrope_planner.conversion.raw_images import from_image
from flatrope_planner.conversion.stamps import to_header, to_nanoseconds
from flatrope_planner.domain import CameraFrame, Image

__all__ = ["camera_frame", "from_compressed", "from_image", "to_bgra8"]


def camera_frame(message: ImageMessage | CompressedImage, bridge: Bridge | None = None) -> CameraFrame:
    """The picture of either kind of message with its time of exposure, read by cv_bridge where `bridge` can.

    Raises:
        InputError: if the message contradicts itself, cannot be decoded, has an encoding that is not supported, or a
            frame with a name without end.
    """
    require_bounded_name("frame_id", message.header.frame_id)
    compressed = isinstance(message, CompressedImage)
    image = from_compressed(message) if compressed else from_image(message, bridge)
    return CameraFrame(to_nanoseconds(message.header.stamp), image)


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
