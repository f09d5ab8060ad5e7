"""Plans as messages: places and times worked out by hand, and nothing lost on the way there and back."""

from typing import Any

import numpy as np
import pytest
from flatrope_planner.msg import PlannedTrajectory
from geometry_msgs.msg import Quaternion, Twist

from flatrope_planner.conversion.plans import (
    drive_command,
    path_message,
    placed_trajectory,
    rationale_message,
    trajectory_message,
    twist_message,
)
from flatrope_planner.conversion.stamps import to_header
from flatrope_planner.dimensions import FUTURE_POINTS
from flatrope_planner.domain import DriveCommand, Rationale, RationaleToken, Trajectory
from flatrope_planner.errors import InputError
from flatrope_planner.planning.consistency import Consistency, ConsistencyFinding
from flatrope_planner.planning.judgement import Judgement
from flatrope_planner.planning.placement import PlacedTrajectory
from flatrope_planner.planning.pose import Pose, yaw_quaternion

T0_NS = 5_950_000_000
QUARTER = np.pi / 2.0


def circle(speed_mps: float = 5.0, curvature: float = 0.1) -> Trajectory:
    """Along a circle to the left at constant speed."""
    time_s = np.linspace(0.1, 6.4, FUTURE_POINTS)
    yaw = speed_mps * curvature * time_s
    position = np.stack([np.sin(yaw) / curvature, (1.0 - np.cos(yaw)) / curvature, np.zeros_like(yaw)], axis=1)
    action = np.tile([0.0, curvature], (FUTURE_POINTS, 1))
    return Trajectory(position, yaw, np.full(FUTURE_POINTS, speed_mps), action)


def placed(yaw_rad: float = QUARTER) -> PlacedTrajectory:
    """Made at (10, 20, 1), facing along +y by default."""
    return PlacedTrajectory(circle(), T0_NS, "map", Pose(10.0, 20.0, 1.0, yaw_quaternion(yaw_rad)))


def test_points_lie_in_the_odometry_frame_and_carry_motion() -> None:
    message = trajectory_message(placed(), "nano")
    assert (message.header.stamp.sec, message.header.stamp.nanosec, message.header.frame_id) == (5, 950_000_000, "map")
    assert (message.target, message.status, len(message.points)) == ("nano", PlannedTrajectory.OK, 64)
    assert (message.ego_pose.position.x, message.ego_pose.position.y, message.ego_pose.position.z) == (10.0, 20.0, 1.0)
    # After 1 s: 5 m along a circle of 10 m, a turn of 0.5 rad. Ego forward is +y, ego left is -x.
    point = message.points[9]
    assert (point.time_from_start.sec, point.time_from_start.nanosec) == (1, 0)
    assert point.pose.position.x == pytest.approx(10.0 - 10.0 * (1.0 - np.cos(0.5)))
    assert point.pose.position.y == pytest.approx(20.0 + 10.0 * np.sin(0.5))
    assert point.pose.orientation.z == pytest.approx(np.sin((QUARTER + 0.5) / 2.0))
    assert point.pose.orientation.w == pytest.approx(np.cos((QUARTER + 0.5) / 2.0))
    assert (point.speed, point.acceleration, point.curvature) == (5.0, 0.0, 0.1)
    assert point.yaw_rate == pytest.approx(0.5)


def test_what_is_judged_of_it_is_said() -> None:
    unjudged = trajectory_message(placed(), "nano")
    assert (unjudged.status_reason, unjudged.pending) == ("", False)
    assert (unjudged.consistency, unjudged.comfort_exceeded) == (PlannedTrajectory.UNKNOWN, [])
    broken = ConsistencyFinding(Consistency.INCONSISTENT, "says 'stop', but it drives")
    marked = trajectory_message(placed(), "nano", Judgement(finding=broken, comfort_exceeded=("jerk 9.00 m/s^3",)))
    assert (marked.status, marked.status_reason) == (PlannedTrajectory.OK, "")
    assert (marked.consistency, marked.consistency_reason) == (PlannedTrajectory.INCONSISTENT, broken.reason)
    assert marked.comfort_exceeded == ["jerk 9.00 m/s^3"]
    stop = trajectory_message(placed(), "nano", Judgement("it reverses", pending=True))
    assert (stop.status, stop.status_reason, stop.pending) == (PlannedTrajectory.FALLBACK, "it reverses", True)


