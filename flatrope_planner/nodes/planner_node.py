"""Planner node: cameras and ego state in, trajectory and rationale out.

Callbacks only fill the observation buffer; one thread plans (`worker`). Every header carries t0, the time of the
observation, and every pose is in the odometry's frame.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from nav_msgs.msg import Path as PathMessage
from rclpy.clock import Clock, ClockType, JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.node import Node
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import String

from flatrope_planner.conversion.diagnostics import diagnostic_array
from flatrope_planner.conversion.images import camera_frame
from flatrope_planner.conversion.odometry import odometry_sample
from flatrope_planner.conversion.plans import PlacedTrajectory, path_message, rationale_message, trajectory_message
from flatrope_planner.conversion.stamps import to_header, to_time
from flatrope_planner.conversion.ticks import TickRecord, statistics_message
from flatrope_planner.domain import ns_to_seconds
from flatrope_planner.errors import InputError
from flatrope_planner.msg import PlannedTrajectory, Rationale, SpeculationStats
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.inputs import InputRecord, InputRecords, PlannerInputs
from flatrope_planner.nodes.monitoring import Level, TaskReport
from flatrope_planner.nodes.parameters import PlannerParameters, read_parameters
from flatrope_planner.nodes.running import run_node
from flatrope_planner.nodes.worker import FinishedTick, PlanningWorker
from flatrope_planner.planning.core import PlanningCore, warm_up

ODOMETRY = "odometry"
# How often a due tick is looked for (s of wall time): small beside the time between two pictures.
POLL_PERIOD_S = 0.02
WARN_EVERY_S = 5.0

LoadCore = Callable[[PlannerParameters], PlanningCore]


class PlannerNode(Node):
    """Subscribes, plans, publishes."""

    finished = False

    def __init__(self, load: LoadCore) -> None:
        """Read the parameters and begin to load the planner with `load`.

        Raises:
            InputError: on a parameter that is not valid.
        """
        super().__init__("planner")
        self._settings = parameters = read_parameters(self, PlannerParameters, "planner.param.yaml")
        self._inputs = PlannerInputs(parameters.cameras)
        self._records = InputRecords(parameters.input_timeout_s)
        self._worker = PlanningWorker(self._inputs, partial(load, parameters), self._publish, parameters.period_s)
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._create_publishers()
        self._create_subscriptions()
        self.create_timer(POLL_PERIOD_S, self._worker.poll, clock=self._steady)
        self.create_timer(parameters.status_period_s, self._publish_status, clock=self._steady)
        # The first message on /clock is a jump forward; only one back means that a bag or simulator began anew.
        back = JumpThreshold(min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=False)
        self._jump_handle = self.get_clock().create_jump_callback(back, post_callback=self._begin_anew)
        self._logged: set[str] = set()
        self._worker.start()

    def close(self) -> None:
        """End the planning thread and the node."""
        self._worker.close()
        self.destroy_node()

    def _create_publishers(self) -> None:
        create = self.create_publisher
        self._trajectory = create(PlannedTrajectory, "~/output/trajectory", qos.NEWEST)
        self._path = create(PathMessage, "~/output/path", qos.NEWEST)
        self._rationale = create(Rationale, "~/output/rationale", qos.REPORT)
        self._rationale_text = create(String, "~/output/rationale_text", qos.REPORT)
        self._speculation = create(SpeculationStats, "~/output/speculation", qos.REPORT)
        self._status = create(DiagnosticArray, "~/output/status", qos.REPORT)

    def _create_subscriptions(self) -> None:
        image_type = CompressedImage if self._settings.compressed else Image
        for camera in self._settings.cameras:
            name, topic = f"camera {camera}", f"~/input/camera/{camera}"
            self._add_record(name, topic)
            self.create_subscription(image_type, topic, partial(self._take_image, camera, name), qos.IMAGE_INPUT)
        self._add_record(ODOMETRY, "~/input/odometry")
        self.create_subscription(Odometry, "~/input/odometry", self._take_odometry, qos.ODOMETRY_INPUT)
        self.create_subscription(String, "~/input/command", self._take_command, qos.REPORT)

    def _add_record(self, name: str, topic: str) -> None:
        self._records.records[name] = InputRecord(self.resolve_topic_name(topic))

    def _take_image(self, camera: str, name: str, message: Image | CompressedImage) -> None:
        record = self._records.records[name]
        record.arrived(time.monotonic())
        try:
            self._inputs.add_image(camera, camera_frame(message))
        except InputError as err:
            self._reject(record, err)

    def _take_odometry(self, message: Odometry) -> None:
        record = self._records.records[ODOMETRY]
        record.arrived(time.monotonic())
        try:
            self._inputs.add_odometry(odometry_sample(message), message.header.frame_id)
        except InputError as err:
            self._reject(record, err)

    def _take_command(self, message: String) -> None:
        self._inputs.set_command(message.data)

    def _reject(self, record: InputRecord, err: InputError) -> None:
        record.reject(str(err))
        self.get_logger().warning(f"{record.topic}: {err}", throttle_duration_sec=WARN_EVERY_S)

    def _begin_anew(self, jump: TimeJump) -> None:
        self.get_logger().info(f"time went back by {ns_to_seconds(-jump.delta.nanoseconds):.2f} s: starting anew")
        self._inputs.clear()
        self._worker.reset()

    def _publish(self, tick: FinishedTick) -> None:
        """Publish a plan; runs in the planning thread."""
        plan = tick.plan
        placed = PlacedTrajectory(plan.trajectory, plan.t0_ns, tick.frame_id, tick.pose_t0)
        header = to_header(plan.t0_ns, tick.frame_id)
        age_ms = (self.get_clock().now().nanoseconds - plan.t0_ns) * 1e-6
        record = TickRecord(age_ms, tick.ticks, tick.dropped_ticks)
        self._trajectory.publish(trajectory_message(placed, self._settings.target))
        self._path.publish(path_message(placed))
        self._rationale.publish(rationale_message(plan.rationale, header))
        self._rationale_text.publish(String(data=plan.rationale.text))
        self._speculation.publish(statistics_message(plan, record, header))

    def _publish_status(self) -> None:
        publishers = {name: self.count_publishers(record.topic) for name, record in self._records.records.items()}
        reports = [
            *self._worker.reports(),
            self._records.report(time.monotonic(), publishers, self._inputs.missing()),
        ]
        self._log_problems(reports)
        stamp = to_time(self.get_clock().now().nanoseconds)
        self._status.publish(diagnostic_array(reports, stamp, node_name=self.get_name(), hardware_id=""))

    def _log_problems(self, reports: Sequence[TaskReport]) -> None:
        """Say once what is wrong with model or draft: nobody may be listening to the status."""
        wrong = {"model": Level.ERROR, "draft": Level.WARN}
        for report in reports:
            if report.level < wrong.get(report.task, Level.STALE) or report.message in self._logged:
                continue
            self._logged.add(report.message)
            # One place for each severity: rclpy allows a call site no more than one.
            if report.level is Level.ERROR:
                self.get_logger().error(f"{report.task}: {report.message}")
            else:
                self.get_logger().warning(f"{report.task}: {report.message}")


def load_planner(parameters: PlannerParameters) -> PlanningCore:
    """The planner that the parameters ask for, warmed up.

    Raises:
        SetupError: if its weights or a library are missing.
    """
    from flatrope_planner.speculation.exactness import Exactness, ExactnessMode
    from flatrope_planner.vla.drafting import DrafterKind, SpeculationOptions
    from flatrope_planner.vla.loading import load_planner as load
    from flatrope_planner.vla.target import PRECISIONS, Running

    speculation = SpeculationOptions(
        DrafterKind(parameters.drafter),
        Path(parameters.draft) if parameters.draft else None,
        parameters.draft_nodes,
        Exactness(ExactnessMode(parameters.exactness), parameters.audit_every),
    )
    running = Running(parameters.cameras, PRECISIONS.get(parameters.precision), parameters.device)
    core = load(parameters.target, Path(parameters.weights) if parameters.weights else None, speculation, running)
    warm_up(core)
    return core


def main() -> NoReturn:
    """Run the node until it is asked to end."""
    run_node(lambda: PlannerNode(load_planner))
