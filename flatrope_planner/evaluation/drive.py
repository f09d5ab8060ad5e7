"""An endless drive as a pure function of time: what is true of it can be said at any stamp, by any process."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from flatrope_planner.domain import Floats, Image, ns_to_seconds
from flatrope_planner.planning.odometry import OdometrySample
from flatrope_planner.planning.pose import Pose2D, yaw_quaternion

# Between two rows of the motion, and between two pictures, as the embedded simulator does it.
STEP_S = 0.05
PICTURE_STEPS = 2
MOTION_FILE, PICTURES_FILE = "motion.npy", "pictures.npy"


@dataclass(frozen=True)
class Drive:
    """A recorded lap that begins anew wherever the last one ended, so that neither place nor heading ever jumps."""

    # float64 (N + 1, 5), every STEP_S: x, y (m), yaw (rad), speed (m/s), yaw rate (rad/s); row N opens the next lap.
    motion: Floats
    # uint8 (N / PICTURE_STEPS, cameras, H, W, 3), RGB.
    pictures: Image

    @property
    def lap_s(self) -> float:
        """Length of the lap."""
        return (len(self.motion) - 1) * STEP_S

    def pose_at(self, stamp_ns: int) -> Pose2D:
        """Where the ego truly is, linear between two rows."""
        laps, row = self._row_at(stamp_ns)
        start, end = self.motion[0], self.motion[-1]
        here = complex(row[0], row[1])
        turn, yaw_rad = np.exp(1j * (end[2] - start[2])), float(row[2])
        shift = complex(end[0], end[1]) - turn * complex(start[0], start[1])
        for _ in range(laps):
            here = turn * here + shift
        return Pose2D(here.real, here.imag, yaw_rad + laps * float(end[2] - start[2]))

    def speed_at(self, stamp_ns: int) -> float:
        """How fast the ego truly is (m/s)."""
        return float(self._row_at(stamp_ns)[1][3])

    def odometry_at(self, stamp_ns: int) -> OdometrySample:
        """The truth as an odometry sample."""
        pose, row = self.pose_at(stamp_ns), self._row_at(stamp_ns)[1]
        position_m, velocity_mps = np.array([pose.x_m, pose.y_m, 0.0]), np.array([row[3], 0.0, 0.0])
        return OdometrySample(stamp_ns, position_m, yaw_quaternion(pose.yaw_rad), velocity_mps, float(row[4]))

    def picture_at(self, stamp_ns: int, camera: int) -> Image:
        """uint8 (H, W, 3): what a camera, counted in the order of the recording, sees."""
        number = round(ns_to_seconds(stamp_ns) / (STEP_S * PICTURE_STEPS))
        return np.asarray(self.pictures[number % len(self.pictures), camera])

    def _row_at(self, stamp_ns: int) -> tuple[int, Floats]:
        laps, into_s = divmod(ns_to_seconds(stamp_ns), self.lap_s)
        at = into_s / STEP_S
        before = min(int(at), len(self.motion) - 2)
        row: Floats = self.motion[before] + (at - before) * (self.motion[before + 1] - self.motion[before])
        return int(laps), row

    def save(self, folder: Path) -> None:
        """Write it into a folder."""
        np.save(folder / MOTION_FILE, self.motion)
        np.save(folder / PICTURES_FILE, self.pictures)

    @staticmethod
    def load(folder: Path) -> "Drive":
        """The drive in a folder; its pictures stay on disk until they are looked at."""
        pictures = np.load(folder / PICTURES_FILE, mmap_mode="r", allow_pickle=False)
        return Drive(np.load(folder / MOTION_FILE, allow_pickle=False), pictures)
