"""sensor_msgs/Image to CompressedImage."""

import cv2
from sensor_msgs.msg import CompressedImage, Image

from flatrope_planner.conversion.images import from_image


def to_jpeg(message: Image, quality: int) -> CompressedImage:
    """The same picture as JPEG, quality 1 to 100, with the same header.

    Raises:
        InputError: if the message is no picture.
    """
    bgr = cv2.cvtColor(from_image(message), cv2.COLOR_RGB2BGR)
    _, encoded = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return CompressedImage(header=message.header, format="jpeg", data=encoded.tobytes())
