"""The drive as one line of a terminal: scene, time, speed, and what the planner says."""

import shutil
import sys
import time

from nav_msgs.msg import Odometry
from rclpy.node import Node
from std_msgs.msg import String

from flatrope_planner.conversion.stamps import to_nanoseconds
from flatrope_planner.domain import ns_to_seconds
from flatrope_planner.msg import Rationale
from flatrope_planner.nodes import qos

# Shortest time between two changes of the line, and between two lines where it cannot be overwritten (s).
TERMINAL_PERIOD_S, LOG_PERIOD_S = 0.1, 5.0
DEFAULT_WIDTH = 120


class Console:
    """Subscribes on behalf of a node and keeps the line up to date."""

    def __init__(self, node: Node) -> None:
        """Watch the topics ~/input/{odometry,rationale,scene} of the node."""
        self._terminal = sys.stdout.isatty()
        self._period_s = TERMINAL_PERIOD_S if self._terminal else LOG_PERIOD_S
        self._shown_s = float("-inf")
        self._ticks, self._words, self._scene = 0, "waiting for the first plan", ""
        node.create_subscription(Odometry, "~/input/odometry", self._take_odometry, qos.ODOMETRY_INPUT)
        node.create_subscription(Rationale, "~/input/rationale", self._take_rationale, qos.REPORT)
        node.create_subscription(String, "~/input/scene", self._take_scene, qos.LATCHED)

    def close(self) -> None:
        """Leave the line."""
        if self._terminal:
            print(flush=True)

    def _take_rationale(self, message: Rationale) -> None:
        self._ticks += 1
        self._words = message.text

    def _take_scene(self, message: String) -> None:
        self._scene = message.data

    def _take_odometry(self, message: Odometry) -> None:
        now_s = time.monotonic()
        if now_s - self._shown_s < self._period_s:
            return
        self._shown_s = now_s
        time_s = ns_to_seconds(to_nanoseconds(message.header.stamp))
        line = console_line(self._scene, time_s, message.twist.twist.linear.x, self._ticks, self._words)
        if self._terminal:
            width = shutil.get_terminal_size((DEFAULT_WIDTH, 1)).columns
            print(f"\r\x1b[K{line[: width - 1]}", end="", flush=True)
        else:
            print(line, flush=True)


def console_line(scene: str, time_s: float, speed_mps: float, ticks: int, words: str) -> str:
    """For example `lead 1   12.4 s   8.9 m/s   tick 21   Slow down because the van ahead is braking.`."""
    return f"{scene:<18} {time_s:6.1f} s {speed_mps:5.1f} m/s  tick {ticks:>3}  {words}"
