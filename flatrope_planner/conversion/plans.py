"""Plans: trajectory, path and rationale as messages, and a trajectory message back to the domain."""

from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import PoseStamped, Twist, Vector3
from nav_msgs.msg import Path
from std_msgs.msg import Header

from flatrope_planner.conversion.odometry import from_pose_message, pose_message
from flatrope_planner.conversion.stamps import to_duration, to_header, to_nanoseconds
from flatrope_planner.dimensions import FUTURE_PERIOD_S, FUTURE_POINTS
from flatrope_planner.domain import DriveCommand, Floats, Rationale, Trajectory, seconds_to_ns
from flatrope_planner.errors import InputError
from flatrope_planner.msg import PlannedPoint, PlannedTrajectory
from flatrope_planner.msg import Rationale as RationaleMessage
from flatrope_planner.msg import RationaleToken as RationaleTokenMessage
from flatrope_planner.planning.judgement import Judgement
from flatrope_planner.planning.odometry import MAX_SPEED_MPS, UNIT_LENGTHS
from flatrope_planner.planning.placement import PlacedTrajectory
from flatrope_planner.planning.pose import Pose, rotation_matrix, turned_about_z

UNJUDGED = Judgement()


def trajectory_message(placed: PlacedTrajectory, target: str, judgement: Judgement = UNJUDGED) -> PlannedTrajectory:
    """The trajectory in the odometry's frame; `target` names who made it, `judgement` what the validator says."""
    trajectory = placed.trajectory
    poses = _poses(placed)
    yaw_rates = trajectory.action[:, 1] * trajectory.speed_mps
    points = [
        PlannedPoint(
            time_from_start=to_duration(seconds_to_ns(float(time_s))),
            pose=pose_message(poses[i]),
            speed=float(trajectory.speed_mps[i]),
            acceleration=float(trajectory.action[i, 0]),
            curvature=float(trajectory.action[i, 1]),
            yaw_rate=float(yaw_rates[i]),
        )
        for i, time_s in enumerate(trajectory.time_from_start_s)
    ]
    return PlannedTrajectory(
        header=to_header(placed.t0_ns, placed.frame_id),
        ego_pose=pose_message(placed.pose_t0),
        points=points,
        status=PlannedTrajectory.FALLBACK if judgement.is_fallback else PlannedTrajectory.OK,
        status_reason=judgement.fallback_reason,
        pending=judgement.pending,
        target=target,
        consistency=int(judgement.finding.consistency),
        consistency_reason=judgement.finding.reason,
        comfort_exceeded=list(judgement.comfort_exceeded),
    )


def path_message(placed: PlacedTrajectory) -> Path:
    """The same poses for whoever takes standard messages only; each stamped with the time it is planned for."""
    header = to_header(placed.t0_ns, placed.frame_id)
    path = Path(header=header)
    for pose, time_s in zip(_poses(placed), placed.trajectory.time_from_start_s, strict=True):
        stamp = to_header(placed.t0_ns + seconds_to_ns(float(time_s)), placed.frame_id)
        path.poses.append(PoseStamped(header=stamp, pose=pose_message(pose)))
    return path


def placed_trajectory(message: PlannedTrajectory) -> PlacedTrajectory:
    """The message back in the frame of the ego at t0.

    Raises:
        InputError: if its points are not the ones of a `Trajectory`, or hold numbers that none has.
    """
    times_ns = [to_nanoseconds(point.time_from_start) for point in message.points]
    expected_ns = [seconds_to_ns((i + 1) * FUTURE_PERIOD_S) for i in range(FUTURE_POINTS)]
    if times_ns != expected_ns:
        msg = f"trajectory of {len(times_ns)} points: expected {FUTURE_POINTS} points every {FUTURE_PERIOD_S} s"
        raise InputError(msg)
    pose_t0 = from_pose_message(message.ego_pose)
    poses = [from_pose_message(point.pose) for point in message.points]
    _require_poses([pose_t0, *poses])
    offset_m: Floats = np.array([pose.position_m for pose in poses]) - pose_t0.position_m
    turned = np.array([pose.yaw_rad for pose in poses]) - pose_t0.yaw_rad
    trajectory = Trajectory(
        position_m=offset_m @ rotation_matrix(pose_t0.quaternion_xyzw),
        yaw_rad=np.unwrap(np.concatenate([[0.0], turned]))[1:],
        speed_mps=np.array([point.speed for point in message.points], dtype=np.float64),
        action=np.array([[point.acceleration, point.curvature] for point in message.points], dtype=np.float64),
    )
    # Comparisons with NaN are false.
    if not (np.all(np.abs(trajectory.speed_mps) <= MAX_SPEED_MPS) and np.all(np.isfinite(trajectory.action))):
        msg = f"trajectory with a speed beyond {MAX_SPEED_MPS:g} m/s, or an action that is not finite"
        raise InputError(msg)
    return PlacedTrajectory(trajectory, to_nanoseconds(message.header.stamp), message.header.frame_id, pose_t0)


def rationale_message(rationale: Rationale, header: Header) -> RationaleMessage:
    """The rationale with where each of its tokens came from."""
    tokens = [
        RationaleTokenMessage(
            text=str(token.text), source=str(token.source), round=int(token.round), margin=float(token.margin)
        )
        for token in rationale.tokens
    ]
    return RationaleMessage(header=header, text=str(rationale.text), tokens=tokens, complete=bool(rationale.complete))


def twist_message(command: DriveCommand) -> Twist:
    """Speed and yaw rate as CARLA's carla_twist_to_control takes them."""
    return Twist(linear=Vector3(x=float(command.speed_mps)), angular=Vector3(z=float(command.yaw_rate_radps)))


def drive_command(message: Twist) -> DriveCommand:
    """The twist's speed and yaw rate."""
    return DriveCommand(float(message.linear.x), float(message.angular.z))


def _poses(placed: PlacedTrajectory) -> list[Pose]:
    """The planned poses in the odometry's frame."""
    start, trajectory = placed.pose_t0, placed.trajectory
    # (64, 3) rows times R0^T: R0 p of each.
    position_m = start.position_m + trajectory.position_m @ rotation_matrix(start.quaternion_xyzw).T
    return [
        Pose(float(x), float(y), float(z), turned_about_z(start.quaternion_xyzw, float(yaw)))
        for (x, y, z), yaw in zip(position_m, trajectory.yaw_rad, strict=True)
    ]


def _require_poses(poses: Sequence[Pose]) -> None:
    position_m = np.array([pose.position_m for pose in poses])
    length = np.linalg.norm([pose.quaternion_xyzw for pose in poses], axis=1)
    if not (np.all(np.isfinite(position_m)) and np.all((length >= UNIT_LENGTHS[0]) & (length <= UNIT_LENGTHS[1]))):
        msg = "trajectory with a pose that is none: a place that is not finite, or a quaternion that is no unit one"
        raise InputError(msg)
