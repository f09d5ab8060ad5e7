"""What a plan drives through: places worked out by hand, for a vehicle of 1.9 m and 0.2 m of margin on either side."""

from functools import partial

import numpy as np
import pytest
from test_plan_validator import driven

from flatrope_planner.domain import Floats, Trajectory, seconds_to_ns
from flatrope_planner.errors import InputError, NotReadyError
from flatrope_planner.nodes.monitoring import Level
from flatrope_planner.nodes.obstacles import ObstaclePoints, SensorMount
from flatrope_planner.planning.corridor import Corridor, free_way_m
from flatrope_planner.planning.driven_arc import DrivenArc, EgoMoment
from flatrope_planner.planning.pose import Pose, yaw_quaternion

CORRIDOR = Corridor(width_m=1.9, front_m=3.7, rear_m=0.9, margin_m=0.2, horizon_s=1.5)
CRUISE = driven(0.0, 0.0, 10.0)
# A circle of 10 m to the left at 5 m/s.
BEND = driven(0.0, 0.1, 5.0)


def post(x: float, y: float, z: float = 1.0, points: int = 3) -> Floats:
    """A few points of one thing."""
    return np.array([[x, y, z]] * points) + np.linspace(0.0, 0.02, points)[:, None]


@pytest.mark.parametrize(
    ("trajectory", "points", "way_m"),
    [
        # 3.7 m in front of the axle is the bumper: after 8 m in steps of 1 m it is at 11.7 m, one step before 12 m.
        (CRUISE, post(12.0, 0.0), 8.0),
        # Reached in the fifteenth step, and not within the horizon.
        (CRUISE, post(18.5, 0.0), 14.0),
        (CRUISE, post(18.8, 0.0), None),
        # 0.95 m and the margin to either side.
        (CRUISE, post(12.0, 1.1), 8.0),
        (CRUISE, post(12.0, -1.12), 8.0),
        (CRUISE, post(12.0, 1.16), None),
        # The road, a bridge, a single return, what is behind, and the bonnet.
        (CRUISE, post(12.0, 0.0, 0.2), None),
        (CRUISE, post(12.0, 0.0, 2.6), None),
        (CRUISE, post(12.0, 0.0, points=2), None),
        (CRUISE, post(-2.0, 0.0), None),
        (CRUISE, post(3.0, 0.5), None),
        (CRUISE, np.zeros((0, 3)), None),
        # Right before the bumper: the first step drives into it.
        (CRUISE, post(3.8, 0.0), 0.0),
        # A quarter of an hour of standing before a wall is no harm.
        (driven(0.0, 0.0, 0.0), post(3.75, 0.0), None),
        # On the bend straight ahead is free. What stands 45 degrees along it and 9.9 m from its centre is ahead of the
        # axle by 9.9 sin(45 degrees - way / 10 m): 3.7 m after 4.0 m of way, in steps of 0.5 m.
        (BEND, post(14.0, 0.0), None),
        (BEND, post(7.0, 3.0), 4.0),
    ],
)
def test_the_way_before_points_are_met(trajectory: Trajectory, points: Floats, way_m: float | None) -> None:
    free = free_way_m(trajectory, points, CORRIDOR)
    assert free == (None if way_m is None else pytest.approx(way_m, abs=0.01))


@pytest.mark.parametrize("x_m", np.arange(6.0, 40.0, 1.5))
def test_nothing_is_passed_over_between_two_points_of_a_fast_plan(x_m: float) -> None:
    # 5.5 m a step, for a vehicle of 4.6 m.
    free = free_way_m(driven(0.0, 0.0, 55.0), post(x_m, 0.0), CORRIDOR)
    assert free is not None
    assert x_m - CORRIDOR.front_m - 2.3 <= free <= x_m - CORRIDOR.front_m


def at(t0_s: float, x_m: float, yaw_rad: float = 0.0) -> EgoMoment:
    return EgoMoment(seconds_to_ns(t0_s), pose_at(x_m, yaw_rad), "map", DrivenArc(10.0))


def pose_at(x_m: float, yaw_rad: float = 0.0) -> Pose:
    return Pose(x_m, 0.0, 0.0, yaw_quaternion(yaw_rad))


def watching(mount: SensorMount | None = None) -> ObstaclePoints:
    """An ego that drives along x at 10 m/s."""
    obstacles = ObstaclePoints(CORRIDOR, mount or SensorMount(), lambda stamp_ns: pose_at(stamp_ns * 1e-8))
    obstacles.vehicle_frame = "ego_vehicle"
    return obstacles


