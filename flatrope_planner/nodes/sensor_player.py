"""Sensor player: plays channels of a recorded drive (clock, odometry, cameras) and lets them fail when told to.

One process may play them all or each a process of its own; all follow the one on /clock. Orders come through a pipe,
a channel and what it shall do a line: `odometry nan`, `front_tele missing`, `clock leap -5`, `front_tele none`.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

from rclpy.clock import Clock as NodeClock
from rclpy.clock import ClockType
from rclpy.node import Node
from rosgraph_msgs.msg import Clock

from flatrope_planner.conversion.stamps import to_nanoseconds
from flatrope_planner.evaluation.drive import STEP_S, Drive
from flatrope_planner.evaluation.order_pipe import OrderReader
from flatrope_planner.evaluation.witness_events import Event, Garbage, Matched, Obeyed, to_line
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.declared import read_parameters
from flatrope_planner.nodes.parameters import Range
from flatrope_planner.nodes.played_channels import Channel, OdometryChannel, PictureChannel
from flatrope_planner.nodes.played_clock import PlayedClock
from flatrope_planner.nodes.running import run_node

CLOCK, ODOMETRY = "clock", "odometry"


@dataclass(frozen=True)
class PlayerParameters:
    """config/sensor_player.param.yaml."""

    drive: str
    orders: str
    cameras: tuple[str, ...]
    plays: str
    order_period_s: Annotated[float, Range(0.001, 1.0)]


class SensorPlayer(Node):
    """Publishes the channels among /clock, /drive/odometry and /drive/<camera>/image that it is to play."""

    finished = False

    def __init__(self) -> None:
        """Open the drive and begin to play.

        Raises:
            InputError: on a parameter that is not valid.
        """
        super().__init__("sensor_player")
        parameters = read_parameters(self, PlayerParameters, "sensor_player.param.yaml")
        self._reader = OrderReader(Path(parameters.orders))
        self._drive = Drive.load(Path(parameters.drive))
        steady, plays = NodeClock(clock_type=ClockType.STEADY_TIME), parameters.plays.split(",")
        self._clock: PlayedClock | None = None
        if CLOCK in plays:
            self._clock = PlayedClock(self)
            self.create_timer(STEP_S, self._clock.tick, clock=steady)
        self._channels: dict[str, Channel] = {}
        if ODOMETRY in plays:
            self._channels[ODOMETRY] = OdometryChannel(self, self._drive)
        for number, camera in enumerate(parameters.cameras):
            if camera in plays:
                self._channels[camera] = PictureChannel(self, self._drive, (number, camera), self._report_garbage)
        self._matched = not self._channels
        self.create_subscription(Clock, "/clock", self._play, qos.NEWEST)
        self.create_timer(parameters.order_period_s, self._obey, clock=steady)

    def close(self) -> None:
        """End the node."""
        self._reader.close()
        self.destroy_node()

    def _play(self, message: Clock) -> None:
        for channel in self._channels.values():
            channel.play(to_nanoseconds(message.clock))

    def _obey(self) -> None:
        for order in self._reader.read():
            channel, _, what = order.partition(" ")
            if channel == CLOCK and self._clock is not None:
                self._clock.obey(what)
            else:
                self._channels[channel].obey(what)
            _report(Obeyed(time.monotonic(), order))
        if not self._matched and all(channel.matched for channel in self._channels.values()):
            self._matched = True
            _report(Matched(time.monotonic(), self.get_name()))

    def _report_garbage(self, stamp_ns: int) -> None:
        _report(Garbage(stamp_ns))


def _report(event: Event) -> None:
    print(to_line(event), flush=True)


def main() -> NoReturn:
    """Run the player until it is asked to end."""
    run_node(SensorPlayer)
