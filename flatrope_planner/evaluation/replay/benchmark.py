"""How much faster than real time a replay reads bags, apart from the model: two 1600x900 cameras, odometry at 50 Hz."""

import resource
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cv2
import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer

from flatrope_planner.bringup.configuration import message_definitions
from flatrope_planner.dimensions import FUTURE_POINTS, NANOSECONDS_PER_SECOND
from flatrope_planner.domain import (
    Observation,
    ObservationSpec,
    Plan,
    Rationale,
    SpeculationHealth,
    SpeculationStats,
    Trajectory,
    seconds_to_ns,
)
from flatrope_planner.errors import SetupError
from flatrope_planner.evaluation.bag_writer import typestore_with
from flatrope_planner.evaluation.replay.bag_replay import ReplayOptions
from flatrope_planner.evaluation.replay.bag_result import FAILED, replayed
from flatrope_planner.evaluation.replay.contestants import Contestants
from flatrope_planner.evaluation.replay.settings import read_settings
from flatrope_planner.evaluation.replay.task import Lineup, ReplayTask

SPEC = ObservationSpec(("front_wide", "front_tele"), frames_per_camera=2, frame_period_s=0.5)
WIDTH_PX, HEIGHT_PX, CHANNELS = 1600, 900, 3
CAMERA_HZ, ODOMETRY_HZ, SPEED_MPS = 10, 50, 10.0
EPOCH_S = 100.0
# Name -> storage and whether pictures are JPEG.
KINDS: dict[str, tuple[StoragePlugin, bool]] = {
    "mcap, bgr8": (StoragePlugin.MCAP, False),
    "mcap, jpeg": (StoragePlugin.MCAP, True),
    "sqlite3, bgr8": (StoragePlugin.SQLITE3, False),
    "sqlite3, jpeg": (StoragePlugin.SQLITE3, True),
}


class FreeCore:
    """Plans straight ahead, for nothing."""

    observation_spec = SPEC
    health = SpeculationHealth()

    def reset(self) -> None:
        """Nothing to forget."""

    def plan(self, observation: Observation) -> Plan:
        """The same for everything."""
        zeros = np.zeros(FUTURE_POINTS)
        time_s = np.arange(1.0, FUTURE_POINTS + 1) / 10.0
        position_m = np.stack([SPEED_MPS * time_s, zeros, zeros], axis=1)
        ahead = Trajectory(position_m, zeros, np.full(FUTURE_POINTS, SPEED_MPS), np.zeros((FUTURE_POINTS, 2)))
        return Plan(observation.t0_ns, ahead, Rationale("Keep going."), SpeculationStats(0, 0, 0, 0))

    def plan_with_samples(
        self, observation: Observation, seed: int, samples: int
    ) -> tuple[Plan, tuple[Trajectory, ...]]:
        """Without samples."""
        del seed, samples
        return self.plan(observation), ()


@dataclass(frozen=True)
class _Sent:
    stamp_ns: int
    topic: str
    message_type: str
    cdr: bytes


def run_replay_benchmark(duration_s: float) -> dict[str, Any]:
    """Write a bag of each kind, replay it, remove it; the ratios.

    Raises:
        SetupError: if there is no room for a bag.
    """
    return {kind: _measure(kind, duration_s) for kind in KINDS}


def table(result: Mapping[str, Any]) -> str:
    """The ratios as text, one bag a line."""
    head = f"{'bag':<16}{'MB':>8}{'s':>8}{'x real time':>13}{'CPU s':>8}{'x real time':>13}{'peak memory, MB':>17}"
    lines = [
        f"{kind:<16}{row['megabytes']:>8.0f}{row['wall_s']:>8.2f}{row['times_real_time']:>13.1f}"
        f"{row['cpu_s']:>8.2f}{row['times_real_time_of_cpu']:>13.1f}{row['peak_memory_megabytes']:>17.0f}"
        for kind, row in result.items()
    ]
    return "\n".join([head, *lines])


def _measure(kind: str, duration_s: float) -> dict[str, float]:
    plugin, compressed = KINDS[kind]
    with TemporaryDirectory(prefix="flatrope-bench-") as name:
        bag = Path(name, "drive")
        try:
            _write(bag, plugin, _messages(duration_s, compressed))
        except OSError as err:
            msg = f"{bag} cannot be written: {err.strerror}; {shutil.disk_usage(name).free // 2**20} MB are free"
            raise SetupError(msg) from err
        task = ReplayTask(bag, "drive", Path(name, "out"), Lineup(read_settings(None)), ReplayOptions(0.5))
        started_s, worked_s = time.perf_counter(), time.process_time()
        result = replayed(task, lambda: Contestants(FreeCore()), lambda _share: None)
        wall_s, cpu_s = time.perf_counter() - started_s, time.process_time() - worked_s
        megabytes = task.size / 1e6
    if result["status"] == FAILED:
        raise SetupError(result["error"])
    return {
        "megabytes": megabytes,
        "plans": result["plans"],
        "wall_s": wall_s,
        "times_real_time": result["duration_s"] / wall_s,
        # What is left on a machine that others use too.
        "cpu_s": cpu_s,
        "times_real_time_of_cpu": result["duration_s"] / cpu_s,
        # Of this process since it began, the writing of bags included.
        "peak_memory_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
    }


