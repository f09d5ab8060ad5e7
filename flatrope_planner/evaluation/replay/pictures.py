"""Recorded pictures to RGB."""

from typing import Any

from rosbags.typesys.store import Typestore

from flatrope_planner.conversion.decompression import from_compressed
from flatrope_planner.conversion.raw_images import from_image
from flatrope_planner.domain import Image
from flatrope_planner.evaluation.replay.bag_source import RawMessage
from flatrope_planner.evaluation.replay.messages import read
from flatrope_planner.evaluation.replay.topics import COMPRESSED_IMAGE


def decoded_picture(store: Typestore, message: RawMessage) -> tuple[Image, str]:
    """uint8 (H, W, 3), RGB, of an Image or CompressedImage, as the planner node reads it; and its frame_id.

    Raises:
        InputError: if the message contradicts itself, cannot be decoded, or has an encoding that is not supported.
    """
    picture: Any = read(store, message)
    image = from_compressed(picture) if message.message_type == COMPRESSED_IMAGE else from_image(picture)
    return image, picture.header.frame_id
