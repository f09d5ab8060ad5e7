"""Messages of cameras and odometry as no driver should send them: valid ones with some fields broken at random.

What is checked field by field is met field by field; noise alone would be refused at the first check.
"""

from array import array
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

import cv2
import numpy as np
from nav_msgs.msg import Odometry
from sensor_msgs.msg import CompressedImage
from sensor_msgs.msg import Image as ImageMessage

from flatrope_planner.conversion.encodings import ENCODINGS
from flatrope_planner.conversion.stamps import to_header, to_time
from flatrope_planner.domain import seconds_to_ns

Message: TypeAlias = ImageMessage | CompressedImage | Odometry

PERIOD_S = 0.02
LARGEST_PX = 24
BROKEN_SHARE, STRANGE_STAMP_SHARE = 0.6, 0.05
# So many messages with whole odometry, so many with broken: else no observation would ever come together.
SPELL = 200
STRANGE_ENCODINGS = (
    *("", " ", "BGR8", "bgr8 ", "bgr", "8UC2", "8UC5", "8SC1", "16UC1; compressedDepth", "16SC3", "32FC1", "64FC4"),
    *("yuv420", "bayer_xxxx8", "jpeg", "\u00e4\u00f6\u00fc", "\U0001f697", "rgb8\x00", "rgb8\n", "%s%n", "x" * 5000),
)
STRANGE_COUNTS = (0, 1, 2, 3, 255, 65_535, 2**24, 2**31 - 1, 2**31, 2**32 - 1, -1, -(2**31))
STRANGE_NUMBERS = (
    *(float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 5e-324, 1e-300, 1e308, -1e308, 1e7, 1.1e7, 99.0, 101.0),
    *(1e16, -3.0, 0.5),
)
FORMATS = (
    *("jpeg", "png", "", "jpg", "bgr8; jpeg compressed bgr8", "rgb8; jpeg compressed rgb8", "mono8; png compressed "),
    *("16UC1; compressedDepth png", "32FC1; compressedDepth", "tiff", "h264", "\u00e4", ";" * 3000),
)
FRAMES = ("map", "map", "map", "map", "odom", "", "\u00e4", "/world")
STRANGE_SECONDS = (0, -1, 1, 2**31 - 1, -(2**31), 1_700_000_000)
STRANGE_NANOSECONDS = (0, 1, 999_999_999, 1_000_000_000, 2**32 - 1)