def _write(bag: Path, plugin: StoragePlugin, messages: Iterator[_Sent]) -> None:
    store = typestore_with(message_definitions())
    writer = Writer(bag, version=9, storage_plugin=plugin)
    connections: dict[str, Any] = {}
    with writer:
        for sent in messages:
            if sent.topic not in connections:
                connections[sent.topic] = writer.add_connection(sent.topic, sent.message_type, typestore=store)
            writer.write(connections[sent.topic], sent.stamp_ns, sent.cdr)


def _messages(duration_s: float, compressed: bool) -> Iterator[_Sent]:
    """A straight drive, in the order of its stamps."""
    store = typestore_with(message_definitions())
    picture = _picture()
    for step in range(round(duration_s * ODOMETRY_HZ) + 1):
        stamp_ns = seconds_to_ns(EPOCH_S + step / ODOMETRY_HZ)
        yield _sent(store, stamp_ns, "/odometry", _odometry(store, stamp_ns, step / ODOMETRY_HZ))
        if step % (ODOMETRY_HZ // CAMERA_HZ) == 0:
            for camera in SPEC.cameras:
                yield _sent(store, stamp_ns, f"/camera/{camera}/image", _image(store, stamp_ns, picture, compressed))


def _sent(store: Any, stamp_ns: int, topic: str, message: Any) -> _Sent:
    kind = message.__msgtype__
    return _Sent(stamp_ns, topic, kind, bytes(store.serialize_cdr(message, kind)))


def _picture() -> Any:
    """Blocks of colour with a little noise: about as large a JPEG as that of a street."""
    rng = np.random.default_rng(0)
    blocks = rng.integers(0, 255, (HEIGHT_PX // 30, WIDTH_PX // 40, CHANNELS))
    large = cv2.resize(blocks.astype(np.uint8), (WIDTH_PX, HEIGHT_PX), interpolation=cv2.INTER_CUBIC)
    noise = rng.integers(0, 12, large.shape)
    return np.clip(large.astype(np.int64) + noise, 0, 255).astype(np.uint8)


def _header(store: Any, stamp_ns: int) -> Any:
    sec, nanosec = divmod(stamp_ns, NANOSECONDS_PER_SECOND)
    stamp = store.types["builtin_interfaces/msg/Time"](sec=sec, nanosec=nanosec)
    return store.types["std_msgs/msg/Header"](stamp=stamp, frame_id="map")


def _image(store: Any, stamp_ns: int, picture: Any, compressed: bool) -> Any:
    header = _header(store, stamp_ns)
    if compressed:
        _, encoded = cv2.imencode(".jpg", picture)
        return store.types["sensor_msgs/msg/CompressedImage"](header=header, format="jpeg", data=encoded.ravel())
    return store.types["sensor_msgs/msg/Image"](
        header=header,
        height=HEIGHT_PX,
        width=WIDTH_PX,
        encoding="bgr8",
        is_bigendian=0,
        step=WIDTH_PX * CHANNELS,
        data=picture.ravel(),
    )


def _odometry(store: Any, stamp_ns: int, time_s: float) -> Any:
    make = store.types
    still = make["geometry_msgs/msg/Vector3"](x=0.0, y=0.0, z=0.0)
    ahead = make["geometry_msgs/msg/Vector3"](x=SPEED_MPS, y=0.0, z=0.0)
    point = make["geometry_msgs/msg/Point"](x=SPEED_MPS * time_s, y=0.0, z=0.0)
    turn = make["geometry_msgs/msg/Quaternion"](x=0.0, y=0.0, z=0.0, w=1.0)
    pose = make["geometry_msgs/msg/Pose"](position=point, orientation=turn)
    twist = make["geometry_msgs/msg/Twist"](linear=ahead, angular=still)
    return make["nav_msgs/msg/Odometry"](
        header=_header(store, stamp_ns),
        child_frame_id="base_link",
        pose=make["geometry_msgs/msg/PoseWithCovariance"](pose=pose, covariance=np.zeros(36)),
        twist=make["geometry_msgs/msg/TwistWithCovariance"](twist=twist, covariance=np.zeros(36)),
    )
