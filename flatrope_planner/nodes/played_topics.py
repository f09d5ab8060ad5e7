"""What of a bag is for the nodes of now: what they listen to, and what there is to look at.

What was said when it was recorded is not. Plans and statuses would stand beside those of now, and commands for
actuators would move a car. Types alone cannot tell: a route hint and a rationale are both texts.
"""

import re
from collections.abc import Iterable

from rosbags.interfaces import Connection, QosDurability

from flatrope_planner.evaluation.replay.bag_source import Topic

COMPRESSED_IMAGE = "sensor_msgs/msg/CompressedImage"
# How image_transport calls what it sends compressed: the last word of the topic.
COMPRESSED = "compressed"
# The player tells the time; and a node's log and parameters are its own.
NEVER = ("/clock", "/rosout", "/parameter_events")
# Sensors, motion, texts, transforms, and what viewers show.
_TYPES = re.compile(
    r"sensor_msgs/msg/(?!Joy).*|nav_msgs/msg/(Odometry|OccupancyGrid)|std_msgs/msg/String|tf2_msgs/msg/TFMessage"
    r"|geometry_msgs/msg/(Transform|(Twist|Accel)(WithCovariance)?)Stamped|visualization_msgs/msg/.*"
)
# What this package's nodes publish in those types, whatever they are called; and how commands are named.
_SAID = re.compile(r".*/output/rationale_text|/simulator/outcome|.*_cmd|.*/cmd_vel(_\w+)?|.*/control/.*")
# Latched in every ROS 2, also where a bag does not say so.
_STATIC = "/tf_static"


def is_for_now(topic: Topic) -> bool:
    """Whether the nodes of now listen to it, or people look at it."""
    fits = _TYPES.fullmatch(topic.message_type) and not _SAID.fullmatch(topic.name)
    return bool(fits) and topic.name not in NEVER


def latched_topics(connections: Iterable[Connection]) -> set[str]:
    """The topics that were kept for those who come later when they were recorded."""
    found = {_STATIC}
    for connection in connections:
        offered = getattr(connection.ext, "offered_qos_profiles", ())
        if offered and all(profile.durability is QosDurability.TRANSIENT_LOCAL for profile in offered):
            found.add(connection.topic)
    return found


def raw_topic(topic: Topic, names: Iterable[str]) -> str | None:
    """Where the pictures of a compressed topic come out raw; nowhere if that is among `names`, the bag's own topics."""
    raw = topic.name.removesuffix(f"/{COMPRESSED}")
    is_compressed = topic.message_type == COMPRESSED_IMAGE and raw not in ("", topic.name)
    return raw if is_compressed and raw not in names else None
