"""Camera pictures as the embedded target wants them: one size, encoded small for storage."""

import cv2
import numpy as np

from flatrope_planner.domain import Image
from flatrope_planner.errors import InputError

# Size every picture is brought to before it is cut into patches (px).
PICTURE_WIDTH = 448
PICTURE_HEIGHT = 160

JPEG_QUALITY = 95


def resize_picture(image: Image) -> Image:
    """Any (H, W, 3) uint8 RGB picture -> (160, 448, 3), area-averaged."""
    if image.shape[:2] == (PICTURE_HEIGHT, PICTURE_WIDTH):
        return image
    small = cv2.resize(image, (PICTURE_WIDTH, PICTURE_HEIGHT), interpolation=cv2.INTER_AREA)
    return np.asarray(small, dtype=np.uint8)


def encode_picture(image: Image) -> bytes:
    """Resize an RGB picture to the target's size and store it as JPEG."""
    bgr = cv2.cvtColor(resize_picture(image), cv2.COLOR_RGB2BGR)
    _, encoded = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return encoded.tobytes()


def decode_picture(encoded: bytes) -> Image:
    """JPEG or PNG bytes -> uint8 (H, W, 3) RGB.

    Raises:
        InputError: when the bytes are no picture.
    """
    bgr = cv2.imdecode(np.frombuffer(encoded, dtype=np.uint8), cv2.IMREAD_COLOR)
    if bgr is None:
        msg = f"picture: {len(encoded)} bytes that are neither JPEG nor PNG"
        raise InputError(msg)
    return np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), dtype=np.uint8)
