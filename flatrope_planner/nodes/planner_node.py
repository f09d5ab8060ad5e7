"""Planner node: cameras and ego state in, trajectory and rationale out.

Callbacks only fill the observation buffer; one thread plans (`worker`). Every header carries t0, the time of the
observation, and every pose is in the odometry's frame.

Its life is managed (`lifecycle`): configure subscribes and loads the model, activate begins to plan, deactivate stops
that while the buffer goes on being filled, cleanup gives everything back. The status is published in every state.
"""

import gc
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from nav_msgs.msg import Path as PathMessage
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from sensor_msgs.msg import CompressedImage, Image, PointCloud2
from std_msgs.msg import String

from flatrope_planner.conversion.bridge import find_bridge
from flatrope_planner.conversion.commands import route_hint
from flatrope_planner.conversion.diagnostics import diagnostic_array
from flatrope_planner.conversion.images import camera_frame
from flatrope_planner.conversion.odometry import odometry_sample
from flatrope_planner.conversion.plans import path_message, rationale_message, trajectory_message
from flatrope_planner.conversion.point_clouds import points_xyz
from flatrope_planner.conversion.stamps import to_header, to_nanoseconds, to_time
from flatrope_planner.conversion.ticks import TickRecord, statistics_message
from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.errors import SetupError, import_complaint
from flatrope_planner.msg import PlannedTrajectory, Rationale, SpeculationStats
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.clock import ClockWatch
from flatrope_planner.nodes.declared import Changes, DeclaredParameters
from flatrope_planner.nodes.ego_status import with_odometry
from flatrope_planner.nodes.guarding import GuardedPlan, PlanGuard, guard_settings
from flatrope_planner.nodes.idleness import Idleness
from flatrope_planner.nodes.input_records import InputRecord, InputRecords
from flatrope_planner.nodes.input_topics import COMMAND, POINTS, input_topics
from flatrope_planner.nodes.inputs import PlannerInputs
from flatrope_planner.nodes.lifecycle import ManagedNode
from flatrope_planner.nodes.monitoring import Level, TaskReport
from flatrope_planner.nodes.obstacles import obstacle_points
from flatrope_planner.nodes.parameters import PlannerParameters
from flatrope_planner.nodes.picture_losses import FAST_DDS, PictureLosses, SourcePauses
from flatrope_planner.nodes.plan_alarm import PlanAlarm
from flatrope_planner.nodes.publishers import publishers_of
from flatrope_planner.nodes.running import run_node
from flatrope_planner.nodes.slowness import foreseen, shortest_bound_s
from flatrope_planner.nodes.worker import PlanningWorker
from flatrope_planner.planning.camera_identity import CameraIdentity
from flatrope_planner.planning.chance import Chance
from flatrope_planner.planning.core import PlanningCore, warm_up
from flatrope_planner.planning.ego_motion import EgoMotion
from flatrope_planner.planning.observation import ODOMETRY, camera_input
from flatrope_planner.planning.plausibility import StampCheck

# How often a due tick is looked for (s of wall time): small beside the time between two pictures.
POLL_PERIOD_S = 0.02
WARN_EVERY_S = 5.0
# What loading a model imports beside ROS.
LIBRARIES = ("torch", "transformers", "safetensors", "tokenizers")
READ_AT_CONFIGURE = "read at configure: deactivate and clean up, set it, then configure and activate"

IN_VAIN = "the target is told no route hints: plans are the same with this one"
NO_FRAME = "header.frame_id is empty, and so is that of the plans: name the frame of the poses, such as map or odom"

LoadCore = Callable[[PlannerParameters], PlanningCore]


