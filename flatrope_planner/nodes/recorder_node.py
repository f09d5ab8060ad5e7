"""Recorder node: writes the topics it is told, or every one it finds, into one .mcap file, pictures compressed.

Small beside rosbag2, and there where rosbag2 is not. What a replay needs and does not come is told while it records.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import rclpy
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Image

from flatrope_planner.bringup.configuration import message_definitions
from flatrope_planner.conversion.compression import to_jpeg
from flatrope_planner.conversion.stamps import to_nanoseconds
from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.evaluation.bag_writer import BagWriter
from flatrope_planner.evaluation.replay.bag_source import header_stamp_ns
from flatrope_planner.evaluation.replay.output_folder import writing_to
from flatrope_planner.nodes.console import Console
from flatrope_planner.nodes.declared import read_parameters
from flatrope_planner.nodes.parameters import Range
from flatrope_planner.nodes.picture_losses import FAST_DDS, PictureLosses, SourcePauses
from flatrope_planner.nodes.recording_needs import needs_of
from flatrope_planner.nodes.recording_tally import (
    ODOMETRY_TYPE,
    PICTURE_TYPES,
    SHARE_LOST,
    PictureTally,
    RecordingTally,
    TopicTally,
)
from flatrope_planner.nodes.running import run_node

# How often new topics are looked for (s of wall time).
SEARCH_PERIOD_S = 0.2
# How many messages wait to be written; pictures are large.
QUEUE_DEPTH, PICTURE_QUEUE_DEPTH = 100, 10
# What a replay needs has to come within the first of these, and is looked at as often as the second says (s).
PATIENCE_S, WATCH_PERIOD_S = 4.0, 1.0
WARN_EVERY_S = 5.0
IMAGE, COMPRESSED_IMAGE = PICTURE_TYPES
# Of no use in a replay: time is in every record, and the rest is about nodes.
LEFT_OUT = ("/clock", "/rosout", "/parameter_events")


@dataclass(frozen=True)
class RecorderParameters:
    """config/recorder.param.yaml."""

    file: str
    topics: str
    cameras: str
    odometry: str
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
        self._needs = needs_of(parameters.cameras, parameters.odometry)
        self._recorded: set[str] = set()
        self._last_picture_ns: dict[str, int] = {}
        self._tally = RecordingTally()
        # Of what sends the pictures, told by the first odometry that is found: another one may have another clock.
        self._pauses, self._pacemaker = SourcePauses(), ""
        # What is amiss, and which cameras lose pictures, as it was said last.
        self._amiss, self._lossy = "", set[str]()
        self._begun_s = time.monotonic()
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(SEARCH_PERIOD_S, self._search, clock=steady)
        self.create_timer(WATCH_PERIOD_S, self._watch, clock=steady)
        if parameters.show:
            self._console = Console(self)
        else:
            self.get_logger().info(f"recording to {parameters.file}; Ctrl-C completes it")

    @property
    def pictures(self) -> int:
        """How many were written."""
        return self._tally.count(PICTURE_TYPES)

    def close(self) -> None:
        """Complete the file and end the node.

        Raises:
            SetupError: if what was recorded cannot be replayed, or the disk is full.
        """
        self.destroy_node()
        file = self._settings.file
        if self._bag.failed:
            # Which was said when it happened.
            return
        if not self._tally.messages:
            self._bag.discard()
            expected = [topic for need in self._needs for topic in need.topics] or sorted(self._wanted) or ["any topic"]
            msg = f"{file} is not written: nothing came on {', '.join(expected)}"
            raise SetupError(msg)
        with writing_to(Path(file)):
            self._bag.close()
        if not self._settings.show:
            self.get_logger().info(f"recorded {file}: {self._tally}")
        if losses := self._tally.losses():
            self.get_logger().warning(f"lost on their way, by the stamps: {', '.join(losses)}")
        unmet = [need for need in self._needs if not need.is_met(self._tally)]
        if unmet:
            missing = " and ".join(f"no {need.word} ({', '.join(need.topics)})" for need in unmet)
            msg = f"{file} cannot be replayed: it holds {missing}"
            raise SetupError(msg)
        unheard = [topic for need in self._needs for topic in need.unheard(self._tally)]
        if unheard:
            self.get_logger().warning(f"a replay needs {', '.join(unheard)}, too, where nothing of use came")

    def _watch(self) -> None:
        """Say what is amiss: once, and again when it changes."""
        now_s = time.monotonic()
        if now_s - self._begun_s < PATIENCE_S:
            return
        amiss = "; ".join(words for need in self._needs for words in need.complaints(self, self._tally, now_s))
        if amiss and amiss != self._amiss:
            self.get_logger().warning(f"a replay will need what is missing: {amiss}")
        elif self._amiss and not amiss:
            self.get_logger().info("now everything comes that a replay needs")
        self._amiss = amiss
        for topic, tally in self._tally.topics.items():
            lost = tally.pictures.newest.warning() if tally.pictures is not None else ""
            if lost and topic not in self._lossy:
                self._lossy.add(topic)
                self.get_logger().warning(f"{topic}: {lost}")

    def _search(self) -> None:
        for topic, message_type in self._new_topics():
            self._recorded.add(topic)
            try:
                kind = _message_class(message_type)
            except (ImportError, AttributeError):
                self.get_logger().warning(f"{topic} is left out: its type {message_type} is not installed")
                continue
            offered = self._offered(topic, PICTURE_QUEUE_DEPTH if message_type in PICTURE_TYPES else QUEUE_DEPTH)
            self._tally.topics[topic] = TopicTally(message_type, self._picture_tally(message_type))
            if offered.durability == QoSDurabilityPolicy.TRANSIENT_LOCAL:
                self._bag.latched.add(topic)
            if message_type == IMAGE:
                self.create_subscription(Image, topic, partial(self._take_picture, topic), offered)
            else:
                take = partial(self._take, topic, message_type)
                self.create_subscription(kind, topic, take, offered, raw=True)

    def _new_topics(self) -> Iterator[tuple[str, str]]:
        """Topics with a publisher and one type."""
        for topic, types in self.get_topic_names_and_types():
            known = topic in self._recorded or topic in LEFT_OUT
            wanted = topic in self._wanted or not self._wanted
            if wanted and not known and len(types) == 1 and self.count_publishers(topic):
                yield topic, types[0]

    def _offered(self, topic: str, depth: int) -> QoSProfile:
        """The strictest profile that all present publishers of the topic satisfy.

        Who asks for reliable delivery gets large pictures sent again, also where what sends them has too little shared
        memory for them.
        """
        profiles = [info.qos_profile for info in self.get_publishers_info_by_topic(topic)]
        reliable = all(profile.reliability == QoSReliabilityPolicy.RELIABLE for profile in profiles)
        latched = all(profile.durability == QoSDurabilityPolicy.TRANSIENT_LOCAL for profile in profiles)
        return QoSProfile(
            depth=depth,
            reliability=QoSReliabilityPolicy.RELIABLE if reliable else QoSReliabilityPolicy.BEST_EFFORT,
            durability=QoSDurabilityPolicy.TRANSIENT_LOCAL if latched else QoSDurabilityPolicy.VOLATILE,
        )

    def _take(self, topic: str, message_type: str, cdr: bytes) -> None:
        tally = self._tally.topics[topic]
        if tally.pictures is not None and (stamp_ns := header_stamp_ns(cdr)) is not None:
            tally.pictures.take(stamp_ns, len(cdr))
        if message_type == ODOMETRY_TYPE:
            self._pacemaker = self._pacemaker or topic
            if topic == self._pacemaker and (stamp_ns := header_stamp_ns(cdr)) is not None:
                self._pauses.take(stamp_ns)
        self._write(topic, topic, message_type, cdr)

    def _take_picture(self, topic: str, message: Image) -> None:
        stamp_ns = to_nanoseconds(message.header.stamp)
        pictures = self._tally.topics[topic].pictures
        if pictures is not None:
            pictures.take(stamp_ns, len(message.data))
        last_ns = self._last_picture_ns.get(topic)
        # A stamp from before the last one: time began anew.
        if last_ns is None or not 0 <= stamp_ns - last_ns < seconds_to_ns(self._settings.picture_period_s):
            self._last_picture_ns[topic] = stamp_ns
            try:
                picture = serialize_message(to_jpeg(message, self._settings.picture_quality))
            except InputError as err:
                self._tally.topics[topic].rejection = str(err)
                self.get_logger().warning(f"{topic}: a picture is left out: {err}", throttle_duration_sec=WARN_EVERY_S)
            else:
                self._write(topic, f"{topic}/compressed", COMPRESSED_IMAGE, picture)

    def _write(self, source: str, topic: str, message_type: str, cdr: bytes) -> None:
        with writing_to(Path(self._settings.file)):
            self._bag.write(topic, message_type, self.get_clock().now().nanoseconds, cdr)
        self._tally.topics[source].take(time.monotonic())

    def _picture_tally(self, message_type: str) -> PictureTally | None:
        if message_type not in PICTURE_TYPES:
            return None
        fast_dds, raw = FAST_DDS in rclpy.get_rmw_implementation_identifier(), message_type == IMAGE
        return PictureTally(PictureLosses(raw=raw, fast_dds=fast_dds, share_lost=SHARE_LOST, pauses=self._pauses))


def _message_class(message_type: str) -> Any:
    """The class of a type like `std_msgs/msg/String`."""
    package, _, name = message_type.partition("/msg/")
    return getattr(import_module(f"{package}.msg"), name)


def main() -> NoReturn:
    """Run the node until it is asked to end."""
    run_node(RecorderNode)
