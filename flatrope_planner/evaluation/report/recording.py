"""Reads a bag of the planner's topics into plain data. Needs no ROS: bags carry their message definitions.

Topics are told apart by their message type, cameras by the topic's name, so any bag of these types will do.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from flatrope_planner.dimensions import NANOSECONDS_PER_SECOND
from flatrope_planner.domain import Floats, seconds_to_ns
from flatrope_planner.errors import InputError, on_one_line, reason
from flatrope_planner.evaluation.replay.bag_source import BagSource
from flatrope_planner.evaluation.replay.bags import the_bag_at
from flatrope_planner.evaluation.replay.messages import nanoseconds, odometry_sample, placed, read, typestore_of
from flatrope_planner.evaluation.replay.rejections import Rejections
from flatrope_planner.evaluation.report.bounds import MOST_MEMORY_BYTES, bounded
from flatrope_planner.evaluation.report.shapes import Shape, shapes_of
from flatrope_planner.planning.odometry import OdometrySample
from flatrope_planner.planning.pose import Pose
from flatrope_planner.simulation.scene_name import scene_name

STAGES = ("vision", "prefill", "reasoning", "action", "total")
# Of a planner's status those that may keep it from planning, causes first.
TASKS = ("model", "lifecycle", "inputs", "clock", "planning", "plans")


@dataclass(frozen=True)
class RecordedPlan:
    """A plan as it was published."""

    t0_ns: int
    ego_pose: Pose
    # float64 (N, 3) and (N,): frame of the odometry, m; rad.
    position_m: Floats
    yaw_rad: Floats
    # float64 (N,): seconds after t0, and m/s.
    time_s: Floats
    speed_mps: Floats
    # float64 (N,), 1/m.
    curvature: Floats
    # Why the plan is a fallback; empty when it is none.
    fallback_reason: str
    target: str


@dataclass(frozen=True)
class RecordedCosts:
    """What a tick took."""

    stage_ms: dict[str, float]
    observation_age_ms: float
    mean_acceptance_length: float
    dropped_ticks: int


@dataclass(frozen=True)
class RecordedPicture:
    """A compressed picture as it lies in the bag."""

    stamp_ns: int
    encoded: bytes


@dataclass(frozen=True)
class RecordedOutcome:
    """How a scene ended."""

    # As in `Recording.scene_names`; "" where the outcome does not say.
    scene: str
    # Where the outcome does not say: when it was recorded, which may be after the next scene began.
    ended_ns: int
    # "success" or what went wrong.
    text: str


@dataclass
class Recording:
    """Everything the report speaks about; lists are in the order of their stamps."""

    odometry: list[OdometrySample] = field(default_factory=list)
    plans: list[RecordedPlan] = field(default_factory=list)
    # What the reference driver would have done, if it was asked.
    reference_plans: list[RecordedPlan] = field(default_factory=list)
    # t0 (ns) -> text and costs.
    rationales: dict[int, str] = field(default_factory=dict)
    reference_rationales: dict[int, str] = field(default_factory=dict)
    costs: dict[int, RecordedCosts] = field(default_factory=dict)
    # Camera -> pictures, and its intrinsic matrix (3, 3) with the width (px) it is for.
    pictures: dict[str, list[RecordedPicture]] = field(default_factory=dict)
    intrinsics: dict[str, tuple[Floats, int]] = field(default_factory=dict)
    # Child frame -> pose in its parent, of the transforms that never change.
    mounts: dict[str, Pose] = field(default_factory=dict)
    # When the planner told of its state (ns), and what was wrong then, "" for nothing.
    problems: list[tuple[int, str]] = field(default_factory=list)
    # Topic of markers -> stamp (ns) and the shapes that hold from then on.
    scenery: dict[str, list[tuple[int, tuple[Shape, ...]]]] = field(default_factory=dict)
    # Names of the scenes in the order in which they began.
    scene_names: list[str] = field(default_factory=list)
    outcomes: list[RecordedOutcome] = field(default_factory=list)
    # How often the simulator has waited for a command in vain.
    control_timeouts: int = 0
    # What of the bag is missing or damaged, a line each.
    missing: list[str] = field(default_factory=list)


def read_recording(bag: Path) -> Recording:
    """Read a rosbag2 folder or a single .mcap file.

    Raises:
        InputError: if there is no readable bag, or nothing was driven in it.
    """
    recording = Recording()
    bag = the_bag_at(bag)
    try:
        with bounded(), BagSource(bag) as source:
            _take_in(recording, source)
    except InputError:
        raise
    except MemoryError as err:
        remedy = "it is damaged, or cut it with `ros2 bag convert`"
        msg = f"{bag} takes more than {MOST_MEMORY_BYTES >> 30} GiB to read: {remedy}"
        raise InputError(msg) from err
    except Exception as err:  # damage shows in the container, its compression or a message, each with errors of its own
        msg = f"{bag} cannot be read as a bag: {reason(err)}; expected the folder of a bag, or a single .mcap file"
        raise InputError(msg) from err
    if not recording.odometry:
        because = f" ({recording.missing[0]})" if recording.missing else ""
        msg = f"{bag} has no nav_msgs/msg/Odometry in it: nothing to report on{because}"
        raise InputError(msg)
    if not recording.plans:
        # The reference driver itself was at the wheel.
        recording.plans, recording.reference_plans = recording.reference_plans, []
        recording.rationales, recording.reference_rationales = recording.reference_rationales, {}
    return recording


def _take_in(recording: Recording, source: BagSource) -> None:
    """Take in every message that the report speaks about."""
    store = typestore_of(source.connections)
    messages, rejections = Counter[str](), Rejections()
    for together in source.moments({topic.name for topic in source.topics if topic.message_type in _READERS}):
        for message in together:
            if message.message_type not in _READERS:
                continue
            messages[message.topic] += 1
            try:
                _READERS[message.message_type](recording, message.topic, message.log_ns, read(store, message))
            except MemoryError:
                raise
            except Exception as err:  # a message that is damaged, or of somebody else's meaning, costs itself
                rejections.add(message.topic, on_one_line(reason(err)))
    recording.missing += [*source.notes, *rejections.lines(messages, {})]


def _add_odometry(recording: Recording, _topic: str, _log_ns: int, message: Any) -> None:
    recording.odometry.append(odometry_sample(message))


def _add_plan(recording: Recording, topic: str, _log_ns: int, message: Any) -> None:
    points = message.points
    poses = [placed(point.pose.position, point.pose.orientation) for point in points]
    plan = RecordedPlan(
        t0_ns=nanoseconds(message.header.stamp),
        ego_pose=placed(message.ego_pose.position, message.ego_pose.orientation),
        position_m=np.array([pose.position_m for pose in poses]).reshape(-1, 3),
        yaw_rad=np.array([pose.yaw_rad for pose in poses]),
        time_s=np.array([nanoseconds(point.time_from_start) / NANOSECONDS_PER_SECOND for point in points]),
        speed_mps=np.array([point.speed for point in points]),
        curvature=np.array([point.curvature for point in points]),
        fallback_reason=message.status_reason,
        target=message.target,
    )
    (recording.reference_plans if _is_reference(topic) else recording.plans).append(plan)


def _add_rationale(recording: Recording, topic: str, _log_ns: int, message: Any) -> None:
    texts = recording.reference_rationales if _is_reference(topic) else recording.rationales
    texts[nanoseconds(message.header.stamp)] = message.text


def _is_reference(topic: str) -> bool:
    return "/reference/" in topic


def _add_costs(recording: Recording, _topic: str, _log_ns: int, message: Any) -> None:
    recording.costs[nanoseconds(message.header.stamp)] = RecordedCosts(
        {stage: float(getattr(message, f"{stage}_ms")) for stage in STAGES},
        float(message.observation_age_ms),
        float(message.mean_acceptance_length),
        int(message.dropped_ticks),
    )


def _camera_of(topic: str) -> str:
    """/carla/ego_vehicle/front_wide/image/compressed and .../front_wide/camera_info -> front_wide."""
    names = [name for name in topic.split("/") if name not in ("image", "image_raw", "compressed", "camera_info")]
    return names[-1]


def _add_picture(recording: Recording, topic: str, _log_ns: int, message: Any) -> None:
    picture = RecordedPicture(nanoseconds(message.header.stamp), bytes(message.data))
    recording.pictures.setdefault(_camera_of(topic), []).append(picture)


def _add_intrinsics(recording: Recording, topic: str, _log_ns: int, message: Any) -> None:
    recording.intrinsics[_camera_of(topic)] = np.array(message.k, dtype=np.float64).reshape(3, 3), int(message.width)


def _add_mount(recording: Recording, _topic: str, _log_ns: int, message: Any) -> None:
    mount = message.transform
    recording.mounts[message.child_frame_id] = placed(mount.translation, mount.rotation)


def _add_static_mounts(recording: Recording, topic: str, log_ns: int, message: Any) -> None:
    if topic.endswith("/tf_static"):
        for transform in message.transforms:
            _add_mount(recording, topic, log_ns, transform)


def _add_text(recording: Recording, topic: str, log_ns: int, message: Any) -> None:
    if topic.endswith("/scene"):
        recording.scene_names.append(message.data)
    elif topic.endswith("/outcome"):
        outcome = json.loads(message.data)
        recording.control_timeouts += outcome.get("control_timeouts", 0)
        recording.outcomes.append(_outcome(outcome, log_ns))


def _outcome(told: Mapping[str, Any], log_ns: int) -> RecordedOutcome:
    scene = scene_name(told["family"], told["seed"]) if "family" in told and "seed" in told else ""
    ended_ns = seconds_to_ns(float(told["end_s"])) if "end_s" in told else log_ns
    return RecordedOutcome(scene, ended_ns, "success" if told["success"] else ", ".join(told["failures"]))


def _add_problem(recording: Recording, topic: str, _log_ns: int, message: Any) -> None:
    """The worst of what a planner says of itself, of several the first in the order in which one leads to another."""
    if topic.endswith("/output/status"):
        told = {status.name.rpartition(": ")[2]: status for status in message.status}
        wrong = [(told[task].level, task) for task in TASKS if task in told and told[task].level > 0]
        _, worst = max(wrong, key=lambda each: each[0], default=(0, ""))
        problem = f"{worst}: {told[worst].message}" if worst else ""
        recording.problems.append((nanoseconds(message.header.stamp), problem))


def _add_scenery(recording: Recording, topic: str, log_ns: int, message: Any) -> None:
    if message.markers:
        shapes = tuple(shape for marker in message.markers for shape in shapes_of(marker))
        since_ns = nanoseconds(message.markers[0].header.stamp) or log_ns
        recording.scenery.setdefault(topic, []).append((since_ns, shapes))


_READERS: dict[str, Callable[[Recording, str, int, Any], None]] = {
    "nav_msgs/msg/Odometry": _add_odometry,
    "flatrope_planner/msg/PlannedTrajectory": _add_plan,
    "flatrope_planner/msg/Rationale": _add_rationale,
    "flatrope_planner/msg/SpeculationStats": _add_costs,
    "sensor_msgs/msg/CompressedImage": _add_picture,
    "sensor_msgs/msg/CameraInfo": _add_intrinsics,
    "geometry_msgs/msg/TransformStamped": _add_mount,
    "tf2_msgs/msg/TFMessage": _add_static_mounts,
    "diagnostic_msgs/msg/DiagnosticArray": _add_problem,
    "visualization_msgs/msg/MarkerArray": _add_scenery,
    "std_msgs/msg/String": _add_text,
}
