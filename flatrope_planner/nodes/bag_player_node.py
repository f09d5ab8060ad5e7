"""Bag player: publishes a recorded drive with its time on /clock, for real nodes to plan from.

Small beside `ros2 bag play`, and there where that is not.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

from rclpy.clock import Clock as NodeClock
from rclpy.clock import ClockType
from rclpy.exceptions import NameValidationException
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CompressedImage, Image

from flatrope_planner.conversion.images import camera_frame, to_bgra8
from flatrope_planner.conversion.stamps import to_time
from flatrope_planner.errors import InputError, reason
from flatrope_planner.evaluation.replay.bag_source import CDR, BagSource, RawMessage, Topic
from flatrope_planner.evaluation.replay.bags import the_bag_at
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.declared import read_parameters
from flatrope_planner.nodes.parameters import Range
from flatrope_planner.nodes.played_topics import NEVER, is_for_now, latched_topics, raw_topic
from flatrope_planner.nodes.running import run_node

# How often it is looked at what is due (s): finer than anything that is recorded.
POLL_S = 0.002
WARN_EVERY_S = 5.0


@dataclass(frozen=True)
class BagPlayerParameters:
    """config/bag_player.param.yaml."""

    bag: str
    rate: Annotated[float, Range(0.01, 100.0)]
    clock_hz: Annotated[float, Range(1.0, 1000.0)]
    start_delay_s: Annotated[float, Range(0.0, 600.0)]
    loop: bool
    everything: bool


class BagPlayer(Node):
    """Plays until the bag ends, or again and again."""

    def __init__(self) -> None:
        """Open the bag and make publishers for what is in it.

        Raises:
            InputError: on a parameter that is not valid, or a bag that cannot be read or has nothing to play in it.
        """
        super().__init__("bag_player")
        self._settings = parameters = read_parameters(self, BagPlayerParameters, "bag_player.param.yaml")
        self.finished = False
        self._source = BagSource(the_bag_at(Path(parameters.bag)))
        self._source.__enter__()
        self._start_ns, self._end_ns = self._source.span_ns
        self._latched = latched_topics(self._source.connections)
        played = self._played()
        self._outputs = {topic.name: output for topic in played if (output := self._output(topic))}
        if not self._outputs:
            msg = self._why_nothing(played)
            self.close()
            raise InputError(msg)
        names = {topic.name for topic in self._source.topics}
        raw = {topic.name: raw_topic(topic, names) for topic in played if topic.name in self._outputs}
        # Compressed topic -> who sends its pictures raw, for those who listen to that: the planner does.
        self._raw = {name: self._publisher(Image, topic) for name, topic in raw.items() if topic}
        self._clock = self.create_publisher(Clock, "/clock", qos.BRIDGE_OUTPUT)
        self._begin(time.monotonic() + parameters.start_delay_s)
        self.create_timer(POLL_S, self._play, clock=NodeClock(clock_type=ClockType.STEADY_TIME))

    def close(self) -> None:
        """Close the bag and end the node."""
        self._source.__exit__(None, None, None)
        self.destroy_node()

    def _played(self) -> list[Topic]:
        """The topics to play; those that are not are told."""
        topics = [topic for topic in self._source.topics if topic.name not in NEVER]
        played = [topic for topic in topics if self._settings.everything or is_for_now(topic)]
        left_out = [topic.name for topic in topics if topic not in played]
        if left_out:
            self.get_logger().info(
                f"not played, as it is no input (everything:=true plays it, too): {' '.join(left_out)}"
            )
        return played

    def _why_nothing(self, chosen: Sequence[Topic]) -> str:
        """Why nothing can be played, in one line."""
        encodings, topics = sorted(self._source.other_encodings), self._source.topics
        if not topics and encodings:
            why = f"its messages are encoded as {', '.join(encodings)}; only {CDR} can be played"
        elif chosen:
            why = f"the types of all messages are not installed: {', '.join(sorted({t.message_type for t in chosen}))}"
        else:
            names = ", ".join(topic.name for topic in topics) or "no topic with messages"
            remedy = (
                " (everything:=true plays what was said, too)"
                if any(topic.name not in NEVER for topic in topics)
                else ""
            )
            why = f"in it is {names}, which is no input of a planner{remedy}"
        return "; ".join([f"nothing in {self._source.path} can be played: {why}", *self._source.notes])

    def _output(self, topic: Topic) -> Publisher | None:
        """A publisher for the topic; None where its type is not installed, or its name none of ROS."""
        package, _, name = topic.message_type.partition("/msg/")
        try:
            kind = getattr(import_module(f"{package}.msg"), name)
        except (ImportError, AttributeError):
            self.get_logger().warning(f"{topic.name} is left out: its type {topic.message_type} is not installed")
            return None
        try:
            return self._publisher(kind, topic.name)
        except NameValidationException as err:
            self.get_logger().warning(f"{topic.name} is left out: {reason(err)}")
            return None

    def _publisher(self, kind: Any, topic: str) -> Publisher:
        return self.create_publisher(kind, topic, qos.LATCHED if topic in self._latched else qos.BRIDGE_OUTPUT)

    def _begin(self, at_s: float) -> None:
        """Play from the beginning, at this time of the steady clock."""
        self._begun_s, self._next_clock_ns = at_s, self._start_ns
        self._coming: Iterator[list[RawMessage]] = self._source.moments(set(self._outputs))
        self._next = next(self._coming, None)

    def _play(self) -> None:
        """Publish what has fallen due."""
        passed_s = time.monotonic() - self._begun_s
        if passed_s < 0.0:
            return
        now_ns = self._start_ns + round(passed_s * self._settings.rate * 1e9)
        self._tell_time(min(now_ns, self._end_ns))
        while self._next is not None and self._next[0].log_ns <= now_ns:
            for message in self._next:
                self._outputs[message.topic].publish(message.cdr)
                self._send_raw(message)
            self._next = next(self._coming, None)
        if self._next is None and now_ns >= self._end_ns:
            self._end()

    def _send_raw(self, message: RawMessage) -> None:
        """Send a compressed picture raw as well, where somebody listens to that."""
        publisher = self._raw.get(message.topic)
        if publisher is None or not publisher.get_subscription_count():
            return
        try:
            picture = deserialize_message(message.cdr, CompressedImage)
            frame = camera_frame(picture)
        except Exception as err:  # rclpy raises RuntimeError and more where bytes are no message
            words = f"a picture of {message.topic} is left out: {reason(err)}"
            self.get_logger().warning(words, throttle_duration_sec=WARN_EVERY_S)
        else:
            publisher.publish(to_bgra8(frame.image, frame.stamp_ns, picture.header.frame_id))

    def _tell_time(self, now_ns: int) -> None:
        if now_ns >= self._next_clock_ns:
            self._next_clock_ns = now_ns + round(1e9 / self._settings.clock_hz)
            self._clock.publish(Clock(clock=to_time(now_ns)))

    def _end(self) -> None:
        for note in self._source.notes:
            self.get_logger().warning(note)
        self._source.notes.clear()
        if self._settings.loop:
            self._begin(time.monotonic())
        else:
            self.finished = True


def main() -> NoReturn:
    """Run the player until the bag ends or it is asked to end."""
    run_node(BagPlayer)
