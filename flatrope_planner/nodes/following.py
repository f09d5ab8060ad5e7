"""What the controller commands and when it says nothing. Knows no ROS."""

from dataclasses import dataclass

import numpy as np

from flatrope_planner.domain import DriveCommand, ns_to_seconds
from flatrope_planner.errors import InputError
from flatrope_planner.planning.odometry import MAX_JUMP_M, MAX_SPEED_MPS, OdometrySample, OdometryTrack
from flatrope_planner.planning.placement import PlacedTrajectory
from flatrope_planner.planning.tracking import track

STANDING_MPS = 0.05


@dataclass(frozen=True)
class Following:
    """How long a plan is good for, and how to stop without one."""

    max_plan_age_s: float
    braking_mps2: float
    # Say nothing instead of braking: the simulator stands still until the next command.
    simulator_waits: bool


class Follower:
    """Turns the newest plan and odometry into commands."""

    def __init__(self, settings: Following) -> None:
        """Begin without a plan, and silent until there is one."""
        self._settings = settings
        self._plan: PlacedTrajectory | None = None
        self._odometry: OdometrySample | None = None
        self._track = OdometryTrack()
        # From when on the odometry is one motion (ns); plans from before lead elsewhere.
        self._one_motion_ns: int | None = None
        self._last = DriveCommand(0.0, 0.0)

    @property
    def engaged(self) -> bool:
        """Whether there ever was a plan."""
        return self._plan is not None

    def take_plan(self, plan: PlacedTrajectory, *, is_fallback: bool = False, is_pending: bool = False) -> None:
        """Follow this plan from now on.

        A fallback knows nothing new: it stops a vehicle that is driven, but it neither takes the wheel nor takes the
        place of a good plan that has seen more. While the plan itself is pending, a simulator that waits is not set
        going by a fallback: the wait is what gives a slow planner its time.
        """
        if is_pending and self._settings.simulator_waits:
            return
        if is_fallback and (self._plan is None or self._outdates(self._plan, plan)):
            return
        self._plan = plan

    def take_odometry(self, sample: OdometrySample) -> None:
        """Know where the vehicle is, and whether its localisation was corrected."""
        self._odometry = sample
        breaks = self._track.breaks
        try:
            restarted = self._track.take(sample)
        except InputError:
            # Late, or of a time that may turn out to be a new one.
            return
        if restarted:
            self._one_motion_ns = None
        elif self._track.breaks > breaks:
            self._one_motion_ns = sample.stamp_ns

    def follow(self) -> DriveCommand | None:
        """The command at the newest odometry; None if there is no plan that is good for it."""
        plan, now = self._plan, self._odometry
        if plan is None or now is None or not self._fits(plan, now):
            return None
        age_s = max(0.0, ns_to_seconds(now.stamp_ns - plan.t0_ns))
        here = now.pose.on_ground
        self._last = track(plan.trajectory, plan.pose_t0.on_ground, here, now.speed_mps, age_s)
        return self._last

    def brake(self, dt_s: float) -> DriveCommand | None:
        """The next command of a comfortable stop, the last one's bend kept; None where silence is what stops."""
        if self._settings.simulator_waits or not self.engaged:
            return None
        speed = max(0.0, self._last.speed_mps - self._settings.braking_mps2 * dt_s)
        share = speed / self._last.speed_mps if self._last.speed_mps > STANDING_MPS else 0.0
        self._last = DriveCommand(speed, self._last.yaw_rate_radps * share)
        return self._last

    def _outdates(self, good: PlacedTrajectory, fallback: PlacedTrajectory) -> bool:
        """Whether the plan is newer and still good where the vehicle is."""
        newer = good.t0_ns > fallback.t0_ns
        return newer and self._odometry is not None and self._fits(good, self._odometry)

    def _fits(self, plan: PlacedTrajectory, now: OdometrySample) -> bool:
        """Whether the plan is neither too old, nor of a time to come, nor made at a place out of reach or elsewhere."""
        if self._one_motion_ns is not None and plan.t0_ns < self._one_motion_ns:
            return False
        age_s = ns_to_seconds(now.stamp_ns - plan.t0_ns)
        if abs(age_s) > self._settings.max_plan_age_s or plan.frame_id != now.frame_id:
            return False
        apart_m = float(np.linalg.norm(now.position_m - plan.pose_t0.position_m))
        return apart_m <= MAX_SPEED_MPS * abs(age_s) + MAX_JUMP_M
