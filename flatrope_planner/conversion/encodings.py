"""How the bytes of sensor_msgs/Image lie under each encoding in use, and how they become RGB.

Names: sensor_msgs/image_encodings of all ROS 2 distributions, the older ones of YUV too. Samples of 16 bits become 8 by
their upper byte (v >> 8). YUV is ITU-R BT.601 with Y from 16 to 235, as OpenCV and cv_bridge take it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import cv2
import numpy as np

from flatrope_planner.domain import Image
from flatrope_planner.errors import InputError

RGB = (0, 1, 2)
# A bayer pixel borrows two of its colours from its neighbours: OpenCV leaves smaller pictures black.
LEAST_BAYER_PX = 3
NO_COLOUR = 128


@dataclass(frozen=True)
class RawImage:
    """The content of a message whose sizes fit each other."""

    # uint8 (N,).
    data: Image
    height: int
    width: int
    # Bytes from one row to the next.
    step: int
    big_endian: bool = False

    def rows(self, row_bytes: int) -> Image:
        """(H, row_bytes): the beginnings of the rows, a view."""
        return self.data[: self.height * self.step].reshape(self.height, self.step)[:, :row_bytes]

    def samples(self, channels: int, sample_bytes: int) -> Image:
        """(H, W, channels) in 8 bits, a view."""
        shape = (self.height, self.width, channels, sample_bytes)
        rows = self.rows(self.width * channels * sample_bytes)
        return rows.reshape(shape)[..., 0 if self.big_endian else -1]


class Encoding(Protocol):
    """A way to lay out pixels."""

    def least_step(self, width: int) -> int:
        """Bytes of a row without padding."""
        ...

    def data_bytes(self, height: int, step: int) -> int:
        """Bytes of the whole picture."""
        ...

    def to_rgb(self, raw: RawImage) -> Image:
        """uint8 (H, W, 3), a copy.

        Raises:
            InputError: if a picture of this size cannot be in this encoding.
        """
        ...


@dataclass(frozen=True)
class _SinglePlane:
    """Pixels side by side, each of some samples."""

    channels: int
    sample_bytes: int

    def least_step(self, width: int) -> int:
        return width * self.channels * self.sample_bytes

    def data_bytes(self, height: int, step: int) -> int:
        return height * step


@dataclass(frozen=True)
class Channels(_SinglePlane):
    """Every pixel has all its colours."""

    # Which channels are red, green and blue.
    order: tuple[int, int, int]

    def to_rgb(self, raw: RawImage) -> Image:
        """The picture."""
        return pick_channels(raw.samples(self.channels, self.sample_bytes), self.order)


@dataclass(frozen=True)
class Bayer(_SinglePlane):
    """Every pixel has one colour, the others are taken from around it."""

    # OpenCV names the pattern from the second pixel of the second row on, ROS from the first pixel.
    code: int

    def to_rgb(self, raw: RawImage) -> Image:
        """The picture.

        Raises:
            InputError: if it is smaller than the pattern's neighbourhood.
        """
        if min(raw.height, raw.width) < LEAST_BAYER_PX:
            msg = f"bayer image of {raw.width}x{raw.height}, expected at least {LEAST_BAYER_PX}x{LEAST_BAYER_PX}"
            raise InputError(msg)
        mosaic = np.ascontiguousarray(raw.samples(1, self.sample_bytes)[..., 0])
        return np.asarray(cv2.cvtColor(mosaic, self.code), np.uint8)


@dataclass(frozen=True)
class Yuv422(_SinglePlane):
    """Two pixels side by side share U and V."""

    code: int

    def to_rgb(self, raw: RawImage) -> Image:
        """The picture."""
        pairs = -(-raw.width // 2)
        whole = raw.rows(4 * pairs) if raw.step >= 4 * pairs else _completed(raw.rows(2 * raw.width))
        rgb = cv2.cvtColor(np.ascontiguousarray(whole).reshape(raw.height, 2 * pairs, 2), self.code)
        return np.ascontiguousarray(np.asarray(rgb, np.uint8)[:, : raw.width])


@dataclass(frozen=True)
class Yuv420:
    """A plane of Y, then half as many rows of U and V in turn: four pixels share them."""

    code: int

    def least_step(self, width: int) -> int:
        """Rows of U and V hold whole pairs."""
        return 2 * -(-width // 2)

    def data_bytes(self, height: int, step: int) -> int:
        """Both planes have the same step."""
        return (height + -(-height // 2)) * step

    def to_rgb(self, raw: RawImage) -> Image:
        """The picture."""
        height, width = -(-raw.height // 2), -(-raw.width // 2)
        chroma = raw.data[raw.height * raw.step :].reshape(height, raw.step)[:, : 2 * width]
        extra = ((0, 2 * height - raw.height), (0, 2 * width - raw.width))
        luma = np.pad(raw.rows(raw.width), extra, mode="edge")
        rgb = cv2.cvtColorTwoPlane(luma, np.ascontiguousarray(chroma).reshape(height, width, 2), self.code)
        return np.ascontiguousarray(np.asarray(rgb, np.uint8)[: raw.height, : raw.width])


@dataclass(frozen=True)
class Yuv444:
    """A plane of Y, then one of U and V in turn for every pixel, with rows twice as long."""

    def least_step(self, width: int) -> int:
        """Of the plane of Y."""
        return width

    def data_bytes(self, height: int, step: int) -> int:
        """Both planes."""
        return 3 * height * step

    def to_rgb(self, raw: RawImage) -> Image:
        """The picture."""
        chroma = raw.data[raw.height * raw.step :].reshape(raw.height, 2 * raw.step)[:, : 2 * raw.width]
        # OpenCV knows this colour space only with shared U and V: each pixel shares them with a double of its own.
        doubled = np.empty((raw.height, raw.width, 2, 2), np.uint8)
        doubled[..., 0] = raw.rows(raw.width)[..., None]
        doubled[..., 1] = chroma.reshape(raw.height, raw.width, 2)
        rgb = cv2.cvtColor(doubled.reshape(raw.height, 2 * raw.width, 2), cv2.COLOR_YUV2RGB_YUYV)
        return np.asarray(rgb, np.uint8)[:, ::2].copy()


def pick_channels(pixels: Image, order: tuple[int, int, int]) -> Image:
    """A (H, W, 3) copy of the channels in that order."""
    # One channel at a time is several times faster than one copy through a reversed view.
    image = np.empty((*pixels.shape[:2], 3), np.uint8)
    for channel, source in zip(RGB, order, strict=True):
        image[..., channel] = pixels[..., source]
    return image


def _completed(rows: Image) -> Image:
    """Rows of an odd number of YUV 4:2:2 pixels with the half that the last pair lacks, as in the pair before."""
    lacking = rows[:, -4:-2] if rows.shape[1] > 2 else np.full((len(rows), 2), NO_COLOUR, np.uint8)
    return np.concatenate([rows, lacking], axis=1)


def _channel_encodings() -> dict[str, Encoding]:
    # The 8UC and 16UC names carry no order of colours; OpenCV's holds.
    layouts = {
        (3, (0, 1, 2)): ("rgb8", "rgb16"),
        (3, (2, 1, 0)): ("bgr8", "bgr16", "8UC3", "16UC3"),
        (4, (0, 1, 2)): ("rgba8", "rgba16"),
        (4, (2, 1, 0)): ("bgra8", "bgra16", "8UC4", "16UC4"),
        (1, (0, 0, 0)): ("mono8", "mono16", "8UC1", "16UC1"),
    }
    return {
        name: Channels(channels, 2 if "16" in name else 1, order)
        for (channels, order), names in layouts.items()
        for name in names
    }


def _bayer_encodings() -> dict[str, Encoding]:
    codes = {
        "rggb": cv2.COLOR_BayerBG2RGB,
        "bggr": cv2.COLOR_BayerRG2RGB,
        "gbrg": cv2.COLOR_BayerGR2RGB,
        "grbg": cv2.COLOR_BayerGB2RGB,
    }
    return {
        f"bayer_{pattern}{8 * sample_bytes}": Bayer(1, sample_bytes, code)
        for pattern, code in codes.items()
        for sample_bytes in (1, 2)
    }


ENCODINGS: Mapping[str, Encoding] = {
    **_channel_encodings(),
    **_bayer_encodings(),
    **dict.fromkeys(("uyvy", "yuv422"), Yuv422(2, 1, cv2.COLOR_YUV2RGB_UYVY)),
    **dict.fromkeys(("yuyv", "yuv422_yuy2"), Yuv422(2, 1, cv2.COLOR_YUV2RGB_YUYV)),
    "nv12": Yuv420(cv2.COLOR_YUV2RGB_NV12),
    "nv21": Yuv420(cv2.COLOR_YUV2RGB_NV21),
    "nv24": Yuv444(),
}
