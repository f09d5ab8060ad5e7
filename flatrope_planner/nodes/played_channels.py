"""The channels of the sensor player: what each sends of a drive at a moment, and what is wrong with it for now."""

from array import array
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import cv2
from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import CompressedImage, Image

from flatrope_planner.conversion.odometry import odometry_message
from flatrope_planner.conversion.stamps import to_header, to_nanoseconds
from flatrope_planner.domain import Image as Picture
from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.drive import PICTURE_STEPS, STEP_S, Drive
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.message_faults import (
    COMPRESSED_FAULTS,
    GARBAGE,
    ODOMETRY_FAULTS,
    ORDERLY,
    PICTURE_FAULTS,
    Fault,
)

FRAME, EGO = "map", "ego_vehicle"
JPEG_QUALITY = 90


class Channel(Protocol):
    """One sensor."""

    def obey(self, fault: str) -> None:
        """Let this be wrong with all messages to come, `none` for nothing.

        Raises:
            InputError: when there is no such fault.
        """
        ...

    def play(self, stamp_ns: int) -> None:
        """Send what the sensor measures now."""
        ...

    @property
    def matched(self) -> bool:
        """Whether anyone listens."""
        ...


class _Outlet:
    """A publisher behind a fault."""

    def __init__(self, publisher: Any, faults: Mapping[str, Fault]) -> None:
        self.publisher, self._faults = publisher, faults
        self.obey(ORDERLY)

    def obey(self, fault: str) -> bool:
        """Take up a fault; False when there is no such one of this kind of message."""
        known = fault == ORDERLY or fault in self._faults
        self.fault = fault if known else ORDERLY
        self._distort = self._faults[fault]() if self.fault != ORDERLY else None
        return known

    def send(self, message: Any) -> list[Any]:
        """Send the message, or what the fault makes of it; returns that."""
        messages = [message] if self._distort is None else self._distort(message)
        for each in messages:
            self.publisher.publish(each)
        return messages


class OdometryChannel:
    """nav_msgs/Odometry at every step."""

    def __init__(self, node: Node, drive: Drive) -> None:
        """Publish on behalf of the node."""
        self._drive = drive
        self._outlet = _Outlet(node.create_publisher(Odometry, "/drive/odometry", qos.BRIDGE_OUTPUT), ODOMETRY_FAULTS)

    def obey(self, fault: str) -> None:
        """See `Channel`."""
        if not self._outlet.obey(fault):
            raise InputError(_unknown("odometry", fault, ODOMETRY_FAULTS))

    def play(self, stamp_ns: int) -> None:
        """See `Channel`."""
        self._outlet.send(odometry_message(self._drive.odometry_at(stamp_ns), FRAME, EGO))

    @property
    def matched(self) -> bool:
        """See `Channel`."""
        return bool(self._outlet.publisher.get_subscription_count())


class PictureChannel:
    """Pictures of one camera at every other step: raw, and compressed when someone wants it."""

    def __init__(
        self, node: Node, drive: Drive, camera: tuple[int, str], report_garbage: Callable[[int], None]
    ) -> None:
        """Publish on behalf of the node; `camera` is its number in the drive and its name."""
        self._drive, (self._number, self._name), self._report_garbage = drive, camera, report_garbage
        topic = f"/drive/{self._name}/image"
        self._raw = _Outlet(node.create_publisher(Image, topic, qos.BRIDGE_OUTPUT), PICTURE_FAULTS)
        compressed = node.create_publisher(CompressedImage, f"{topic}/compressed", qos.BRIDGE_OUTPUT)
        self._compressed = _Outlet(compressed, COMPRESSED_FAULTS)

    def obey(self, fault: str) -> None:
        """See `Channel`."""
        # Both are told, even when the first one knows it.
        if not any([self._raw.obey(fault), self._compressed.obey(fault)]):
            raise InputError(_unknown(self._name, fault, {**PICTURE_FAULTS, **COMPRESSED_FAULTS}))

    def play(self, stamp_ns: int) -> None:
        """See `Channel`."""
        if round(stamp_ns / seconds_to_ns(STEP_S)) % PICTURE_STEPS:
            return
        picture = self._drive.picture_at(stamp_ns, self._number)
        for outlet, make in ((self._raw, _raw), (self._compressed, _compressed)):
            if outlet.publisher.get_subscription_count():
                sent = outlet.send(make(picture, stamp_ns, f"{EGO}/{self._name}"))
                if outlet.fault in GARBAGE:
                    for message in sent:
                        self._report_garbage(to_nanoseconds(message.header.stamp))

    @property
    def matched(self) -> bool:
        """See `Channel`."""
        return any(outlet.publisher.get_subscription_count() for outlet in (self._raw, self._compressed))


def _raw(picture: Picture, stamp_ns: int, frame_id: str) -> Image:
    height, width, channels = picture.shape
    size = {"height": height, "width": width, "step": width * channels}
    # An array of bytes is taken over as it is.
    return Image(header=to_header(stamp_ns, frame_id), encoding="rgb8", data=array("B", picture.tobytes()), **size)


def _compressed(picture: Picture, stamp_ns: int, frame_id: str) -> CompressedImage:
    bgr = cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)
    _, data = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return CompressedImage(header=to_header(stamp_ns, frame_id), format="jpeg", data=array("B", data.tobytes()))


def _unknown(channel: str, fault: str, faults: Mapping[str, Fault]) -> str:
    return f"{channel} knows no fault {fault!r}; it knows {', '.join([ORDERLY, *faults])}"
