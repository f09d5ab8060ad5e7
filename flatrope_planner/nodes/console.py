"""The drive in words: scene, time, speed, and what the planner says, printed line by line."""

import time

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from nav_msgs.msg import Odometry
from rclpy.node import Node
from std_msgs.msg import String

from flatrope_planner.conversion.stamps import to_nanoseconds
from flatrope_planner.domain import ns_to_seconds
from flatrope_planner.msg import Rationale
from flatrope_planner.nodes import qos

# Shortest time between two lines (s of wall time).
PERIOD_S = 0.2
# Begins the line that says why there will be no plan.
PROBLEM = "problem: "


class Console:
    """Subscribes on behalf of a node and prints."""

    def __init__(self, node: Node) -> None:
        """Watch the topics ~/input/{odometry,rationale,scene,status} of the node."""
        self._shown_s = float("-inf")
        self._ticks, self._words, self._scene = 0, "waiting for the first plan", ""
        node.create_subscription(Odometry, "~/input/odometry", self._take_odometry, qos.ODOMETRY_INPUT)
        node.create_subscription(Rationale, "~/input/rationale", self._take_rationale, qos.REPORT)
        node.create_subscription(String, "~/input/scene", self._take_scene, qos.LATCHED)
        node.create_subscription(DiagnosticArray, "~/input/status", self._take_status, qos.REPORT)

    def _take_rationale(self, message: Rationale) -> None:
        self._ticks += 1
        self._words = message.text

    def _take_scene(self, message: String) -> None:
        self._scene = message.data

    def _take_status(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.endswith(": model") and status.level == DiagnosticStatus.ERROR:
                print(f"{PROBLEM}{status.message}", flush=True)

    def _take_odometry(self, message: Odometry) -> None:
        now_s = time.monotonic()
        if now_s - self._shown_s < PERIOD_S:
            return
        self._shown_s = now_s
        time_s = ns_to_seconds(to_nanoseconds(message.header.stamp))
        speed_mps = message.twist.twist.linear.x
        print(console_line(self._scene, time_s, speed_mps, self._ticks, self._words), flush=True)


def console_line(scene: str, time_s: float, speed_mps: float, ticks: int, words: str) -> str:
    """For example `lead, seed 1   12.4 s   8.9 m/s  tick  21  Slow down because the van ahead is braking.`."""
    return f"{scene:<24} {time_s:6.1f} s {speed_mps:5.1f} m/s  tick {ticks:>3}  {words}"
