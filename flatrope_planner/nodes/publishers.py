"""Who publishes on a topic, and who of them cannot be heard, with the reason: types and qualities of service."""

from dataclasses import dataclass

from rclpy.node import Node
from rclpy.qos import (
    QoSCompatibility,
    QoSDurabilityPolicy,
    QoSProfile,
    QoSReliabilityPolicy,
    qos_check_compatible,
)
from rclpy.topic_endpoint_info import TopicEndpointInfo

from flatrope_planner.nodes.input_topics import InputTopic
from flatrope_planner.nodes.picture_forms import other_form

# What rcl calls the node of a publisher that it has heard of before its node.
UNRESOLVED = "_NODE_NAME_UNKNOWN_"


@dataclass(frozen=True)
class Publishers:
    """The publishers of one topic as one subscription sees them."""

    # Full names of the nodes whose messages arrive.
    heard: tuple[str, ...] = ()
    # Why those of the others do not, each in words that name the node.
    unheard: tuple[str, ...] = ()
    # Where what is asked for comes in another form, where there are no publishers; "" for nowhere.
    elsewhere: str = ""

    @property
    def count(self) -> int:
        """All of them."""
        return len(self.heard) + len(self.unheard)

    def none_heard(self, topic: str) -> str | None:
        """Why nothing can come on `topic`, in words; None if something could."""
        if self.count == 0:
            return f"no publisher on {topic}{self.elsewhere and f', but {self.elsewhere}'}"
        return None if self.heard else f"{topic} cannot be heard: {'; '.join(self.unheard)}"


def publishers_of(node: Node, topic: InputTopic) -> Publishers:
    """The publishers that `node` has found for one of its inputs."""
    heard, unheard = [], []
    name = node.resolve_topic_name(topic.name)
    for info in node.get_publishers_info_by_topic(name):
        why = _why_unheard(info, topic)
        if why is None:
            heard.append(_full_name(info))
        else:
            unheard.append(f"{_full_name(info)} {why}")
    elsewhere = "" if heard or unheard else other_form(node, name, topic.type_name)
    return Publishers(tuple(heard), tuple(unheard), elsewhere)


def mismatch(offered: QoSProfile, asked: QoSProfile) -> str | None:
    """Why a publisher that offers this quality of service is not heard by who asks for that one; None if it is."""
    compatibility, reason = qos_check_compatible(offered, asked)
    if compatibility != QoSCompatibility.ERROR:
        return None
    parts = []
    if asked.reliability == QoSReliabilityPolicy.RELIABLE and offered.reliability == QoSReliabilityPolicy.BEST_EFFORT:
        parts.append("offers best_effort, asked for is reliable")
    if asked.durability == QoSDurabilityPolicy.TRANSIENT_LOCAL and offered.durability == QoSDurabilityPolicy.VOLATILE:
        parts.append("offers volatile, asked for is transient_local")
    return f"QoS mismatch: {', '.join(parts) or reason}"


def _why_unheard(info: TopicEndpointInfo, topic: InputTopic) -> str | None:
    if info.topic_type != topic.type_name:
        return f"(type mismatch: publishes {info.topic_type}, asked for is {topic.type_name})"
    why = mismatch(info.qos_profile, topic.qos)
    return None if why is None else f"({why})"


def _full_name(info: TopicEndpointInfo) -> str:
    if info.node_name == UNRESOLVED:
        return "a publisher whose node is not known"
    return f"{info.node_namespace.rstrip('/')}/{info.node_name}"
