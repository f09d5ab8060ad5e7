"""What can go wrong with the messages of a sensor, by name: each takes a good message and gives those to be sent."""

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from itertools import cycle
from random import Random
from typing import Any, Protocol

import numpy as np
from geometry_msgs.msg import Point, Quaternion, Vector3
from nav_msgs.msg import Odometry
from sensor_msgs.msg import CompressedImage, Image

from flatrope_planner.conversion.stamps import to_nanoseconds, to_time
from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.planning.pose import rotation_matrix

# How far stamps in the future lie ahead.
AHEAD_S = 100.0
ORDERLY = "none"
Distort = Callable[[Any], list[Any]]


class Fault(Protocol):
    """Makes a distortion; one that remembers something begins anew with every call."""

    def __call__(self) -> Distort:
        """A distortion that has seen nothing yet."""
        ...


def _missing() -> Distort:
    return lambda _: []


def _twice() -> Distort:
    return lambda message: [message, message]


def _swapped() -> Distort:
    """Each two messages in the wrong order."""
    held: list[Any] = []

    def distort(message: Any) -> list[Any]:
        if not held:
            held.append(message)
            return []
        return [message, held.pop()]

    return distort


def _stamped(stamp_of: Callable[[int], int]) -> Fault:
    """Messages with the stamp that is made of the right one (ns)."""

    def begin() -> Distort:
        def distort(message: Any) -> list[Any]:
            message = deepcopy(message)
            message.header.stamp = to_time(stamp_of(to_nanoseconds(message.header.stamp)))
            return [message]

        return distort

    return begin


def _frozen_stamp() -> Distort:
    first: list[int] = []

    def stamp_of(stamp_ns: int) -> int:
        first.append(stamp_ns)
        return first[0]

    return _stamped(stamp_of)()


def _truncated() -> Distort:
    def distort(message: Image) -> list[Image]:
        return [_image(message, data=message.data[: len(message.data) // 2])]

    return distort


def _wrong_step() -> Distort:
    """Steps that are too small, zero, and larger than the data has room for."""
    wrong = cycle(((1, -7), (0, 0), (1, 4), (1000, 0)))

    def distort(message: Image) -> list[Image]:
        factor, more = next(wrong)
        return [_image(message, step=factor * message.step + more)]

    return distort


def _unknown_encoding() -> Distort:
    encodings = cycle(("rgb12", "", "h264", "BGR8"))
    return lambda message: [_image(message, encoding=next(encodings))]


def _image(message: Image, **changed: Any) -> Image:
    fields = ("header", "height", "width", "encoding", "is_bigendian", "step", "data")
    return Image(**{name: changed.get(name, getattr(message, name)) for name in fields})


def _random_jpeg() -> Distort:
    """Noise, noise behind the beginning of a JPEG, and nothing."""
    chance, heads = Random(0), cycle((b"", b"\xff\xd8\xff\xe0\x00\x10JFIF\x00", None))

    def distort(message: CompressedImage) -> list[CompressedImage]:
        head = next(heads)
        data = b"" if head is None else head + chance.randbytes(4000)
        return [CompressedImage(header=message.header, format=message.format, data=data)]

    return distort


def _cut_jpeg() -> Distort:
    def distort(message: CompressedImage) -> list[CompressedImage]:
        half = message.data[: len(message.data) // 2]
        return [CompressedImage(header=message.header, format=message.format, data=half)]

    return distort


def _changed_odometry(change: Callable[[Odometry], None]) -> Fault:
    def begin() -> Distort:
        def distort(message: Odometry) -> list[Odometry]:
            message = deepcopy(message)
            change(message)
            return [message]

        return distort

    return begin


def _make_nan(message: Odometry) -> None:
    message.pose.pose.position.x = math.nan
    message.twist.twist.linear.x = math.nan


def _make_infinite(message: Odometry) -> None:
    message.pose.pose.position = Point(x=math.inf, y=-math.inf, z=0.0)


def _lose_rotation(message: Odometry) -> None:
    message.pose.pose.orientation = Quaternion(x=0.0, y=0.0, z=0.0, w=0.0)


def _put_twist_in_parent_frame(message: Odometry) -> None:
    """As many simulators do it, though nav_msgs/Odometry wants the child's frame."""
    q, v = message.pose.pose.orientation, message.twist.twist.linear
    x, y, z = rotation_matrix(np.array([q.x, q.y, q.z, q.w])) @ np.array([v.x, v.y, v.z])
    message.twist.twist.linear = Vector3(x=float(x), y=float(y), z=float(z))


# Of any message with a header.
_ANY: dict[str, Fault] = {
    "missing": _missing,
    "twice": _twice,
    "swapped": _swapped,
    "frozen_stamp": _frozen_stamp,
    "future_stamp": _stamped(lambda stamp_ns: stamp_ns + seconds_to_ns(AHEAD_S)),
    "zero_stamp": _stamped(lambda _: 0),
}
PICTURE_FAULTS: Mapping[str, Fault] = _ANY | {
    "truncated": _truncated,
    "wrong_step": _wrong_step,
    "unknown_encoding": _unknown_encoding,
}
COMPRESSED_FAULTS: Mapping[str, Fault] = _ANY | {"random_jpeg": _random_jpeg, "cut_jpeg": _cut_jpeg}
ODOMETRY_FAULTS: Mapping[str, Fault] = _ANY | {
    "nan": _changed_odometry(_make_nan),
    "infinite": _changed_odometry(_make_infinite),
    "zero_quaternion": _changed_odometry(_lose_rotation),
    "parent_twist": _changed_odometry(_put_twist_in_parent_frame),
}
# Pictures under these are nothing to plan with; their stamps are reported.
GARBAGE = {"truncated", "wrong_step", "unknown_encoding", "random_jpeg", "cut_jpeg", "future_stamp", "zero_stamp"}
