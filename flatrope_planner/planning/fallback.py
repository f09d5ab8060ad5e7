"""The comfortable stop that stands in for a plan which is bad or late.

Along the last good plan's path, steered as the controller would steer, braking gently; without such a plan along the
bend the ego drives now. Integrated step by step from the ego, so it is one the validator accepts.
"""

from dataclasses import dataclass

import numpy as np

from flatrope_planner.dimensions import ACTION_SIZE, FUTURE_PERIOD_S, FUTURE_POINTS
from flatrope_planner.domain import Floats, Trajectory, ns_to_seconds
from flatrope_planner.planning.driven_arc import EgoMoment
from flatrope_planner.planning.placement import PlacedTrajectory
from flatrope_planner.planning.plan_validator import MAX_CURVATURE, MAX_GRIP_MPS2, MAX_SPEED_MPS

# A firm but gentle brake: within nuPlan's comfort bounds (-4.05 m/s^2, 4.13 m/s^3).
BRAKING_MPS2 = 2.5
JERK_MPS3 = 4.0
# Only where the last good plan or something in the way asks for more.
HARDEST_BRAKING_MPS2 = 6.0
# What the ego may be faster than the last good plan at the same place before it brakes for that.
SPEED_SLACK_MPS = 0.3
# Kept free before something in the way.
CLEARANCE_M = 1.0
# A last good plan is of no use when it was made longer ago than this before the stop began, or leads past elsewhere.
MAX_PATH_AGE_S = 3.0
MAX_OFF_PATH_M = 2.0
MAX_OFF_HEADING_RAD = 0.6
# The point of the path that is steered for.
LOOKAHEAD_S, MIN_LOOKAHEAD_M = 0.8, 2.0
# Slower than this after a step is standing.
STANDSTILL_MPS = 0.01


@dataclass(frozen=True)
class _Path:
    """A path seen from the ego."""

    # float64 (N, 2), m.
    position_m: Floats
    # float64 (N,), m along it; the speed that was planned there, m/s.
    distance_m: Floats
    speed_mps: Floats
    end_yaw_rad: float

    @property
    def ends_standing(self) -> bool:
        return bool(self.speed_mps[-1] < SPEED_SLACK_MPS)

    def at(self, distance_m: float) -> tuple[float, float]:
        """The point at a distance; beyond the end it goes straight on."""
        beyond_m = max(distance_m - float(self.distance_m[-1]), 0.0)
        x = float(np.interp(distance_m, self.distance_m, self.position_m[:, 0]))
        y = float(np.interp(distance_m, self.distance_m, self.position_m[:, 1]))
        return x + beyond_m * float(np.cos(self.end_yaw_rad)), y + beyond_m * float(np.sin(self.end_yaw_rad))

    def nearest(self, x_m: float, y_m: float) -> float:
        """Distance along the path of its point nearest to another one."""
        start, step = self.position_m[:-1], np.diff(self.position_m, axis=0)
        length_sq = np.maximum(np.sum(step**2, axis=1), 1e-12)
        share = np.clip(np.sum(([x_m, y_m] - start) * step, axis=1) / length_sq, 0.0, 1.0)
        off_m = np.linalg.norm(start + share[:, None] * step - [x_m, y_m], axis=1)
        i = int(np.argmin(off_m))
        return float(self.distance_m[i] + share[i] * (self.distance_m[i + 1] - self.distance_m[i]))

    def speed_cap(self, distance_m: float) -> float:
        """The speed not to exceed at a distance, so that a stop never ends beyond one that was planned."""
        if distance_m >= self.distance_m[-1]:
            return SPEED_SLACK_MPS if self.ends_standing else MAX_SPEED_MPS
        return float(np.interp(distance_m, self.distance_m, self.speed_mps)) + SPEED_SLACK_MPS


class Fallback:
    """Makes the stops; remembers the last good plan and when the stop in progress began."""

    def __init__(self) -> None:
        """Know no plan yet."""
        self._good: PlacedTrajectory | None = None
        self._began_ns: int | None = None
        self._keeps_path = False

    def reset(self) -> None:
        """Forget all: another drive."""
        self._good = self._began_ns = None

    def accept(self, good: PlacedTrajectory) -> None:
        """Remember a good plan; a stop in progress is over."""
        self._good, self._began_ns = good, None

    def stop(self, ego: EgoMoment, free_m: float = float("inf")) -> Trajectory:
        """The stop from the ego's present state; one that follows another goes on braking where that one is.

        Args:
            free_m: what lies free before the vehicle along its path; too little for a gentle stop makes a harder one.
        """
        if self._began_ns is None or ego.t0_ns < self._began_ns:
            self._began_ns = ego.t0_ns
            self._keeps_path = self._is_recent(ego)
        path = self._path(ego) if self._keeps_path else None
        braked_s = ns_to_seconds(ego.t0_ns - self._began_ns)
        return _braked(ego, path, min(JERK_MPS3 * braked_s, BRAKING_MPS2), free_m)

    def _is_recent(self, ego: EgoMoment) -> bool:
        return self._good is not None and 0.0 <= ns_to_seconds(ego.t0_ns - self._good.t0_ns) <= MAX_PATH_AGE_S

    def _path(self, ego: EgoMoment) -> _Path | None:
        """The last good plan's path as seen from the ego, None if the ego is not on it."""
        good = self._good
        if good is None or good.frame_id != ego.frame_id:
            return None
        start, here = good.pose_t0.on_ground, ego.pose.on_ground
        planned = np.vstack([np.zeros((1, 2)), good.trajectory.position_m[:, :2]])
        position_m = here.to_local(start.to_outer(planned))
        distance_m = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(position_m, axis=0), axis=1))])
        speed = np.concatenate([good.trajectory.speed_mps[:1], good.trajectory.speed_mps])
        yaw = np.concatenate([[0.0], good.trajectory.yaw_rad]) + start.yaw_rad - here.yaw_rad
        path = _Path(position_m, distance_m, speed, float(yaw[-1]))
        along_m = path.nearest(0.0, 0.0)
        yaw_there = float(np.interp(along_m, distance_m, yaw))
        off_rad = abs(float(np.arctan2(np.sin(yaw_there), np.cos(yaw_there))))
        on_path = np.hypot(*path.at(along_m)) <= MAX_OFF_PATH_M and off_rad <= MAX_OFF_HEADING_RAD
        return path if on_path else None