def test_consistency_is_numbered_as_in_the_message() -> None:
    assert {one.name: int(one) for one in Consistency} == {
        name: getattr(PlannedTrajectory, name) for name in ("UNKNOWN", "CONSISTENT", "INCONSISTENT")
    }


def test_path_has_the_same_poses_and_the_time_of_each() -> None:
    message, path = trajectory_message(placed(), "nano"), path_message(placed())
    assert path.header == message.header
    assert [pose.pose for pose in path.poses] == [point.pose for point in message.points]
    stamp = path.poses[0].header.stamp
    assert (stamp.sec, stamp.nanosec) == (6, 50_000_000)


@pytest.mark.parametrize("yaw_rad", [0.0, QUARTER, 3.0, -3.1])
def test_there_and_back(yaw_rad: float) -> None:
    source = placed(yaw_rad)
    back = placed_trajectory(trajectory_message(source, "nano"))
    assert (back.t0_ns, back.frame_id) == (T0_NS, "map")
    np.testing.assert_allclose(back.trajectory.position_m, source.trajectory.position_m, atol=1e-9)
    # The circle turns by 3.2 rad: yaw must not jump at pi.
    np.testing.assert_allclose(back.trajectory.yaw_rad, source.trajectory.yaw_rad, atol=1e-9)
    np.testing.assert_array_equal(back.trajectory.speed_mps, source.trajectory.speed_mps)
    np.testing.assert_array_equal(back.trajectory.action, source.trajectory.action)


def test_a_trajectory_of_other_points_is_refused() -> None:
    message = trajectory_message(placed(), "nano")
    message.points = message.points[:10]
    with pytest.raises(InputError, match="10 points"):
        placed_trajectory(message)


def set_in(message: PlannedTrajectory, path: str, value: float) -> None:
    *parts, name = path.split(".")
    place: Any = message
    for part in parts:
        place = place[int(part)] if part.isdigit() else getattr(place, part)
    setattr(place, name, value)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    "path",
    [
        *("ego_pose.position.y", "ego_pose.orientation.w", "points.0.pose.position.x", "points.63.pose.orientation.z"),
        *("points.7.speed", "points.8.acceleration", "points.9.curvature"),
    ],
)
def test_numbers_that_are_none_are_refused(path: str, value: float) -> None:
    # The wheel would be given them.
    message = trajectory_message(placed(), "nano")
    set_in(message, path, float(value))
    with pytest.raises(InputError, match=r"trajectory with a .* finite"):
        placed_trajectory(message)


def test_a_trajectory_faster_than_any_vehicle_is_refused() -> None:
    message = trajectory_message(placed(), "nano")
    message.points[40].speed = 1e9
    with pytest.raises(InputError, match="a speed beyond 100 m/s"):
        placed_trajectory(message)


def test_a_trajectory_without_headings_is_refused() -> None:
    message = trajectory_message(placed(), "nano")
    message.points[30].pose.orientation = Quaternion(x=0.0, y=0.0, z=0.0, w=0.0)
    with pytest.raises(InputError, match="no unit one"):
        placed_trajectory(message)


def test_rationale_says_where_each_token_came_from() -> None:
    tokens = (RationaleToken("Stop", "target", 0, 2.5), RationaleToken(" now", "draft", 1, np.float64(0.25)))
    header = to_header(T0_NS, "map")
    message = rationale_message(Rationale("Stop now", tokens, complete=False), header)
    assert (message.header, message.text, message.complete) == (header, "Stop now", False)
    assert [(t.text, t.source, t.round, t.margin) for t in message.tokens] == [
        ("Stop", "target", 0, 2.5),
        (" now", "draft", 1, 0.25),
    ]


def test_commands_are_speed_and_yaw_rate() -> None:
    message = twist_message(DriveCommand(3.0, -0.2))
    expected = Twist()
    expected.linear.x, expected.angular.z = 3.0, -0.2
    assert message == expected
    assert drive_command(message) == DriveCommand(3.0, -0.2)
