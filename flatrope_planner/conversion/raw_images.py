"""sensor_msgs/Image to RGB arrays.

Colour order follows `encoding`, rows follow `step`: drivers pad rows, and the padding is rarely a whole pixel.
"""

from typing import TYPE_CHECKING

import numpy as np

from flatrope_planner.conversion.encodings import ENCODINGS, RawImage
from flatrope_planner.conversion.limits import require_bounded_size, shortened
from flatrope_planner.domain import Image
from flatrope_planner.errors import InputError

if TYPE_CHECKING:
    # Recorded messages are read where there is no ROS.
    from sensor_msgs.msg import Image as ImageMessage

    from flatrope_planner.conversion.bridge import Bridge


def from_image(message: "ImageMessage", bridge: "Bridge | None" = None) -> Image:
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
