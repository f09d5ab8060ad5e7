"""ROS time stamps and durations as whole nanoseconds."""

from builtin_interfaces.msg import Duration, Time
from std_msgs.msg import Header

from flatrope_planner.dimensions import NANOSECONDS_PER_SECOND


def to_nanoseconds(stamp: Time | Duration) -> int:
    """The time or duration in ns."""
    return int(stamp.sec) * NANOSECONDS_PER_SECOND + int(stamp.nanosec)


def to_time(nanoseconds: int) -> Time:
    """The ns as a time stamp."""
    sec, nanosec = divmod(int(nanoseconds), NANOSECONDS_PER_SECOND)
    return Time(sec=sec, nanosec=nanosec)


def to_duration(nanoseconds: int) -> Duration:
    """The ns as a duration."""
    sec, nanosec = divmod(int(nanoseconds), NANOSECONDS_PER_SECOND)
    return Duration(sec=sec, nanosec=nanosec)


def to_header(stamp_ns: int, frame_id: str) -> Header:
    """A header of that time and frame."""
    return Header(stamp=to_time(stamp_ns), frame_id=str(frame_id))