class PlannerNode(ManagedNode):
    """Subscribes, plans, publishes."""

    def __init__(self, load: LoadCore) -> None:
        """Read the parameters and, unless a manager is to do it, begin to load the planner with `load`.

        Raises:
            InputError: on a parameter that is not valid.
        """
        super().__init__("planner")
        changes = Changes(self._adopt, lambda: self.state == "unconfigured", READ_AT_CONFIGURE)
        self._settings = parameters = DeclaredParameters(self, PlannerParameters, "planner.param.yaml", changes).values
        self._clock_watch = ClockWatch(self, self._begin_anew)
        self._load = load
        self._fed_by: list[Subscription] = []
        self._logged: set[str] = set()
        logger = self.get_logger()
        self._idleness = Idleness(logger.warning, logger.info)
        self._alarm = PlanAlarm(logger.warning, logger.info)
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._begin_empty()
        self._create_publishers()
        self.create_timer(POLL_PERIOD_S, self._poll, clock=self._steady)
        period_s = parameters.status_period_s
        self._status_timer = self.create_timer(period_s, self._publish_status, clock=self._steady)
        if parameters.autostart:
            self.bring_up()

    def configure(self) -> bool:
        """Subscribe and load the model; False if it cannot be loaded, and the status says why."""
        self._logged.clear()
        self._begin_empty()
        self._bridge = find_bridge()
        self._create_subscriptions()
        begun_s = time.monotonic()
        self._worker.start()
        loaded = self._worker.wait_until_loaded()
        if loaded:
            self.get_logger().info(f"{self._settings.target} is loaded, in {time.monotonic() - begun_s:.1f} s")
        else:
            self._destroy_subscriptions()
        return loaded

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Begin to plan."""
        self._worker.begin()
        self.get_logger().info("active: plans as soon as all inputs are there")
        return super().on_activate(state)

    def rest(self) -> None:
        """Plan no longer; a plan in flight is not published."""
        self._worker.reset()
        self._guard.reset()

    def release(self) -> None:
        """Give back subscriptions, buffers and the model's memory, which a plan in flight keeps until it is made."""
        self._destroy_subscriptions()
        self._worker.close()
        self._begin_empty()
        # Models are full of cycles.
        gc.collect()

    def close(self) -> None:
        """End the planning thread and the node."""
        self._worker.close()
        super().close()

    def _adopt(self, parameters: PlannerParameters) -> None:
        """Let parameters that were set take effect."""
        self._settings = parameters
        self._worker.set_period(parameters.period_s)
        self._guard.adopt(guard_settings(parameters))
        self._records.timeout_s = parameters.input_timeout_s
        self._inputs.judge_by(StampCheck(self._clock_watch.now_ns, parameters.max_input_age_s))
        self._status_timer.timer_period_ns = seconds_to_ns(parameters.status_period_s)
        # Otherwise the old period would have to end first.
        self._status_timer.reset()

    def _begin_empty(self) -> None:
        """Have nothing taken in, and nothing loaded."""
        parameters = self._settings
        stamps = StampCheck(self._clock_watch.now_ns, parameters.max_input_age_s)
        self._inputs = PlannerInputs(parameters.cameras, stamps)
        self._motion = EgoMotion(parameters.rear_axle_offset_m, parameters.twist_frame)
        # Complete before anyone sees it: callbacks run in another thread than transitions.
        self._records = self._new_records()
        cameras = {name: self.resolve_topic_name(f"~/input/camera/{name}") for name in parameters.cameras}
        self._identity = CameraIdentity(cameras)
        self._obstacles = obstacle_points(parameters, self._inputs.pose_at)
        self._guard = PlanGuard(guard_settings(parameters), self._now_ns, self._publish, self._obstacles)
        self._worker = PlanningWorker(
            self._inputs, partial(self._load, parameters), self._guard.take, parameters.period_s
        )
        self._inputs.on_restart = self._forget_drive

    def _create_publishers(self) -> None:
        create = self.create_lifecycle_publisher
        self._trajectory = create(PlannedTrajectory, "~/output/trajectory", qos.NEWEST)
        self._path = create(PathMessage, "~/output/path", qos.NEWEST)
        self._rationale = create(Rationale, "~/output/rationale", qos.REPORT)
        self._rationale_text = create(String, "~/output/rationale_text", qos.REPORT)
        self._speculation = create(SpeculationStats, "~/output/speculation", qos.REPORT)
        # Told in every state.
        self._status = self.create_publisher(DiagnosticArray, "~/output/status", qos.REPORT)

    def _new_records(self) -> InputRecords:
        topics = input_topics(self._settings)
        records = {
            name: InputRecord(self.resolve_topic_name(topic.name), optional=name == COMMAND)
            for name, topic in topics.items()
        }
        self._pauses = SourcePauses()
        raw, fast_dds = not self._settings.compressed, FAST_DDS in rclpy.get_rmw_implementation_identifier()
        for camera in self._settings.cameras:
            records[camera_input(camera)].losses = PictureLosses(raw=raw, fast_dds=fast_dds, pauses=self._pauses)
        return InputRecords(self._settings.input_timeout_s, records)

    def _create_subscriptions(self) -> None:
        takers: dict[str, Callable[[Any], None]] = {ODOMETRY: self._take_odometry, COMMAND: self._take_command}
        takers |= {camera_input(camera): partial(self._take_image, camera) for camera in self._settings.cameras}
        takers[POINTS] = self._take_points
        for name, topic in input_topics(self._settings).items():
            self._subscribe(topic.kind, topic.name, takers[name], topic.qos)

    def _subscribe(self, kind: type, topic: str, take: Callable[[Any], None], profile: QoSProfile) -> None:
        self._fed_by.append(self.create_subscription(kind, topic, take, profile))

    def _destroy_subscriptions(self) -> None:
        while self._fed_by:
            self.destroy_subscription(self._fed_by.pop())

    def _take_image(self, camera: str, message: Image | CompressedImage) -> None:
        def use() -> None:
            frame = camera_frame(message, self._bridge)
            # Before anything is forgotten for it.
            self._inputs.check(frame.stamp_ns)
            record = self._records.records[camera_input(camera)]
            if record.changes_frame(time.monotonic(), message.header.frame_id):
                self._inputs.forget_camera(camera)
                self._identity.forget(camera)
            self._identity.look(camera, frame.image, message.header.frame_id)
            if record.losses is not None:
                record.losses.take(frame.stamp_ns, len(message.data))
            self._inputs.add_image(camera, frame)

        self._take(camera_input(camera), use)

    def _take_odometry(self, message: Odometry) -> None:
        def use() -> None:
            sample = odometry_sample(message)
            # A stamp that lies must not reach the motion that is made of many.
            self._inputs.check(sample.stamp_ns)
            self._pauses.take(sample.stamp_ns)
            self._inputs.add_odometry(self._motion.take(sample), message.header.frame_id)
            self._records.records[ODOMETRY].oddity = "" if message.header.frame_id else NO_FRAME
            if self._obstacles is not None:
                self._obstacles.vehicle_frame = message.child_frame_id

        self._take(ODOMETRY, use)

    def _take_command(self, message: String) -> None:
        def use() -> None:
            hint = route_hint(message)
            self._inputs.set_command(hint)
            in_vain = bool(hint) and not self._inputs.reads_commands
            self._records.records[COMMAND].oddity = IN_VAIN if in_vain else ""

        self._take(COMMAND, use)

    def _take_points(self, message: PointCloud2) -> None:
        obstacles, stamp_ns = self._obstacles, to_nanoseconds(message.header.stamp)
        if obstacles is not None:
            self._take(POINTS, lambda: obstacles.take(stamp_ns, message.header.frame_id, partial(points_xyz, message)))

    def _take(self, name: str, use: Callable[[], None]) -> None:
        record = self._records.records[name]
        failure = record.take(time.monotonic(), use)
        if failure is not None:
            self.get_logger().warning(f"{record.topic}: {failure}", throttle_duration_sec=WARN_EVERY_S)

    def _begin_anew(self, words: str) -> None:
        self.get_logger().info(f"{words}: starting anew", throttle_duration_sec=WARN_EVERY_S)
        self._inputs.clear()
        self._forget_drive()

    def _forget_drive(self) -> None:
        """Remember nothing of the plans so far: inputs began anew."""
        self._worker.reset()
        self._guard.reset()
        if self._obstacles is not None:
            self._obstacles.reset()

    def _now_ns(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def _poll(self) -> None:
        if self._trajectory.is_activated:
            self._worker.poll()
            self._guard.watch(self._worker, time.monotonic())

    def _publish(self, guarded: GuardedPlan) -> None:
        """Publish a plan or its fallback; runs in the planning thread or, for a late plan, in the executor's."""
        placed, tick = guarded.placed, guarded.tick
        # First of all: the clock may leap while the rest is being published.
        now_ns = self._now_ns()
        self._trajectory.publish(trajectory_message(placed, self._settings.target, guarded.judgement))
        self._path.publish(path_message(placed))
        if tick is None or tick.plan is None:
            return
        plan = tick.plan
        header = to_header(plan.t0_ns, placed.frame_id)
        age_ms = (now_ns - plan.t0_ns) * 1e-6
        record = TickRecord(age_ms, tick.ticks, tick.dropped_ticks, guarded.deadline_misses, guarded.fallbacks)
        self._rationale.publish(rationale_message(plan.rationale, header))
        self._rationale_text.publish(String(data=plan.rationale.text))
        self._speculation.publish(statistics_message(plan, record, header))

    def _publish_status(self) -> None:
        plans = self._guard.report()
        self._alarm.look(plans, self._guard.trouble(), time.monotonic())
        reports = [
            self.life_report(),
            *self._worker.reports(),
            plans,
            self._clock_watch.report(self._settings.input_timeout_s),
        ]
        if self._obstacles is not None:
            reports.append(self._obstacles.report())
        if self._fed_by:
            topics = input_topics(self._settings)
            publishers = {name: publishers_of(self, topic) for name, topic in topics.items()}
            signs = self._identity.signs()
            self._log_signs(signs)
            inputs = self._records.report(time.monotonic(), publishers, self._inputs.state(), signs)
            reports.append(with_odometry(inputs, self._motion))
        idle_s = self._worker.idle_s() if self._trajectory.is_activated else None
        reports = self._idleness.shown(reports, idle_s, self._settings.input_timeout_s)
        self._log_problems(reports)
        stamp = to_time(self.get_clock().now().nanoseconds)
        self._status.publish(diagnostic_array(reports, stamp, node_name=self.get_name(), hardware_id=""))

    def _log_signs(self, signs: Sequence[str]) -> None:
        """Say once that a camera may be another one."""
        for sign in signs:
            if sign not in self._logged:
                self._logged.add(sign)
                self.get_logger().warning(f"inputs: {sign}")

    def _log_problems(self, reports: Sequence[TaskReport]) -> None:
        """Say once what is wrong with model or draft: nobody may be listening to the status."""
        wrong = {"model": Level.ERROR, "draft": Level.WARN}
        for report in reports:
            if report.task not in wrong or report.level < wrong[report.task] or report.message in self._logged:
                continue
            self._logged.add(report.message)
            # One place for each severity: rclpy allows a call site no more than one.
            if report.level is Level.ERROR:
                self.get_logger().error(f"{report.task}: {report.message}")
            else:
                self.get_logger().warning(f"{report.task}: {report.message}")


def load_planner(parameters: PlannerParameters, warn: Callable[[str], object] = lambda _words: None) -> PlanningCore:
    """The planner that the parameters ask for, warmed up.

    Args:
        parameters: those of the node.
        warn: told if plans will take too long, or longer than they need.

    Raises:
        SetupError: if its weights or a library are missing.
    """
    from flatrope_planner.speculation.exactness import Exactness, ExactnessMode
    from flatrope_planner.vla.arithmetic import slow_arithmetic
    from flatrope_planner.vla.drafting import DrafterKind, SpeculationOptions
    from flatrope_planner.vla.loading import planner_with
    from flatrope_planner.vla.target import INT8, PRECISIONS, Running
    from flatrope_planner.vla.targets import find_target, load_target

    speculation = SpeculationOptions(
        DrafterKind(parameters.drafter),
        Path(parameters.draft) if parameters.draft else None,
        parameters.draft_nodes,
        Exactness(ExactnessMode(parameters.exactness), parameters.audit_every),
    )
    precision = PRECISIONS.get(parameters.precision)
    quantised = parameters.precision == INT8
    running = Running(parameters.cameras, precision, parameters.device, parameters.guidance, quantised)
    p = parameters
    folder = find_target(p.target)
    target = load_target(folder, running=running)
    core = planner_with(target, folder, speculation)
    core.chance = Chance(p.draw_seed, p.temperature, p.top_p, p.trajectory_samples)
    took_s = warm_up(core, shortest_bound_s(p.deadline_s, p.max_plan_age_s))
    expected = foreseen(took_s, p.deadline_s, p.max_plan_age_s)
    for words in filter(None, (slow_arithmetic(target.device, target.precision), expected)):
        warn(f"{p.target}: {words}")
    return core


def planner_node() -> PlannerNode:
    """The node with a real planner.

    Raises:
        SetupError: if a library is missing that no configure could load a model without.
        InputError: on a parameter that is not valid.
    """
    for name in LIBRARIES:
        if find_spec(name) is None:
            raise SetupError(import_complaint(ModuleNotFoundError(f"No module named {name!r}")))

    def warn(words: str) -> None:
        # Long before a model is loaded the node is there.
        node.get_logger().warning(words)

    node = PlannerNode(partial(load_planner, warn=warn))
    return node


def main() -> NoReturn:
    """Run the node until it is asked to end."""
    run_node(planner_node, lasting=True)
