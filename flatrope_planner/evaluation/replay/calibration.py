"""How the cameras of a bag look and where they sit, as far as the bag says it."""

import math
from typing import Any

import numpy as np

from flatrope_planner.domain import Floats
from flatrope_planner.evaluation.replay.messages import placed
from flatrope_planner.evaluation.replay.topics import CAMERA_INFO, TRANSFORM, camera_of
from flatrope_planner.evaluation.report.pictures import Eye
from flatrope_planner.planning.pose import Pose, rotation_matrix

# Longer chains of frames go in a circle.
MOST_FRAMES = 32
# How far from one the length of a rotation's quaternion may be: chains of rounded ones stay far within.
UNIT_TOLERANCE = 0.1


class Calibration:
    """Filled from CameraInfo, TransformStamped and /tf_static."""

    def __init__(self) -> None:
        """Know nothing yet."""
        # Camera -> intrinsic matrix (3, 3), the width (px) it is for, and the name of the optical frame.
        self._intrinsics: dict[str, tuple[Floats, int, str]] = {}
        # Child frame -> parent frame, and the child's pose in it.
        self._mounts: dict[str, tuple[str, Pose]] = {}

    def take(self, topic: str, message_type: str, message: Any) -> None:
        """Take in one message."""
        if message_type == CAMERA_INFO:
            intrinsics = np.array(message.k, dtype=np.float64).reshape(3, 3)
            self._intrinsics[camera_of(topic)] = intrinsics, int(message.width), message.header.frame_id
        else:
            for transform in [message] if message_type == TRANSFORM else message.transforms:
                pose = placed(transform.transform.translation, transform.transform.rotation)
                self._mounts[transform.child_frame_id] = transform.header.frame_id, pose

    def eye(self, picture_topic: str, ego_frame: str) -> Eye | None:
        """The camera behind a topic of pictures; None if the bag does not say how it looks or where it sits."""
        intrinsics, width_px, frame = self._intrinsics.get(camera_of(picture_topic), (np.zeros((3, 3)), 0, ""))
        mount = self._in_ego(frame, ego_frame)
        if mount is None or width_px == 0 or not _is_calibrated(intrinsics, mount):
            return None
        return Eye(intrinsics, width_px, mount)

    def _in_ego(self, frame: str, ego_frame: str) -> Pose | None:
        """The frame's pose in the ego's; if that is not met on the way, in the outermost there is."""
        pose: Pose | None = None
        for _ in range(MOST_FRAMES):
            if frame == ego_frame or frame not in self._mounts:
                return pose
            frame, step = self._mounts[frame]
            pose = step if pose is None else _chained(step, pose)
        return None


def _is_calibrated(intrinsics: Floats, mount: Pose) -> bool:
    """Whether these are numbers that somebody has filled in."""
    numbers = np.concatenate([intrinsics.ravel(), mount.position_m, mount.quaternion_xyzw])
    is_rotation = abs(math.hypot(*mount.quaternion_xyzw) - 1.0) < UNIT_TOLERANCE
    return bool(np.all(np.isfinite(numbers))) and is_rotation and intrinsics[0, 0] > 0.0


def _chained(outer: Pose, inner: Pose) -> Pose:
    """A pose in the outer one's frame, of an inner pose in the frame that the outer one places."""
    x, y, z = outer.position_m + rotation_matrix(outer.quaternion_xyzw) @ inner.position_m
    return Pose(float(x), float(y), float(z), _product(outer.quaternion_xyzw, inner.quaternion_xyzw))


def _product(a: Floats, b: Floats) -> Floats:
    """Hamilton's product of two quaternions, x y z w."""
    vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.array([*vector, a[3] * b[3] - a[:3] @ b[:3]])
