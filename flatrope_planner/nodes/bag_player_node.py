"""Bag player: publishes a recorded drive with its time on /clock, for real nodes to plan from.

Small beside `ros2 bag play`, and there where that is not.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

from rclpy.clock import Clock as NodeClock
from rclpy.clock import ClockType
from rclpy.node import Node
from rosgraph_msgs.msg import Clock

from flatrope_planner.conversion.stamps import to_time
from flatrope_planner.evaluation.replay.bag_source import BagSource, RawMessage, Topic
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.declared import read_parameters
from flatrope_planner.nodes.parameters import Range
from flatrope_planner.nodes.running import run_node

# How often it is looked at what is due (s): finer than anything that is recorded.
POLL_S = 0.002
# Time is the player's own, the rest is said by the nodes that listen now.
LEFT_OUT = ("/clock", "/rosout", "/parameter_events")
OUR_PACKAGE = "flatrope_planner/"
STATIC = "/tf_static"


@dataclass(frozen=True)
class BagPlayerParameters:
    """config/bag_player.param.yaml."""

    bag: str
    rate: Annotated[float, Range(0.01, 100.0)]
    clock_hz: Annotated[float, Range(1.0, 1000.0)]
    start_delay_s: Annotated[float, Range(0.0, 600.0)]
    loop: bool


class BagPlayer(Node):
    """Plays until the bag ends, or again and again."""

    def __init__(self) -> None:
        """Open the bag and make publishers for what is in it.

        Raises:
            InputError: on a parameter that is not valid, or a bag that cannot be read.
        """
        super().__init__("bag_player")
        self._settings = parameters = read_parameters(self, BagPlayerParameters, "bag_player.param.yaml")
        self.finished = False
        self._source = BagSource(Path(parameters.bag))
        self._source.__enter__()
        self._start_ns, self._end_ns = self._source.span_ns
        self._outputs = {topic.name: output for topic in self._source.topics if (output := self._output(topic))}
        self._clock = self.create_publisher(Clock, "/clock", qos.BRIDGE_OUTPUT)
        self._begin(time.monotonic() + parameters.start_delay_s)
        self.create_timer(POLL_S, self._play, clock=NodeClock(clock_type=ClockType.STEADY_TIME))

    def close(self) -> None:
        """Close the bag and end the node."""
        self._source.__exit__(None, None, None)
        self.destroy_node()

    def _output(self, topic: Topic) -> Any:
        """A publisher for the topic; None for one that is left out."""
        if topic.name in LEFT_OUT or topic.message_type.startswith(OUR_PACKAGE):
            return None
        package, _, name = topic.message_type.partition("/msg/")
        try:
            kind = getattr(import_module(f"{package}.msg"), name)
        except (ImportError, AttributeError):
            self.get_logger().warning(f"{topic.name} is left out: its type {topic.message_type} is not installed")
            return None
        return self.create_publisher(kind, topic.name, qos.LATCHED if topic.name == STATIC else qos.BRIDGE_OUTPUT)

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
            self._next = next(self._coming, None)
        if self._next is None and now_ns >= self._end_ns:
            self._end()

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
