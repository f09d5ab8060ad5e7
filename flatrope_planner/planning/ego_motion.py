"""Odometry as it comes, made into the motion of the rear axle with its velocity in the body's frame."""

from dataclasses import replace

from flatrope_planner.domain import Floats
from flatrope_planner.planning.odometry import OdometrySample
from flatrope_planner.planning.pose import rotation_matrix
from flatrope_planner.planning.twist import TwistFit, TwistJudge

AUTO = "auto"


class EgoMotion:
    """Knows where the odometry's origin is in the vehicle, and finds out in which frame its twist is."""

    def __init__(self, rear_axle_offset_m: float = 0.0, twist_frame: str = AUTO) -> None:
        """The origin is so far ahead of the rear axle; the twist is in the `child` or `parent` frame, or `auto`."""
        self._offset_m, self._wanted = rear_axle_offset_m, twist_frame
        self._judge = TwistJudge()
        self._frames: tuple[str, str] | None = None
        self.frame_changes = 0

    def take(self, sample: OdometrySample) -> OdometrySample:
        """The sample as the planner wants it.

        Raises:
            InputError: if the rear axle is out of reach where the origin was not.
        """
        self.frame_changes += self._frames not in (None, sample.frames)
        self._frames = sample.frames
        self._judge.take(sample)
        corrected = replace(sample, linear_velocity_mps=self._velocity(sample), yaw_rate_radps=self._yaw_rate(sample))
        return corrected.at_rear_axle(self._offset_m)

    @property
    def frame(self) -> TwistFit:
        """How the twist's velocity is read: in the frame that was asked for, or that fits; not at all if none does."""
        fit = self._judge.fit
        if fit is TwistFit.NEITHER or self._wanted == AUTO:
            return fit or TwistFit.CHILD
        return TwistFit(self._wanted)

    def complaints(self) -> list[str]:
        """What is wrong with the odometry, in words."""
        parent, child = (name or "without a name" for name in self._frames or ("", ""))
        fit = self._judge.fit
        complaints = []
        if fit is TwistFit.NEITHER:
            complaints.append(
                f"odometry's twist fits its poses neither in the child frame {child} nor in the parent frame {parent}: "
                "speed is taken from the poses"
            )
        elif fit is TwistFit.PARENT and self._wanted == AUTO:
            complaints.append(
                f"odometry's twist is in the parent frame {parent} instead of the child frame {child}, and read so; "
                "twist_frame: parent asks for that"
            )
        elif fit is not None and self._wanted not in (AUTO, fit.value):
            complaints.append(
                f"odometry's twist fits its poses in the {fit.value} frame, twist_frame is {self._wanted} "
                f"(child {child}, parent {parent})"
            )
        if self._judge.yaw_rate_fits is False:
            complaints.append("odometry's yaw rate does not fit its headings: it is taken from them")
        return complaints

    def values(self) -> dict[str, str]:
        """What is known about the odometry, for the diagnostics."""
        fit = self._judge.fit
        parent, child = self._frames or ("", "")
        return {
            "odometry.frame": parent,
            "odometry.child_frame": child,
            "odometry.frame_changes": str(self.frame_changes),
            "odometry.twist_frame": self._wanted,
            "odometry.twist_fits": "unknown" if fit is None else fit.value,
            "odometry.twist_read_as": "poses" if self.frame is TwistFit.NEITHER else self.frame.value,
        }

    def _velocity(self, sample: OdometrySample) -> Floats:
        """float64 (3,), body frame."""
        if self.frame is TwistFit.NEITHER and self._judge.motion is not None:
            return self._judge.motion.body_mps
        if self.frame is TwistFit.PARENT:
            return rotation_matrix(sample.pose.quaternion_xyzw).T @ sample.linear_velocity_mps
        return sample.linear_velocity_mps

    def _yaw_rate(self, sample: OdometrySample) -> float:
        if self._judge.yaw_rate_fits is False and self._judge.motion is not None:
            return self._judge.motion.yaw_rate_radps
        return sample.yaw_rate_radps
