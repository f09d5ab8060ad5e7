"""sensor_msgs/CameraInfo of an ideal pinhole camera, as CARLA's bridge publishes it."""

from sensor_msgs.msg import CameraInfo

from flatrope_planner.conversion.stamps import to_header
from flatrope_planner.domain import Floats


def camera_info(intrinsics: Floats, size_px: tuple[int, int], stamp_ns: int, frame_id: str) -> CameraInfo:
    """The calibration message of float64 (3, 3) intrinsics and a (width, height) without distortion."""
    width, height = size_px
    k = [float(value) for value in intrinsics.ravel()]
    return CameraInfo(
        header=to_header(stamp_ns, frame_id),
        height=int(height),
        width=int(width),
        distortion_model="plumb_bob",
        d=[0.0] * 5,
        k=k,
        r=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        p=[*k[0:3], 0.0, *k[3:6], 0.0, *k[6:9], 0.0],
    )