def _braked(ego: EgoMoment, path: _Path | None, braking_mps2: float, free_m: float) -> Trajectory:
    """Drive on from the ego, already braking with `braking_mps2` (0 or more)."""
    dt = FUTURE_PERIOD_S
    speed = 0.0 if ego.motion.stands else min(ego.motion.speed_mps, MAX_SPEED_MPS)
    brake = _Brake(_needed_braking(speed, free_m), -braking_mps2)
    x, y, yaw, way_m = 0.0, 0.0, 0.0, path.nearest(0.0, 0.0) if path is not None else 0.0
    position, yaws, speeds = np.zeros((FUTURE_POINTS, 3)), np.zeros(FUTURE_POINTS), np.zeros(FUTURE_POINTS)
    action = np.zeros((FUTURE_POINTS, ACTION_SIZE))
    for i in range(FUTURE_POINTS):
        cap = path.speed_cap(way_m + speed * dt) if path is not None else MAX_SPEED_MPS
        following = brake.next_speed(speed, cap)
        curvature = _curvature(path, (x, y, yaw), speed) if path is not None else ego.motion.curvature
        curvature = _within_grip(curvature, speed)
        step_m = (speed + following) / 2.0 * dt
        turned = yaw + curvature * step_m
        x += dt / 2.0 * (speed * np.cos(yaw) + following * np.cos(turned))
        y += dt / 2.0 * (speed * np.sin(yaw) + following * np.sin(turned))
        action[i] = (following - speed) / dt, curvature if step_m > 0.0 else 0.0
        yaw, speed, way_m = turned, following, way_m + step_m
        position[i, :2], yaws[i], speeds[i] = (x, y), yaw, speed
    return Trajectory(position, yaws, speeds, action)


@dataclass
class _Brake:
    """A brake pedal that is pressed and released gently."""

    bound_mps2: float
    # As pressed now, 0 or less.
    accel_mps2: float

    def next_speed(self, speed_mps: float, cap_mps: float) -> float:
        """The speed one step later; a cap below it is braked for harder.

        Braking grows by the jerk J up to its bound, and fades by it near standstill: there a stop under constant jerk
        brakes by sqrt(2 J v).
        """
        dt = FUTURE_PERIOD_S
        # Who has to brake harder has to begin harder, too.
        growing = self.accel_mps2 - JERK_MPS3 * (self.bound_mps2 / BRAKING_MPS2) ** 2 * dt
        fading = -float(np.sqrt(2.0 * JERK_MPS3 * speed_mps))
        self.accel_mps2 = max(growing, fading, -self.bound_mps2, -speed_mps / dt)
        following = speed_mps + self.accel_mps2 * dt
        if cap_mps < following:
            following = max(cap_mps, speed_mps - HARDEST_BRAKING_MPS2 * dt, 0.0)
        return following if following > STANDSTILL_MPS else 0.0


def _needed_braking(speed_mps: float, free_m: float) -> float:
    """v^2 / 2s, what the comfortable braking falls short of included, up to the hardest."""
    # While the pedal goes down, the ego covers about what it would in half of that time.
    pressed_m = speed_mps * BRAKING_MPS2 / JERK_MPS3 / 2.0
    needed = speed_mps**2 / (2.0 * max(free_m - CLEARANCE_M - pressed_m, 0.1))
    return min(max(needed, BRAKING_MPS2), HARDEST_BRAKING_MPS2)


def _curvature(path: _Path, pose: tuple[float, float, float], speed_mps: float) -> float:
    """Pure pursuit: the bend from x, y, yaw to the point of the path one lookahead further on."""
    x, y, yaw = pose
    ahead_m = max(LOOKAHEAD_S * speed_mps, MIN_LOOKAHEAD_M)
    goal_x, goal_y = path.at(path.nearest(x, y) + ahead_m)
    left = np.cos(yaw) * (goal_y - y) - np.sin(yaw) * (goal_x - x)
    return float(2.0 * left / max((goal_x - x) ** 2 + (goal_y - y) ** 2, 1e-6))


def _within_grip(curvature: float, speed_mps: float) -> float:
    """The curvature that tyres allow beside the hardest braking, with a tenth to spare."""
    across = 0.9 * float(np.sqrt(MAX_GRIP_MPS2**2 - HARDEST_BRAKING_MPS2**2))
    bound = min(0.9 * MAX_CURVATURE, across / max(speed_mps, 0.1) ** 2)
    return float(np.clip(curvature, -bound, bound))
