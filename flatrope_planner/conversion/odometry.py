"""nav_msgs/Odometry and its poses."""

import numpy as np
from geometry_msgs.msg import Point, Quaternion, Vector3
from geometry_msgs.msg import Pose as PoseMessage
from nav_msgs.msg import Odometry

from flatrope_planner.conversion.limits import require_bounded_name
from flatrope_planner.conversion.stamps import to_header, to_nanoseconds
from flatrope_planner.planning.odometry import OdometrySample
from flatrope_planner.planning.pose import Pose


def odometry_sample(message: Odometry) -> OdometrySample:
    """The message's content; its twist is taken in the child frame, as the message's definition wants it.

    Covariances are left out: many publishers fill them with zeros.

    Raises:
        InputError: if a number is not finite or beyond any vehicle's, the orientation is no rotation, or a frame has a
            name without end.
    """
    require_bounded_name("frame_id", message.header.frame_id)
    require_bounded_name("child_frame_id", message.child_frame_id)
    position, quaternion = message.pose.pose.position, message.pose.pose.orientation
    velocity = message.twist.twist.linear
    return OdometrySample(
        stamp_ns=to_nanoseconds(message.header.stamp),
        position_m=np.array([position.x, position.y, position.z], dtype=np.float64),
        quaternion_xyzw=np.array([quaternion.x, quaternion.y, quaternion.z, quaternion.w], dtype=np.float64),
        linear_velocity_mps=np.array([velocity.x, velocity.y, velocity.z], dtype=np.float64),
        yaw_rate_radps=float(message.twist.twist.angular.z),
        frame_id=str(message.header.frame_id),
        child_frame_id=str(message.child_frame_id),
    )


def odometry_message(sample: OdometrySample, frame_id: str, child_frame_id: str) -> Odometry:
    """The sample as a message."""
    message = Odometry(header=to_header(sample.stamp_ns, frame_id), child_frame_id=child_frame_id)
    message.pose.pose = pose_message(sample.pose)
    vx, vy, vz = (float(v) for v in sample.linear_velocity_mps)
    message.twist.twist.linear = Vector3(x=vx, y=vy, z=vz)
    message.twist.twist.angular = Vector3(z=float(sample.yaw_rate_radps))
    return message


def pose_message(pose: Pose) -> PoseMessage:
    """The pose as a message."""
    x, y, z, w = (float(v) for v in pose.quaternion_xyzw)
    position = Point(x=float(pose.x_m), y=float(pose.y_m), z=float(pose.z_m))
    return PoseMessage(position=position, orientation=Quaternion(x=x, y=y, z=z, w=w))


def from_pose_message(message: PoseMessage) -> Pose:
    """The message as a pose."""
    q = message.orientation
    return Pose(message.position.x, message.position.y, message.position.z, np.array([q.x, q.y, q.z, q.w]))
