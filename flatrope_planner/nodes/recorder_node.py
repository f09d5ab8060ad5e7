"""Recorder node: writes the topics it is told, or every one it finds, into one .mcap file, pictures compressed.

Small beside rosbag2, and there where rosbag2 is not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Image

from flatrope_planner.bringup.configuration import message_definitions
from flatrope_planner.conversion.compression import to_jpeg
from flatrope_planner.conversion.stamps import to_nanoseconds
from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.bag_writer import BagWriter
from flatrope_planner.evaluation.replay.output_folder import writing_to
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.console import Console
from flatrope_planner.nodes.declared import read_parameters
from flatrope_planner.nodes.parameters import Range
from flatrope_planner.nodes.running import run_node

# How often new topics are looked for (s of wall time).
SEARCH_PERIOD_S = 0.2
WARN_EVERY_S = 5.0
QUEUE_DEPTH = 100
IMAGE, COMPRESSED_IMAGE = "sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"
# Of no use in a replay: time is in every record, and the rest is about nodes.
LEFT_OUT = ("/clock", "/rosout", "/parameter_events")


@dataclass(frozen=True)
class RecorderParameters:
    """config/recorder.param.yaml."""

    file: str
    topics: str
    picture_period_s: Annotated[float, Range(0.0, 10.0)]
    picture_quality: Annotated[int, Range(1, 100)]
    show: bool


class RecorderNode(Node):
    """Subscribes to whatever appears and writes it down as it comes."""

    finished = False

    def __init__(self) -> None:
        """Open the file and begin to look for topics.

        Raises:
            InputError: on a parameter that is not valid.
            SetupError: if the message definitions are not installed.
        """
        super().__init__("recorder")
        self._settings = parameters = read_parameters(self, RecorderParameters, "recorder.param.yaml")
        self._bag = BagWriter(Path(parameters.file), message_definitions())
        self._bag.open()
        # Empty: all.
        self._wanted = frozenset(parameters.topics.split())
        self._recorded: set[str] = set()
        self._last_picture_ns: dict[str, int] = {}
        self.pictures = 0
        if parameters.show:
            self._console = Console(self)
        self.create_timer(SEARCH_PERIOD_S, self._search, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def close(self) -> None:
        """Complete the file and end the node.

        Raises:
            SetupError: if the disk is full; what was written until then stays in the folder beside the file.
        """
        missing = sorted(self._wanted - self._recorded)
        if missing:
            self.get_logger().warning(f"nobody published {', '.join(missing)}")
        self.destroy_node()
        with writing_to(Path(self._settings.file)):
            self._bag.close()

    def _search(self) -> None:
        for topic, message_type in self._new_topics():
            self._recorded.add(topic)
            if message_type == IMAGE:
                self.create_subscription(Image, topic, partial(self._take_picture, topic), qos.IMAGE_INPUT)
                continue
            try:
                kind = _message_class(message_type)
            except (ImportError, AttributeError):
                self.get_logger().warning(f"{topic} is left out: its type {message_type} is not installed")
                continue
            take = partial(self._take, topic, message_type)
            offered = self._offered(topic)
            if offered.durability == QoSDurabilityPolicy.TRANSIENT_LOCAL:
                self._bag.latched.add(topic)
            self.create_subscription(kind, topic, take, offered, raw=True)

    def _new_topics(self) -> Iterator[tuple[str, str]]:
        """Topics with a publisher and one type."""
        for topic, types in self.get_topic_names_and_types():
            known = topic in self._recorded or topic in LEFT_OUT
            wanted = topic in self._wanted or not self._wanted
            if wanted and not known and len(types) == 1 and self.count_publishers(topic):
                yield topic, types[0]

    def _offered(self, topic: str) -> QoSProfile:
        """The strictest profile that all present publishers of the topic satisfy."""
        profiles = [info.qos_profile for info in self.get_publishers_info_by_topic(topic)]
        reliable = all(profile.reliability == QoSReliabilityPolicy.RELIABLE for profile in profiles)
        latched = all(profile.durability == QoSDurabilityPolicy.TRANSIENT_LOCAL for profile in profiles)
        return QoSProfile(
            depth=QUEUE_DEPTH,
            reliability=QoSReliabilityPolicy.RELIABLE if reliable else QoSReliabilityPolicy.BEST_EFFORT,
            durability=QoSDurabilityPolicy.TRANSIENT_LOCAL if latched else QoSDurabilityPolicy.VOLATILE,
        )

    def _take(self, topic: str, message_type: str, cdr: bytes) -> None:
        with writing_to(Path(self._settings.file)):
            self._bag.write(topic, message_type, self.get_clock().now().nanoseconds, cdr)

    def _take_picture(self, topic: str, message: Image) -> None:
        stamp_ns = to_nanoseconds(message.header.stamp)
        last_ns = self._last_picture_ns.get(topic)
        # A stamp from before the last one: time began anew.
        if last_ns is not None and 0 <= stamp_ns - last_ns < seconds_to_ns(self._settings.picture_period_s):
            return
        try:
            picture = serialize_message(to_jpeg(message, self._settings.picture_quality))
        except InputError as err:
            words = f"a picture of {topic} is left out: {err}"
            self.get_logger().warning(words, throttle_duration_sec=WARN_EVERY_S)
            return
        self._last_picture_ns[topic] = stamp_ns
        self._take(f"{topic}/compressed", COMPRESSED_IMAGE, picture)
        self.pictures += 1


def _message_class(message_type: str) -> Any:
    """The class of a type like `std_msgs/msg/String`."""
    package, _, name = message_type.partition("/msg/")
    return getattr(import_module(f"{package}.msg"), name)


def main() -> NoReturn:
    """Run the node until it is asked to end."""
    run_node(RecorderNode)
