"""The node's clock: tells when time leaps, and what is wrong with simulated time."""

import time
from collections.abc import Callable

from rclpy.clock import ClockChange, JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.node import Node

from flatrope_planner.domain import ns_to_seconds
from flatrope_planner.nodes.monitoring import Level, TaskReport

# Simulated time that goes ahead by more at once has leapt: a bag was wound on, a new scene began.
LEAP_AHEAD_S = 2.0
CLOCK_TOPIC = "/clock"


class ClockWatch:
    """Watches the ROS time of a node."""

    def __init__(self, node: Node, on_leap: Callable[[str], None]) -> None:
        """Call `on_leap` with a few words whenever nothing from before has anything to do with what comes.

        It is not called for the first message on /clock, which makes time leap from zero: nothing was before.
        """
        self._node, self._on_leap = node, on_leap
        self._leaps_back = self._leaps_ahead = 0
        self._seen_ns, self._moved_s = 0, time.monotonic()
        # Any step back counts: time never goes backwards by itself.
        threshold = JumpThreshold(
            min_forward=Duration(nanoseconds=round(LEAP_AHEAD_S * 1e9)),
            min_backward=Duration(nanoseconds=-1),
            on_clock_change=True,
        )
        self._handle = node.get_clock().create_jump_callback(threshold, post_callback=self._jumped)

    def now_ns(self) -> int:
        """The present in ROS time, 0 while simulated time has not begun."""
        return int(self._node.get_clock().now().nanoseconds)

    def report(self, timeout_s: float) -> TaskReport:
        """The state of the clock; one that stands still for longer than `timeout_s` of wall time is a warning."""
        now_ns, now_s = self.now_ns(), time.monotonic()
        if now_ns != self._seen_ns:
            self._seen_ns, self._moved_s = now_ns, now_s
        values = {"leaps_back": str(self._leaps_back), "leaps_ahead": str(self._leaps_ahead)}
        if not self._node.get_clock().ros_time_is_active:
            return TaskReport("clock", Level.OK, "wall time", values)
        names = [info.node_name for info in self._node.get_publishers_info_by_topic(CLOCK_TOPIC)]
        values |= {"publishers": ", ".join(names), "time_s": f"{ns_to_seconds(now_ns):.3f}"}
        if now_ns == 0:
            who = f"though {', '.join(names)} publishes it" if names else "and nobody publishes it"
            message = f"use_sim_time is set and nothing comes on {CLOCK_TOPIC}, {who}"
            return TaskReport("clock", Level.ERROR, message, values)
        still_s = now_s - self._moved_s
        if still_s > timeout_s:
            nobody = "" if names else f": nobody publishes {CLOCK_TOPIC}"
            words = f"simulated time has stood still for {still_s:.1f} s{nobody}"
            return TaskReport("clock", Level.WARN, words, values)
        if len(names) > 1:
            message = f"several nodes publish {CLOCK_TOPIC}: {', '.join(names)}"
            return TaskReport("clock", Level.WARN, message, values)
        return TaskReport("clock", Level.OK, "simulated time", values)

    def _jumped(self, jump: TimeJump) -> None:
        delta_s = ns_to_seconds(jump.delta.nanoseconds)
        if jump.clock_change != ClockChange.ROS_TIME_NO_CHANGE:
            self._on_leap("time is taken from another clock")
        elif delta_s < 0.0:
            self._leaps_back += 1
            self._on_leap(f"time went back by {-delta_s:.2f} s")
        elif jump.delta.nanoseconds < self.now_ns():
            self._leaps_ahead += 1
            self._on_leap(f"time leapt ahead by {delta_s:.2f} s")
