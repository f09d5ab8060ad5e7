"""Messages of a bag as the package's own nouns, without ROS.

Types of ROS are as in every distribution since Humble; our own are as the bag describes them, else as they are now.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.base import TypesysError
from rosbags.typesys.store import Typestore

from flatrope_planner.bringup.configuration import message_definitions
from flatrope_planner.dimensions import NANOSECONDS_PER_SECOND
from flatrope_planner.domain import Floats, ns_to_seconds
from flatrope_planner.errors import InputError, reason
from flatrope_planner.evaluation.bag_writer import PACKAGE, types_in
from flatrope_planner.evaluation.replay.bag_source import RawMessage, header_stamp_ns, ros_type
from flatrope_planner.planning.odometry import OdometrySample
from flatrope_planner.planning.pose import Pose


def typestore_of(connections: Sequence[Connection]) -> Typestore:
    """The types that a replay reads.

    Raises:
        SetupError: if the package's own definitions are missing.
    """
    types = types_in(message_definitions())
    for connection in connections:
        described, name = connection.msgdef.format == MessageDefinitionFormat.MSG, ros_type(connection.msgtype)
        if described and name.startswith(f"{PACKAGE}/"):
            types.update(_described_types(connection.msgdef.data, name))
    store = get_typestore(Stores.ROS2_JAZZY)
    store.register({name: fields for name, fields in types.items() if name.startswith(f"{PACKAGE}/")})
    return store


def _described_types(definition: str, name: str) -> dict[str, Any]:
    """The types that a bag describes; none if that is no description."""
    try:
        return dict(get_types_from_msg(definition, name))
    except TypesysError:
        return {}


def read(store: Typestore, message: RawMessage) -> Any:
    """The message with its fields.

    Raises:
        InputError: if its bytes are none of its type.
    """
    try:
        return store.deserialize_cdr(message.cdr, message.message_type)
    except Exception as err:  # bytes that end too soon show in struct, in NumPy, or in a text
        msg = f"{message.topic}: a message of {len(message.cdr)} bytes is no {message.message_type}: {reason(err)}"
        raise InputError(msg) from err


def stamp_of(message: RawMessage) -> int:
    """The stamp (ns) of a message that begins with a header, without reading the rest.

    Raises:
        InputError: if the message ends before, or has no stamp, or one before time began.
    """
    stamp_ns = header_stamp_ns(message.cdr)
    if stamp_ns is None:
        msg = f"{message.topic}: a message of {len(message.cdr)} bytes has no header"
        raise InputError(msg)
    if not stamp_ns:
        msg = f"{message.topic}: a message without a time stamp"
        raise InputError(msg)
    if stamp_ns < 0:
        msg = f"{message.topic}: a time stamp of {ns_to_seconds(stamp_ns):.3f} s, expected one from 0 on"
        raise InputError(msg)
    return stamp_ns


def nanoseconds(stamp: Any) -> int:
    """A builtin_interfaces/Time or Duration in ns."""
    return int(stamp.sec) * NANOSECONDS_PER_SECOND + int(stamp.nanosec)


def odometry_sample(message: Any) -> OdometrySample:
    """A nav_msgs/Odometry.

    Raises:
        InputError: if a number is not finite or the orientation is no rotation.
    """
    pose, twist = message.pose.pose, message.twist.twist
    return OdometrySample(
        nanoseconds(message.header.stamp),
        vector(pose.position),
        _quaternion(pose.orientation),
        vector(twist.linear),
        float(twist.angular.z),
        message.header.frame_id,
        message.child_frame_id,
    )


def placed(position: Any, orientation: Any) -> Pose:
    """A position and an orientation as a pose."""
    return Pose(float(position.x), float(position.y), float(position.z), _quaternion(orientation))


def vector(value: Any) -> Floats:
    """float64 (3,) of a Point or Vector3."""
    return np.array([value.x, value.y, value.z], dtype=np.float64)


def _quaternion(value: Any) -> Floats:
    return np.array([value.x, value.y, value.z, value.w], dtype=np.float64)