def test_points_stay_where_they_were_measured_while_the_ego_drives_on() -> None:
    obstacles = watching()
    obstacles.take(seconds_to_ns(10.0), "ego_vehicle", lambda: post(16.0, 0.0))
    # 0.4 s and 4 m later they are 12 m ahead.
    assert obstacles.free_way_m(CRUISE, at(10.4, 104.0)) == pytest.approx(8.0)
    assert obstacles.report().level is Level.OK
    assert obstacles.report().values == {"received": "1", "rejected": "0", "ignored": "0", "obstructed": "1"}
    # Turned by 90 degrees they are beside it.
    assert obstacles.free_way_m(CRUISE, at(10.4, 104.0, np.pi / 2.0)) is None


def test_a_mounted_sensors_points_are_moved_into_the_vehicles_frame() -> None:
    # 1 m ahead, 2 m up, looking to the left: 10 m ahead of the axle is 9 m to its right; 1 m below it is 1 m up.
    obstacles = watching(SensorMount("lidar", 1.0, 0.0, 2.0, np.pi / 2.0))
    obstacles.take(seconds_to_ns(10.0), "lidar", lambda: post(0.0, -11.0, -1.0))
    assert obstacles.free_way_m(CRUISE, at(10.0, 100.0)) == pytest.approx(8.0)
    obstacles.take(seconds_to_ns(10.0), "base_link", lambda: post(0.0, -11.0, 1.0))
    assert obstacles.free_way_m(CRUISE, at(10.0, 100.0)) is None


@pytest.mark.parametrize("frame_id", ["map", "lidar", ""])
def test_a_cloud_of_unknown_place_is_refused_by_name(frame_id: str) -> None:
    obstacles = watching()
    with pytest.raises(InputError, match=f"in frame '{frame_id}', expected base_link or ego_vehicle"):
        obstacles.take(0, frame_id, lambda: post(12.0, 0.0))
    assert obstacles.free_way_m(CRUISE, at(10.0, 100.0)) is None
    report = obstacles.report()
    assert report.level is Level.WARN
    assert "the way is not watched: point cloud in frame" in report.message
    assert (report.values["rejected"], report.values["ignored"]) == ("1", "1")


def test_a_cloud_is_read_once_and_only_when_a_plan_asks_for_it() -> None:
    obstacles, reads = watching(), list[float]()

    def read(x_m: float) -> Floats:
        reads.append(x_m)
        return post(x_m, 0.0)

    for x_m in (10.0, 11.0, 12.0):
        obstacles.take(seconds_to_ns(10.0), "base_link", partial(read, x_m))
    assert reads == []
    assert [obstacles.free_way_m(CRUISE, at(10.0, 100.0)) for _ in range(3)] == pytest.approx([8.0] * 3)
    assert reads == [12.0]


@pytest.mark.parametrize("error", [InputError("point cloud with fields 'x', expected x, y, z"), AssertionError("oh")])
def test_a_cloud_that_cannot_be_read_is_named_and_no_reason_not_to_plan(error: Exception) -> None:
    def read() -> Floats:
        raise error

    obstacles = watching()
    obstacles.take(seconds_to_ns(10.0), "base_link", read)
    assert obstacles.free_way_m(CRUISE, at(10.0, 100.0)) is None
    report = obstacles.report()
    assert report.message.startswith("the way is not watched: ")
    assert str(error) in report.message
    assert (report.values["rejected"], report.values["ignored"]) == ("1", "1")


@pytest.mark.parametrize("stamp_s", [9.4, 10.6])
def test_a_stale_cloud_is_not_asked_and_reported(stamp_s: float) -> None:
    obstacles = watching()
    obstacles.take(seconds_to_ns(stamp_s), "base_link", lambda: post(12.0, 0.0))
    assert obstacles.free_way_m(CRUISE, at(10.0, 100.0)) is None
    assert "point cloud is" in obstacles.report().message
    obstacles.reset()
    assert obstacles.report().message == "the way is not watched: no point cloud yet"


def test_a_cloud_that_odometry_does_not_cover_is_not_asked() -> None:
    def nowhere(_stamp_ns: int) -> Pose:
        msg = "waiting for odometry"
        raise NotReadyError(msg)

    obstacles = ObstaclePoints(CORRIDOR, SensorMount(), nowhere)
    obstacles.take(seconds_to_ns(10.0), "base_link", lambda: post(12.0, 0.0))
    assert obstacles.free_way_m(CRUISE, at(10.0, 100.0)) is None
    assert "no pose for the point cloud: waiting for odometry" in obstacles.report().message
