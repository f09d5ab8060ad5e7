"""Plan witness: prints what a planner publishes, with the times at which it came, for a benchmark to judge."""

import time
from collections.abc import Iterator
from typing import NoReturn

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String

from flatrope_planner.conversion.odometry import from_pose_message
from flatrope_planner.conversion.stamps import to_nanoseconds
from flatrope_planner.domain import ns_to_seconds
from flatrope_planner.evaluation.witness_events import Beat, Event, Outcome, PlanSeen, StatusSeen, TickSeen, to_line
from flatrope_planner.msg import PlannedTrajectory, SpeculationStats
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.running import run_node


class PlanWitness(Node):
    """Subscribes to /clock and ~/input/{trajectory,status,speculation,outcome} and prints an event for each message."""

    finished = False

    def __init__(self) -> None:
        """Begin to listen."""
        super().__init__("plan_witness")
        self._clock_ns = 0
        self.create_subscription(Clock, "/clock", self._take_clock, qos.BRIDGE_OUTPUT)
        self.create_subscription(PlannedTrajectory, "~/input/trajectory", self._take_plan, qos.REPORT)
        self.create_subscription(DiagnosticArray, "~/input/status", self._take_status, qos.REPORT)
        self.create_subscription(SpeculationStats, "~/input/speculation", self._take_tick, qos.REPORT)
        self.create_subscription(String, "~/input/outcome", self._take_outcome, qos.LATCHED)

    def close(self) -> None:
        """End the node."""
        self.destroy_node()

    def _take_clock(self, message: Clock) -> None:
        self._clock_ns = to_nanoseconds(message.clock)
        _report(Beat(time.monotonic(), self._clock_ns))

    def _take_plan(self, message: PlannedTrajectory) -> None:
        ego = from_pose_message(message.ego_pose)
        points = tuple(_points(message))
        t0_ns, place = to_nanoseconds(message.header.stamp), (ego.x_m, ego.y_m, ego.yaw_rad)
        seen = PlanSeen(time.monotonic(), self._clock_ns, t0_ns, message.status, message.status_reason, place, points)
        _report(seen)

    def _take_status(self, message: DiagnosticArray) -> None:
        tasks = {status.name.partition(": ")[2]: status for status in message.status}
        words = {task: status.message for task, status in tasks.items()}
        for task, status in tasks.items():
            # Numbers say nothing about what is wrong.
            said = {value.key: value.value for value in status.values if any(map(str.isalpha, value.value))}
            words |= {f"{task}.{key}": value for key, value in said.items()}
        levels = {task: int.from_bytes(status.level, "little") for task, status in tasks.items()}
        _report(StatusSeen(time.monotonic(), levels, words))

    def _take_tick(self, message: SpeculationStats) -> None:
        t0_ns = to_nanoseconds(message.header.stamp)
        counts = (message.ticks, message.dropped_ticks)
        _report(TickSeen(time.monotonic(), t0_ns, message.total_ms, message.observation_age_ms, *counts))

    def _take_outcome(self, message: String) -> None:
        _report(Outcome(time.monotonic(), message.data))


def _points(message: PlannedTrajectory) -> Iterator[tuple[float, float, float, float, float]]:
    for point in message.points:
        pose = from_pose_message(point.pose)
        after_s = ns_to_seconds(to_nanoseconds(point.time_from_start))
        yield after_s, pose.x_m, pose.y_m, pose.yaw_rad, point.speed


def _report(event: Event) -> None:
    print(to_line(event), flush=True)


def main() -> NoReturn:
    """Run the witness until it is asked to end."""
    run_node(PlanWitness)
