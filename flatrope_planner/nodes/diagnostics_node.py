"""Diagnostics node: watches a planner from outside its process and reports on /diagnostics."""

import time
from typing import NoReturn

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from flatrope_planner.conversion.diagnostics import diagnostic_array
from flatrope_planner.conversion.stamps import to_nanoseconds, to_time
from flatrope_planner.conversion.ticks import STAGES
from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.msg import SpeculationStats
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.declared import Changes, DeclaredParameters
from flatrope_planner.nodes.input_topics import InputTopic
from flatrope_planner.nodes.monitoring import MonitorSettings, PlannerMonitor, Threshold, TickFigures
from flatrope_planner.nodes.parameters import DiagnosticsParameters
from flatrope_planner.nodes.publishers import publishers_of
from flatrope_planner.nodes.running import run_node

# How the planner's status of its ticks ends.
PLANNING = ": planning"
STATUS = InputTopic("~/input/status", DiagnosticArray, qos.REPORT)


class DiagnosticsNode(Node):
    """Subscribes to what a planner publishes about itself; publishes /diagnostics."""

    finished = False

    def __init__(self) -> None:
        """Read the parameters and begin to watch.

        Raises:
            InputError: on a parameter that is not valid.
        """
        super().__init__("diagnostics")
        changes = Changes(self._adopt)
        self._settings = parameters = DeclaredParameters(
            self, DiagnosticsParameters, "diagnostics.param.yaml", changes
        ).values
        self._monitor = PlannerMonitor(monitor_settings(parameters))
        # The planner's own statuses, as they came last, and when (s, steady).
        self._own_status: list[DiagnosticStatus] = []
        self._own_status_s = 0.0
        self._publisher = self.create_publisher(DiagnosticArray, "/diagnostics", qos.REPORT)
        self.create_subscription(SpeculationStats, "~/input/speculation", self._take_statistics, qos.REPORT)
        self.create_subscription(STATUS.kind, STATUS.name, self._take_status, STATUS.qos)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = self.create_timer(parameters.publish_period_s, self._publish, clock=steady)

    def close(self) -> None:
        """End the node."""
        self.destroy_node()

    def _adopt(self, parameters: DiagnosticsParameters) -> None:
        """Judge by these from now on."""
        self._settings = parameters
        self._monitor.adopt(monitor_settings(parameters))
        self._timer.timer_period_ns = seconds_to_ns(parameters.publish_period_s)
        # Otherwise the old period would have to end first.
        self._timer.reset()

    def _take_statistics(self, message: SpeculationStats) -> None:
        self._monitor.take(time.monotonic(), tick_figures(message))

    def _take_status(self, message: DiagnosticArray) -> None:
        self._own_status_s = time.monotonic()
        self._monitor.heard(self._own_status_s)
        self._own_status = list(message.status)
        for status in message.status:
            if status.name.endswith(PLANNING):
                told = {item.key: item.value for item in status.values}
                self._monitor.count(self._own_status_s, _count(told.get("ticks")), _count(told.get("dropped_ticks")))

    def _publish(self) -> None:
        now_s, parameters = time.monotonic(), self._settings
        stamp = to_time(self.get_clock().now().nanoseconds)
        why_silent = publishers_of(self, STATUS).none_heard(self.resolve_topic_name(STATUS.name))
        reports = self._monitor.reports(now_s, why_silent)
        array = diagnostic_array(reports, stamp, node_name=parameters.planner_name, hardware_id=parameters.hardware_id)
        stale = now_s - self._own_status_s > parameters.stale_after_s
        for status in self._own_status:
            status.hardware_id = parameters.hardware_id
            status.level = DiagnosticStatus.STALE if stale else status.level
            array.status.append(status)
        self._publisher.publish(array)


def monitor_settings(parameters: DiagnosticsParameters) -> MonitorSettings:
    """The windows and thresholds that the parameters ask for."""
    acceptance = parameters.acceptance_length_warn
    return MonitorSettings(
        window_s=parameters.window_s,
        stale_after_s=parameters.stale_after_s,
        latency_ms=Threshold(parameters.latency_warn_ms, parameters.latency_error_ms),
        age_ms=Threshold(parameters.age_warn_ms, parameters.age_error_ms),
        rate_hz=Threshold(parameters.rate_warn_hz, parameters.rate_error_hz, falling=True),
        dropped_share=Threshold(parameters.dropped_warn_share, parameters.dropped_error_share),
        # Slow speculation is no fault: never more than a warning.
        acceptance_length=Threshold(acceptance, float("-inf"), falling=True),
    )


def tick_figures(message: SpeculationStats) -> TickFigures:
    """The message's content."""
    return TickFigures(
        t0_ns=to_nanoseconds(message.header.stamp),
        stage_ms={stage: float(getattr(message, f"{stage}_ms")) for stage in STAGES},
        observation_age_ms=float(message.observation_age_ms),
        ticks=int(message.ticks),
        dropped_ticks=int(message.dropped_ticks),
        rounds=int(message.rounds),
        proposed=int(message.proposed),
        accepted=int(message.accepted),
        committed=int(message.committed),
        drafter=str(message.drafter),
        deadline_misses=int(message.deadline_misses),
        fallbacks=int(message.fallbacks),
    )


def _count(text: str | None) -> int:
    """A count in a status; 0 for what is none."""
    return int(text) if text is not None and text.isdecimal() else 0


def main() -> NoReturn:
    """Run the node until it is asked to end."""
    run_node(DiagnosticsNode, lasting=True)
