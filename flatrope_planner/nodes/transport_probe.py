"""Transport probe: sends large pictures as two cameras would, and asks the planner how many have come.

Odometry goes along, so that a planner that has its model plans at the same time.
"""

import json
import sys
import time
from array import array
from dataclasses import dataclass
from typing import Annotated, NoReturn

from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import Image

from flatrope_planner.conversion.stamps import to_header
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.declared import read_parameters
from flatrope_planner.nodes.parameters import Range
from flatrope_planner.nodes.running import run_node

PREFIX = "transport: "
ODOMETRY_PER_PICTURE = 2
# Time for the last pictures to arrive and for the planner to say so (s of wall time).
SETTLE_S = 3.0


@dataclass(frozen=True)
class ProbeParameters:
    """config/transport_probe.param.yaml."""

    cameras: tuple[str, ...]
    width_px: Annotated[int, Range(16, 8192)]
    height_px: Annotated[int, Range(16, 8192)]
    rate_hz: Annotated[float, Range(0.1, 100.0)]
    duration_s: Annotated[float, Range(0.1, 600.0)]
    start_timeout_s: Annotated[float, Range(0.1, 600.0)]


class TransportProbe(Node):
    """Publishes ~/<camera>/image and ~/odometry, reads ~/input/status."""

    def __init__(self) -> None:
        """Prepare the pictures and wait for the planner.

        Raises:
            InputError: on a parameter that is not valid.
        """
        super().__init__("transport_probe")
        self._settings = parameters = read_parameters(self, ProbeParameters, "transport_probe.param.yaml")
        self.finished = False
        self._images = {c: self.create_publisher(Image, f"~/{c}/image", qos.BRIDGE_OUTPUT) for c in parameters.cameras}
        self._odometry = self.create_publisher(Odometry, "~/odometry", qos.BRIDGE_OUTPUT)
        self.create_subscription(DiagnosticArray, "~/input/status", self._take_status, qos.REPORT)
        self._picture = _picture(parameters.width_px, parameters.height_px)
        self._created_s = time.monotonic()
        self._begun_s: float | None = None
        self._sent = 0
        self._odometry_sent = 0
        period_s = 1.0 / (parameters.rate_hz * ODOMETRY_PER_PICTURE)
        self.create_timer(period_s, self._send, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def close(self) -> None:
        """End the node."""
        self.destroy_node()

    def _send(self) -> None:
        now_s = time.monotonic()
        if self._begun_s is None:
            self._begin(now_s)
            return
        if now_s - self._begun_s >= self._settings.duration_s:
            return
        stamp_ns = self.get_clock().now().nanoseconds
        odometry = Odometry(header=to_header(stamp_ns, "map"), child_frame_id="probe")
        odometry.pose.pose.orientation.w = 1.0
        self._odometry.publish(odometry)
        self._odometry_sent += 1
        if self._odometry_sent % ODOMETRY_PER_PICTURE == 0:
            self._sent += 1
            for camera, publisher in self._images.items():
                self._picture.header = to_header(stamp_ns, camera)
                publisher.publish(self._picture)

    def _begin(self, now_s: float) -> None:
        if all(publisher.get_subscription_count() > 0 for publisher in self._images.values()):
            self._begun_s = now_s
        elif now_s - self._created_s > self._settings.start_timeout_s:
            print("no planner has subscribed to the pictures", file=sys.stderr)
            self.finished = True

    def _take_status(self, message: DiagnosticArray) -> None:
        over_s = self._settings.duration_s + SETTLE_S
        if self._begun_s is None or time.monotonic() - self._begun_s < over_s or self.finished:
            return
        values = {item.key: item.value for status in message.status for item in status.values}
        received = {camera: int(values[f"camera {camera}.received"]) for camera in self._images}
        print(PREFIX + json.dumps({"sent": self._sent, "received": received}), flush=True)
        self.finished = True


def _picture(width_px: int, height_px: int) -> Image:
    """A bgr8 picture of stripes."""
    step = width_px * 3
    row = bytes(i % 251 for i in range(step))
    return Image(
        height=height_px, width=width_px, encoding="bgr8", is_bigendian=0, step=step, data=array("B", row * height_px)
    )


def main() -> NoReturn:
    """Run the probe until it has its answer or is asked to end."""
    run_node(TransportProbe)
