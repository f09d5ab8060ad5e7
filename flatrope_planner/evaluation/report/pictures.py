"""Camera pictures of the report: the planned trajectory drawn into them, small enough to embed."""

import base64
from dataclasses import dataclass

import cv2
import numpy as np

from flatrope_planner.domain import Floats, Image
from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.report.recording import RecordedPlan
from flatrope_planner.planning.pose import Pose, rotation_matrix

WIDTH_PX = 560
JPEG_QUALITY = 78
# Of a camera's picture, one side to the other.
MOST_SLENDER = 16
# The ribbon is as wide as a car, and begins where the bonnet ends.
HALF_WIDTH_M = 0.9
FIRST_SHOWN_M = 5.0
# Shorter plans are plans to stand: nothing to draw.
SHORTEST_M = 1.5
NEAREST_M = 1.0
# BGR.
RIBBON, EDGE = (120, 220, 60), (140, 255, 120)
RIBBON_OPACITY = 0.45


@dataclass(frozen=True)
class Eye:
    """A camera: its intrinsic matrix (3, 3), the width (px) that is for, and its pose in the ego frame.

    The pose is that of the optical frame: x right, y down, z forward.
    """

    intrinsics: Floats
    width_px: int
    mount: Pose

    def project(self, points_m: Floats) -> Floats:
        """(N, 3) points in the ego frame -> (N, 2) px; NaN for those not clearly in front."""
        seen = (points_m - self.mount.position_m) @ rotation_matrix(self.mount.quaternion_xyzw)
        depth_m = np.where(seen[:, 2] > NEAREST_M, seen[:, 2], np.nan)
        pixels = seen @ self.intrinsics.T
        return np.asarray(pixels[:, :2] / depth_m[:, None])


def embedded_picture(encoded: bytes, plan: RecordedPlan, eye: Eye | None) -> str:
    """A data URI of the picture, with the plan in it where the camera is known.

    Raises:
        InputError: if the bytes are no picture.
    """
    try:
        image = cv2.imdecode(np.frombuffer(encoded, dtype=np.uint8), cv2.IMREAD_COLOR)
    except cv2.error:
        # None of its bytes, or more pixels than OpenCV reads.
        image = None
    if image is None:
        msg = f"a recorded picture of {len(encoded)} bytes is neither JPEG nor PNG"
        raise InputError(msg)
    picture = np.asarray(image, dtype=np.uint8)
    if not 1 / MOST_SLENDER <= picture.shape[0] / picture.shape[1] <= MOST_SLENDER:
        msg = f"a recorded picture of {picture.shape[1]}x{picture.shape[0]} px, expected one of a camera"
        raise InputError(msg)
    if eye is not None:
        picture = with_plan(picture, plan, eye)
    height_px = round(picture.shape[0] * WIDTH_PX / picture.shape[1])
    small = cv2.resize(picture, (WIDTH_PX, height_px), interpolation=cv2.INTER_AREA)
    _, jpeg = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return "data:image/jpeg;base64," + base64.b64encode(jpeg.tobytes()).decode("ascii")


def with_plan(image: Image, plan: RecordedPlan, eye: Eye) -> Image:
    """A copy of a BGR picture with the planned path laid on the road."""
    left, right = _edges(plan)
    scale = image.shape[1] / eye.width_px
    left_px, right_px = eye.project(left) * scale, eye.project(right) * scale
    visible = np.isfinite(left_px).all(axis=1) & np.isfinite(right_px).all(axis=1)
    if visible.sum() < 2:
        return image
    left_px, right_px = left_px[visible], right_px[visible]
    ribbon = np.round(np.vstack([left_px, right_px[::-1]]) * 8.0).astype(np.int32)
    layer = image.copy()
    cv2.fillPoly(layer, [ribbon], RIBBON, cv2.LINE_AA, shift=3)
    mixed = cv2.addWeighted(layer, RIBBON_OPACITY, image, 1.0 - RIBBON_OPACITY, 0.0)
    for edge_px in (left_px, right_px):
        line = np.round(edge_px * 8.0).astype(np.int32)
        cv2.polylines(mixed, [line], False, EDGE, max(1, round(1.5 * scale)), cv2.LINE_AA, shift=3)
    return np.asarray(mixed, dtype=np.uint8)


def _edges(plan: RecordedPlan) -> tuple[Floats, Floats]:
    """Both edges of the path (N, 3) in the ego frame at t0, from the bonnet on; empty for a plan to stand."""
    to_ego = rotation_matrix(plan.ego_pose.quaternion_xyzw)
    points_m = np.vstack([np.zeros(3), (plan.position_m - plan.ego_pose.position_m) @ to_ego])
    yaw_rad = np.concatenate([[0.0], plan.yaw_rad - plan.ego_pose.yaw_rad])
    distance_m = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points_m, axis=0), axis=1))])
    if distance_m[-1] < FIRST_SHOWN_M + SHORTEST_M:
        return np.zeros((0, 3)), np.zeros((0, 3))
    wanted_m = np.arange(FIRST_SHOWN_M, distance_m[-1], 0.5)
    path = np.stack([np.interp(wanted_m, distance_m, points_m[:, axis]) for axis in range(3)], axis=1)
    yaw = np.interp(wanted_m, distance_m, yaw_rad)
    side = np.stack([-np.sin(yaw), np.cos(yaw), np.zeros_like(yaw)], axis=1) * HALF_WIDTH_M
    return path + side, path - side
