"""Bags of drives that never were, written without ROS, and a planner that costs nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from stand_ins import SPEC, straight

from flatrope_planner.domain import (
    Observation,
    Plan,
    Rationale,
    RationaleToken,
    SpeculationHealth,
    SpeculationStats,
    Trajectory,
)
from flatrope_planner.evaluation.bag_writer import typestore_with
from flatrope_planner.evaluation.replay.bag_replay import ReplayOptions
from flatrope_planner.evaluation.replay.bag_result import replayed
from flatrope_planner.evaluation.replay.contestants import Contestants
from flatrope_planner.evaluation.replay.settings import read_settings
from flatrope_planner.evaluation.replay.task import Lineup, ReplayTask

DEFINITIONS = Path(__file__).resolve().parents[1] / "msg"
STORE = typestore_with(DEFINITIONS)
EPOCH_S = 100.0
SECOND_NS = 1_000_000_000
ODOMETRY_TOPIC = "/localization/kinematic_state"
CAMERA_TOPICS = {camera: f"/sensing/{camera}/image_raw" for camera in SPEC.cameras}

# Seconds -> x, y (m), yaw (rad).
Motion = Callable[[float], tuple[float, float, float]]


def ahead(speed_mps: float) -> Motion:
    """Straight along x."""
    return lambda time_s: (speed_mps * time_s, 0.0, 0.0)


def circling(speed_mps: float, radius_m: float) -> Motion:
    """A left turn of constant radius."""

    def pose(time_s: float) -> tuple[float, float, float]:
        turned = speed_mps * time_s / radius_m
        return float(radius_m * np.sin(turned)), float(radius_m * (1.0 - np.cos(turned))), turned

    return pose


def make(kind: str, **fields: Any) -> Any:
    """A message of a type like std_msgs/String."""
    package, name = kind.split("/")
    return STORE.types[f"{package}/msg/{name}"](**fields)


def nanoseconds(time_s: float) -> int:
    return round((EPOCH_S + time_s) * SECOND_NS)


def header(time_s: float, frame_id: str) -> Any:
    sec, nanosec = divmod(nanoseconds(time_s), SECOND_NS)
    return make("std_msgs/Header", stamp=make("builtin_interfaces/Time", sec=sec, nanosec=nanosec), frame_id=frame_id)


def odometry_message(time_s: float, motion: Motion) -> Any:
    x, y, yaw = motion(time_s)
    turn = make("geometry_msgs/Quaternion", x=0.0, y=0.0, z=float(np.sin(yaw / 2)), w=float(np.cos(yaw / 2)))
    pose = make("geometry_msgs/Pose", position=make("geometry_msgs/Point", x=x, y=y, z=0.0), orientation=turn)
    before = motion(time_s - 1e-3)
    speed = float(np.hypot(x - before[0], y - before[1]) * 1e3)
    still = make("geometry_msgs/Vector3", x=0.0, y=0.0, z=0.0)
    twist = make("geometry_msgs/Twist", linear=make("geometry_msgs/Vector3", x=speed, y=0.0, z=0.0), angular=still)
    return make(
        "nav_msgs/Odometry",
        header=header(time_s, "map"),
        child_frame_id="base_link",
        pose=make("geometry_msgs/PoseWithCovariance", pose=pose, covariance=np.zeros(36)),
        twist=make("geometry_msgs/TwistWithCovariance", twist=twist, covariance=np.zeros(36)),
    )


def image_message(time_s: float, camera: str) -> Any:
    """A small picture whose red tells the time, whose green tells the camera."""
    image = np.zeros((4, 6, 3), np.uint8)
    image[..., 0], image[..., 1] = round(time_s * 10) % 256, 50 * SPEC.cameras.index(camera)
    return make(
        "sensor_msgs/Image",
        header=header(time_s, camera),
        height=4,
        width=6,
        encoding="rgb8",
        is_bigendian=0,
        step=18,
        data=image.reshape(-1),
    )


def jpeg_message(time_s: float, camera: str) -> Any:
    _, encoded = cv2.imencode(".jpg", np.full((16, 16, 3), round(time_s * 10) % 256, np.uint8))
    data = np.frombuffer(encoded.tobytes(), np.uint8)
    return make("sensor_msgs/CompressedImage", header=header(time_s, camera), format="jpeg", data=data)


@dataclass(frozen=True)
class Sent:
    """A message and when it is recorded."""

    log_s: float
    topic: str
    message: Any


@dataclass(frozen=True)
class Storage:
    """How a bag is stored."""

    plugin: StoragePlugin = StoragePlugin.MCAP
    compression: CompressionMode = CompressionMode.NONE


@dataclass(frozen=True)
class Drive:
    """What happens and what is recorded of it."""

    motion: Motion = field(default_factory=lambda: ahead(6.0))
    duration_s: float = 10.0
    odometry_s: Sequence[float] | None = None
    # When each camera begins.
    cameras_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(SPEC.cameras, 0.0))
    picture: Callable[[float, str], Any] = image_message
    more: tuple[Sent, ...] = ()

    def sent(self) -> list[Sent]:
        """All messages; of one moment the pictures first, as if they were faster."""
        steps = round(self.duration_s / 0.05)
        odometry_s = self.odometry_s if self.odometry_s is not None else [i * 0.05 for i in range(steps + 1)]
        pictures = [
            Sent(i * 0.1, CAMERA_TOPICS[camera], self.picture(i * 0.1, camera))
            for i in range(round(self.duration_s / 0.1) + 1)
            for camera, start_s in self.cameras_s.items()
            if i * 0.1 >= start_s - 1e-9
        ]
        poses = [Sent(time_s, ODOMETRY_TOPIC, odometry_message(time_s, self.motion)) for time_s in odometry_s]
        return sorted([*pictures, *poses, *self.more], key=lambda sent: sent.log_s)


def write_bag(folder: Path, drive: Drive, storage: Storage | None = None) -> Path:
    """A rosbag2 folder with the drive in it."""
    storage = storage or Storage()
    writer = Writer(folder, version=9, storage_plugin=storage.plugin)
    if storage.compression is not CompressionMode.NONE:
        writer.set_compression(storage.compression, CompressionFormat.ZSTD)
    connections: dict[str, Any] = {}
    with writer:
        for sent in drive.sent():
            kind = sent.message.__msgtype__
            if sent.topic not in connections:
                connections[sent.topic] = writer.add_connection(sent.topic, kind, typestore=STORE)
            cdr = bytes(STORE.serialize_cdr(sent.message, kind))
            writer.write(connections[sent.topic], nanoseconds(sent.log_s), cdr)
    return folder


class CheapCore:
    """Plans straight ahead at 5 m/s and says how many pictures it was shown; proposes two tokens of which one holds."""

    observation_spec = SPEC
    health = SpeculationHealth(drafter="cheap", speculating=True)

    def __init__(self, trajectory: Trajectory | None = None) -> None:
        self.trajectory = trajectory or straight()
        self.seen: list[Observation] = []
        self.resets = 0

    def reset(self) -> None:
        self.resets += 1

    def plan(self, observation: Observation) -> Plan:
        self.seen.append(observation)
        red = int(observation.frames[SPEC.cameras[0]][-1].image[0, 0, 0])
        text = f"Keep the lane {'early' if red < 40 else 'late'}."
        tokens = tuple(RationaleToken(word, "target", 0, 1.0) for word in text.split())
        stats = SpeculationStats(2, 4, 2, 5, drafter="cheap", acceptance_histogram=(0, 2))
        stages = {"vision": 1.0, "prefill": 2.0, "reasoning": 3.0, "action": 4.0, "total": 10.0}
        return Plan(observation.t0_ns, self.trajectory, Rationale(text, tokens), stats, stages)

    def plan_with_samples(
        self, observation: Observation, seed: int, samples: int
    ) -> tuple[Plan, tuple[Trajectory, ...]]:
        return self.plan(observation), tuple(straight(5.0 + seed + 0.5 * i) for i in range(samples))


def task_of(bag: Path, folder: Path, options: ReplayOptions | None = None) -> ReplayTask:
    return ReplayTask(bag, bag.stem, folder / bag.stem, Lineup(read_settings(None)), options or ReplayOptions(0.5))


def replay(
    bag: Path, folder: Path, contestants: Contestants | None = None, options: ReplayOptions | None = None
) -> dict[str, Any]:
    """The result of replaying a bag."""
    who = contestants or Contestants(CheapCore())
    return replayed(task_of(bag, folder, options), lambda: who, lambda _share: None)
