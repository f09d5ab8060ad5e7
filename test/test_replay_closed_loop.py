"""A closed loop that was recorded is replayed: the planner sees the same to the last bit, and scores the same."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drives import STORE, make, replay
from rosbags.rosbag2 import StoragePlugin, Writer
from stand_ins import straight

from flatrope_planner.domain import (
    CameraFrame,
    Observation,
    Plan,
    Rationale,
    SpeculationHealth,
    SpeculationStats,
    Trajectory,
)
from flatrope_planner.evaluation.closed_loop import PlannerPilot
from flatrope_planner.evaluation.replay.bag_replay import ReplayOptions
from flatrope_planner.evaluation.replay.contestants import Contestants
from flatrope_planner.planning.observation import ObservationBuffer, ObservationSpec
from flatrope_planner.planning.odometry import OdometrySample
from flatrope_planner.planning.pose import rotation_matrix, turned_about_z
from flatrope_planner.simulation.world import Family, World

SPEC = ObservationSpec(("front_wide", "front_tele"), 2, 0.5)
ODOMETRY, PLANS = "/carla/ego_vehicle/odometry", "/planner/output/trajectory"
STEPS = 90


class SensitiveCore:
    """Plans a speed that hangs on every bit of the observation."""

    observation_spec = SPEC
    health = SpeculationHealth()

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.seen: list[str] = []

    def reset(self) -> None:
        pass

    def plan(self, observation: Observation) -> Plan:
        digest = hashlib.blake2b(observation.ego_history.position_m.round(9).tobytes())
        for frames in observation.frames.values():
            for frame in frames:
                digest.update(frame.image.tobytes() + str(frame.stamp_ns).encode())
        speed_mps = 3.0 + digest.digest()[0] / 100.0
        stats = SpeculationStats(0, 0, 0, 0)
        self.plans.append(Plan(observation.t0_ns, straight(speed_mps), Rationale(digest.hexdigest()), stats))
        self.seen.append(digest.hexdigest())
        return self.plans[-1]

    def plan_with_samples(
        self, observation: Observation, seed: int, samples: int
    ) -> tuple[Plan, tuple[Trajectory, ...]]:
        del seed, samples
        return self.plan(observation), ()


class Recorder:
    """Writes down what a buffer takes in, and plans."""

    def __init__(self, folder: Path, buffer: ObservationBuffer) -> None:
        self.writer = Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP)
        self.writer.open()
        self.connections: dict[str, Any] = {}
        self.poses: dict[int, Any] = {}
        add_image, add_odometry = buffer.add_image, buffer.add_odometry

        def image(camera: str, frame: CameraFrame) -> bool:
            self.write(f"/carla/ego_vehicle/{camera}/image", frame.stamp_ns, image_of(frame, camera))
            return add_image(camera, frame)

        def odometry(sample: OdometrySample) -> bool:
            self.poses[sample.stamp_ns] = sample.pose
            self.write(ODOMETRY, sample.stamp_ns, odometry_of(sample))
            return add_odometry(sample)

        buffer.add_image, buffer.add_odometry = image, odometry  # type: ignore[method-assign]

    def write(self, topic: str, stamp_ns: int, message: Any) -> None:
        kind = message.__msgtype__
        if topic not in self.connections:
            self.connections[topic] = self.writer.add_connection(topic, kind, typestore=STORE)
        self.writer.write(self.connections[topic], stamp_ns, bytes(STORE.serialize_cdr(message, kind)))


def header_of(stamp_ns: int, frame_id: str) -> Any:
    sec, nanosec = divmod(stamp_ns, 10**9)
    return make("std_msgs/Header", stamp=make("builtin_interfaces/Time", sec=sec, nanosec=nanosec), frame_id=frame_id)


def image_of(frame: Any, camera: str) -> Any:
    height, width, _ = frame.image.shape
    return make(
        "sensor_msgs/Image",
        header=header_of(frame.stamp_ns, camera),
        height=height,
        width=width,
        encoding="rgb8",
        is_bigendian=0,
        step=3 * width,
        data=frame.image.ravel(),
    )


def pose_of(position_m: Any, quaternion: Any) -> Any:
    point = make("geometry_msgs/Point", **dict(zip("xyz", map(float, position_m), strict=True)))
    turn = make("geometry_msgs/Quaternion", **dict(zip("xyzw", map(float, quaternion), strict=True)))
    return make("geometry_msgs/Pose", position=point, orientation=turn)


def odometry_of(sample: OdometrySample) -> Any:
    vectors = [
        make("geometry_msgs/Vector3", **dict(zip("xyz", map(float, vector), strict=True)))
        for vector in (sample.linear_velocity_mps, (0.0, 0.0, sample.yaw_rate_radps))
    ]
    twist = make("geometry_msgs/Twist", linear=vectors[0], angular=vectors[1])
    pose = pose_of(sample.position_m, sample.quaternion_xyzw)
    return make(
        "nav_msgs/Odometry",
        header=header_of(sample.stamp_ns, "map"),
        child_frame_id="ego_vehicle",
        pose=make("geometry_msgs/PoseWithCovariance", pose=pose, covariance=np.zeros(36)),
        twist=make("geometry_msgs/TwistWithCovariance", twist=twist, covariance=np.zeros(36)),
    )


def plan_of(plan: Plan, start: Any) -> Any:
    placed_m = start.position_m + plan.trajectory.position_m @ rotation_matrix(start.quaternion_xyzw).T
    points = []
    for i, place_m in enumerate(placed_m):
        sec, tenths = divmod(i + 1, 10)
        turn = turned_about_z(start.quaternion_xyzw, float(plan.trajectory.yaw_rad[i]))
        points.append(
            make(
                "flatrope_planner/PlannedPoint",
                time_from_start=make("builtin_interfaces/Duration", sec=sec, nanosec=tenths * 10**8),
                pose=pose_of(place_m, turn),
                **dict.fromkeys(("speed", "acceleration", "curvature", "yaw_rate"), 0.0),
            )
        )
    return make(
        "flatrope_planner/PlannedTrajectory",
        header=header_of(plan.t0_ns, "map"),
        ego_pose=pose_of(start.position_m, start.quaternion_xyzw),
        points=points,
        status=0,
        status_reason="",
        pending=False,
        target="sensitive",
        consistency=0,
        consistency_reason="",
        comfort_exceeded=[],
    )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SensitiveCore]:
    """A bag of the first seconds of a bend, and the core that drove."""
    bag = tmp_path_factory.mktemp("closed_loop") / "bend"
    world, core = World(Family.CURVE, 3), SensitiveCore()
    pilot = PlannerPilot(world, core)
    recorder = Recorder(bag, pilot._buffer)
    for _ in range(STEPS):
        plans = len(core.plans)
        command = pilot.command()
        if len(core.plans) > plans:
            plan = core.plans[-1]
            recorder.write(PLANS, plan.t0_ns, plan_of(plan, recorder.poses[plan.t0_ns]))
        world.step(command)
    recorder.writer.close()
    return bag, core


def test_the_planner_sees_the_same_again(recorded: tuple[Path, SensitiveCore], tmp_path: Path) -> None:
    bag, drove = recorded
    again = SensitiveCore()
    result = replay(bag, tmp_path, Contestants(again))
    assert result["status"] == "complete"
    assert len(drove.seen) > 5
    assert again.seen == drove.seen


@pytest.mark.parametrize("at_recorded", [False, True])
def test_its_ade_is_that_of_the_closed_loop(
    recorded: tuple[Path, SensitiveCore], tmp_path: Path, at_recorded: bool
) -> None:
    bag, drove = recorded
    result = replay(bag, tmp_path, Contestants(SensitiveCore()), ReplayOptions(0.5, at_recorded))
    logged = result["recorded_plans"]
    assert logged["plans"] == logged["same_t0"]["plans"] == len(drove.plans) == result["plans"]
    assert logged["same_t0"]["recorded_ade_m"] == logged["same_t0"]["replayed_ade_m"]
    assert logged["errors"]["1s"]["ade_m"] == pytest.approx(result["errors"]["1s"]["ade_m"], abs=2e-6)
    assert result["errors"]["1s"]["ade_m"] > 0.05


def test_times_of_plans_that_are_not_there_cannot_be_taken(tmp_path: Path) -> None:
    from drives import Drive, write_bag

    result = replay(write_bag(tmp_path / "drive", Drive()), tmp_path / "out", options=ReplayOptions(0.5, True))
    assert result["error"].endswith("no recorded plans to plan at the times of")
