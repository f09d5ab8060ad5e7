"""Where a camera's pictures come in the other of their two forms: raw on a topic, compressed on one below it."""

from rclpy.node import Node

RAW, COMPRESSED = "sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"
# Where image_transport, and nearly every driver with it, puts compressed pictures.
SUFFIX = "/compressed"


def other_form(node: Node, topic: str, kind: str) -> str:
    """Who else publishes what is asked for on `topic`, and what to do, in words; "" if nobody does.

    Args:
        node: asks the graph.
        topic: full name of the topic that nobody publishes on.
        kind: of the messages that are asked for, such as sensor_msgs/msg/Image.
    """
    below, above = f"{topic}{SUFFIX}", topic.removesuffix(SUFFIX)
    if kind == RAW and _comes(node, below, COMPRESSED):
        return f"{below} has one: set compressed: true, and camera_topic or the remapping to that topic"
    if kind == COMPRESSED and above != topic and _comes(node, above, RAW):
        return f"{above} has one: set compressed: false, and camera_topic or the remapping to that topic"
    if kind == COMPRESSED and _comes(node, below, COMPRESSED):
        return f"{below} has one: set camera_topic or the remapping to that topic"
    return ""


def _comes(node: Node, topic: str, kind: str) -> bool:
    return any(info.topic_type == kind for info in node.get_publishers_info_by_topic(topic))