class BrokenMessages:
    """An endless, repeatable stream of messages of a drive, most of them broken."""

    def __init__(self, seed: int) -> None:
        """The stream of that seed."""
        self._random = Random(seed)
        self._numbers = np.random.default_rng(seed)
        self._time_s, self._made = 1.0, 0
        self._files = [_file(self._numbers, number) for number in range(24)]

    def next(self) -> Message:
        """The next message."""
        self._time_s += PERIOD_S
        self._made += 1
        makers: list[Callable[[], Message]] = [self._image, self._compressed, self._odometry]
        message = self._random.choices(makers, (5, 2, 5))[0]()
        if not self._calm and self._random.random() < STRANGE_STAMP_SHARE:
            message.header.stamp.sec = self._random.choice(STRANGE_SECONDS)
            message.header.stamp.nanosec = self._random.choice(STRANGE_NANOSECONDS)
        return message

    @property
    def _calm(self) -> bool:
        return self._made // SPELL % 2 == 0

    def _broken(self, *ways: Callable[[], None]) -> None:
        if self._random.random() < BROKEN_SHARE:
            for way in self._random.choices(ways, k=self._random.randint(1, 3)):
                way()

    def _image(self) -> ImageMessage:
        encoding = self._random.choice(list(ENCODINGS))
        layout, height, width = ENCODINGS[encoding], self._size_px(), self._size_px()
        step = layout.least_step(width) + self._random.choice((0, 0, 1, 2, 5, 64))
        message = ImageMessage(
            header=to_header(seconds_to_ns(self._time_s), "camera"),
            height=height,
            width=width,
            encoding=encoding,
            is_bigendian=self._random.choice((0, 0, 1, 255)),
            step=step,
            data=array("B", self._numbers.bytes(layout.data_bytes(height, step))),
        )

        def break_encoding() -> None:
            message.encoding = self._random.choice((*STRANGE_ENCODINGS, *ENCODINGS))

        def break_size() -> None:
            name = self._random.choice(("height", "width", "step"))
            near = getattr(message, name) + self._random.choice((-2, -1, 1, 2))
            setattr(message, name, self._random.choice((near, *STRANGE_COUNTS)))

        def break_data() -> None:
            message.data = array("B", self._damaged(message.data.tobytes()))

        self._broken(break_encoding, break_size, break_data)
        return message

    def _compressed(self) -> CompressedImage:
        message = CompressedImage(
            header=to_header(seconds_to_ns(self._time_s), "camera"),
            format=self._random.choice(FORMATS),
            data=array("B", self._random.choice(self._files)),
        )

        def break_data() -> None:
            message.data = array("B", self._damaged(message.data.tobytes()))

        self._broken(break_data)
        return message

    def _odometry(self) -> Odometry:
        message = Odometry(header=to_header(seconds_to_ns(self._time_s), "map"), child_frame_id="base_link")
        pose, twist = message.pose.pose, message.twist.twist
        pose.position.x, pose.orientation.w, twist.linear.x = 8.0 * self._time_s, 1.0, 8.0

        def break_number() -> None:
            part = self._random.choice((pose.position, pose.orientation, twist.linear, twist.angular))
            name = self._random.choice(list(part.get_fields_and_field_types()))
            setattr(part, name, self._random.choice((*STRANGE_NUMBERS, self._random.gauss(0.0, 10.0))))

        def break_frames() -> None:
            message.header.frame_id = self._random.choice(FRAMES)
            message.child_frame_id = self._random.choice(FRAMES)

        def break_time() -> None:
            message.header.stamp = to_time(seconds_to_ns(self._time_s + self._random.gauss(0.0, 1.0)))

        if not self._calm:
            self._broken(break_number, break_number, break_frames, break_time)
        return message

    def _size_px(self) -> int:
        return self._random.randrange(LARGEST_PX)

    def _damaged(self, data: bytes) -> bytes:
        """Some bytes changed, cut off, put in, or doubled; or other bytes altogether."""
        random, changed = self._random, bytearray(data)
        place = random.randrange(len(data) + 1)
        kind = random.randrange(6)
        if kind == 0:
            return data[:place]
        if kind == 1:
            return data[:place] + self._numbers.bytes(random.randrange(1, 40)) + data[place:]
        if kind == 2:
            return data[:place] + data[random.randrange(place + 1) :]
        if kind == 3:
            return self._numbers.bytes(random.randrange(200))
        if kind == 4:
            # A JPEG with its end mark, but not all of its scan.
            return data[:place] + data[-2:]
        for _ in range(random.randint(1, 8)):
            if changed:
                changed[random.randrange(len(changed))] = random.choice((0, 255, random.randrange(256)))
        return bytes(changed)


def _file(numbers: np.random.Generator, number: int) -> bytes:
    """A small JPEG or PNG, grey or in colour, of 8 or 16 bits, plain or progressive."""
    height, width = (int(size) for size in numbers.integers(1, LARGEST_PX, 2))
    channels: Sequence[int] = ((1, 3), (1, 3, 4))[number % 2]
    shape = (height, width, channels[number % len(channels)])
    if number % 2:
        deep = number % 4 == 1
        picture = numbers.integers(0, 65_536 if deep else 256, shape, np.uint16 if deep else np.uint8)
        return bytes(cv2.imencode(".png", picture)[1].tobytes())
    options = [cv2.IMWRITE_JPEG_PROGRESSIVE, number // 2 % 2, cv2.IMWRITE_JPEG_RST_INTERVAL, number // 4 % 2]
    return bytes(cv2.imencode(".jpg", numbers.integers(0, 256, shape, np.uint8), options)[1].tobytes())
