"""The reference driver: sees the scene's true state and plans by rule. The teacher of nano, and the yardstick.

It keeps no memory: its plan follows from the present state alone, so it can be asked at any state, perturbed ones too.
Speed is the least of several wishes (cruise, curve, leader, stop point); the path follows the lane, leaning out where
something stands in the way. The wish that binds is the cause the narrator writes about.
"""

from dataclasses import dataclass

import numpy as np

from flatrope_planner.dimensions import FUTURE_PERIOD_S, FUTURE_POINTS
from flatrope_planner.domain import Decision, Floats, Trajectory
from flatrope_planner.simulation import ego as ego_body
from flatrope_planner.simulation.causes import Cause, CauseKind
from flatrope_planner.simulation.constraints import Leader, StopPoint, find_leaders, find_stop_points
from flatrope_planner.simulation.narrator import narrate
from flatrope_planner.simulation.passing import Lean, find_leans
from flatrope_planner.simulation.scene import CRUISE_MPS
from flatrope_planner.simulation.world import World

ACCELERATION_MPS2 = 1.8
BRAKING_MPS2 = 1.5
HARDEST_BRAKING_MPS2 = 5.0
LATERAL_MPS2 = 2.2
HEADWAY_S = 1.3
STANDSTILL_GAP_M = 4.0
# Where the front bumper stops before a stop point.
STOP_MARGIN_M = 1.0
# A change of speed smaller than this within the steps ahead is none.
NOTABLE_MPS = 0.5
NOTABLE_STEPS = 15
# A lateral target further away than this is a manoeuvre.
NOTABLE_SHIFT_M = 0.45
MANOEUVRE_LOOK_S = 1.2


@dataclass(frozen=True)
class ReferencePlan:
    """What the reference driver would do now, and why."""

    trajectory: Trajectory
    rationale: str
    decision: Decision
    cause: str


@dataclass(frozen=True)
class _Wish:
    accel_mps2: float
    cause: Cause


@dataclass(frozen=True)
class _Rollout:
    position_m: Floats
    yaw_rad: Floats
    speed_mps: Floats
    action: Floats
    # Binding cause at the start of each step.
    causes: tuple[Cause, ...]


class ReferenceDriver:
    """Plans for one world."""

    def __init__(self, world: World) -> None:
        """Watch this world."""
        self._world = world
        self._line = world.scene.layout.line
        self._caps = self._curve_caps()

    def plan(self) -> ReferencePlan:
        """The plan from the world's present state."""
        leans = find_leans(self._world)
        rollout = self._roll_out(find_leaders(self._world, leans), find_stop_points(self._world), leans)
        cause = _main_cause(rollout)
        decision, cause = self._decide(rollout, cause, leans)
        trajectory = Trajectory(rollout.position_m, rollout.yaw_rad, rollout.speed_mps, rollout.action)
        text = narrate(decision, cause, self._world.seed)
        return ReferencePlan(trajectory, text, decision, cause.kind.value)

    def _curve_caps(self) -> Floats:
        """Speed (m/s) allowed at each point of the guide line, braking for curves ahead included."""
        bend = np.maximum(np.abs(self._line.curvature), 1e-6)
        caps = np.minimum(np.sqrt(LATERAL_MPS2 / bend), 30.0)
        for i in range(len(caps) - 2, -1, -1):
            caps[i] = min(caps[i], np.sqrt(caps[i + 1] ** 2 + 2.0 * BRAKING_MPS2 * 0.5))
        return np.asarray(caps)

    def _roll_out(self, leaders: list[Leader], stops: list[StopPoint], leans: list[Lean]) -> _Rollout:
        ego = self._world.ego
        x, y, yaw, speed, s = 0.0, 0.0, 0.0, ego.speed_mps, self._world.s_m
        cos0, sin0 = np.cos(ego.yaw_rad), np.sin(ego.yaw_rad)
        position = np.zeros((FUTURE_POINTS, 3))
        yaws, speeds, action = np.zeros(FUTURE_POINTS), np.zeros(FUTURE_POINTS), np.zeros((FUTURE_POINTS, 2))
        causes = []
        dt = FUTURE_PERIOD_S
        for i in range(FUTURE_POINTS):
            world_x, world_y = ego.x_m + cos0 * x - sin0 * y, ego.y_m + sin0 * x + cos0 * y
            s, _ = self._line.project(world_x, world_y, s)
            bend = self._steer((world_x, world_y, ego.yaw_rad + yaw), s, speed, leans)
            wish = self._wish(s, speed, i * dt, (leaders, stops, leans))
            accel = max(wish.accel_mps2, -speed / dt)
            following = speed + accel * dt
            turned = yaw + bend * (speed * dt + accel * dt * dt / 2.0)
            x += dt / 2.0 * (speed * np.cos(yaw) + following * np.cos(turned))
            y += dt / 2.0 * (speed * np.sin(yaw) + following * np.sin(turned))
            yaw, speed = turned, following
            position[i, :2], yaws[i], speeds[i], action[i] = (x, y), yaw, speed, (accel, bend)
            causes.append(wish.cause)
        return _Rollout(position, yaws, speeds, action, tuple(causes))

    def _steer(self, pose: tuple[float, float, float], s: float, speed: float, leans: list[Lean]) -> float:
        """Pure pursuit curvature (1/m) toward the lane, leaned out where needed."""
        x, y, yaw = pose
        ahead = float(np.clip(0.9 * speed, 4.5, 12.0))
        goal_x, goal_y, _ = self._line.at(s + ahead, lateral_target(leans, s + ahead))
        dx, dy = goal_x - x, goal_y - y
        left = -np.sin(yaw) * dx + np.cos(yaw) * dy
        bend = 2.0 * left / max(dx * dx + dy * dy, 1.0)
        return float(np.clip(bend, -ego_body.MAX_CURVATURE, ego_body.MAX_CURVATURE))

    def _wish(
        self, s: float, speed: float, after_s: float, things: tuple[list[Leader], list[StopPoint], list[Lean]]
    ) -> _Wish:
        leaders, stops, leans = things
        front = s + ego_body.REAR_AXLE_TO_FRONT_M
        wishes = [_Wish(_toward(CRUISE_MPS, speed), Cause(CauseKind.FREE))]
        index = min(max(int((s + 0.3 * speed - self._line.first_s_m) / 0.5), 0), len(self._caps) - 1)
        if self._caps[index] < CRUISE_MPS:
            left = self._bends_left(s)
            wishes.append(
                _Wish(_under(float(self._caps[index]), speed, BRAKING_MPS2), Cause(CauseKind.CURVE, left=left))
            )
        gaps = [(stop.s_m - STOP_MARGIN_M - front, stop.cause) for stop in stops]
        wishes += [_Wish(_stop_in(gap, speed), stop_cause) for gap, stop_cause in gaps if gap > -3.0]
        wishes += [_Wish(_follow(leader, front, speed, after_s), leader.cause) for leader in leaders]
        for lean in leans:
            if lean.slow_mps < CRUISE_MPS and lean.from_s_m - 15.0 < s < lean.to_s_m:
                wishes.append(_Wish(_under(lean.slow_mps, speed, BRAKING_MPS2), lean.cause))
        return min(wishes, key=lambda wish: wish.accel_mps2)

    def _bends_left(self, s: float) -> bool:
        ahead = [self._line.curvature_at(s + distance) for distance in range(0, 36, 2)]
        return max(ahead, key=abs) > 0.0

    def _decide(self, rollout: _Rollout, cause: Cause, leans: list[Lean]) -> tuple[Decision, Cause]:
        if cause.stands:
            return Decision.STOP, cause
        side = self._manoeuvre(leans)
        if side is not None:
            return side
        change = rollout.speed_mps[NOTABLE_STEPS - 1] - self._world.ego.speed_mps
        if change < -NOTABLE_MPS:
            return Decision.SLOW, cause
        if change > NOTABLE_MPS:
            return Decision.ACCELERATE, self._why_go(cause)
        return Decision.KEEP, self._why_keep(cause, leans)

    def _why_keep(self, cause: Cause, leans: list[Lean]) -> Cause:
        """Name what is being passed, or the light that lets us through."""
        if cause.kind is not CauseKind.FREE:
            return cause
        beside = [lean for lean in leans if lean.full_s_m - 6.0 < self._world.s_m < lean.hold_s_m]
        if beside:
            return beside[0].cause
        gone = self._why_go(cause)
        return gone if gone.kind is CauseKind.GREEN_LIGHT else cause

    def _why_go(self, cause: Cause) -> Cause:
        """Name what has just cleared, if something did."""
        if cause.kind is not CauseKind.FREE:
            return cause
        front, scene = self._world.front_s_m, self._world.scene
        if any(-4.0 < light.stop_s_m - front < 40.0 for light in scene.lights):
            return Cause(CauseKind.GREEN_LIGHT)
        if any(sign.released and -1.5 < sign.stop_s_m - front < 8.0 for sign in scene.stop_signs):
            return Cause(CauseKind.STOPPED_AT_SIGN)
        if any(person.walking and 0.0 < person.s_m - front < 25.0 for person in scene.pedestrians):
            return Cause(CauseKind.PEDESTRIAN_CLEAR)
        return cause

    def _manoeuvre(self, leans: list[Lean]) -> tuple[Decision, Cause] | None:
        """A lean that is being taken up or given back now."""
        s = self._world.s_m + max(6.0, MANOEUVRE_LOOK_S * self._world.ego.speed_mps)
        here = self._world.d_m
        for lean in leans:
            target = lateral_target(leans, s)
            if not lean.from_s_m <= s <= lean.to_s_m + 4.0 or abs(target - here) < NOTABLE_SHIFT_M:
                continue
            back = s > lean.hold_s_m
            cause = Cause(CauseKind.PASSED, left=target > here) if back else lean.cause
            return (Decision.LEFT if target > here else Decision.RIGHT), cause
        return None


def lateral_target(leans: list[Lean], s_m: float) -> float:
    """Where to be beside the guide line (m) at s: the widest lean in force."""
    return max((lean.at(s_m) for lean in leans), key=abs, default=0.0)


def _toward(target_mps: float, speed: float) -> float:
    """IDM's free-road acceleration toward a speed."""
    ratio = speed / target_mps
    return ACCELERATION_MPS2 * (1.0 - ratio**4) if ratio <= 1.0 else max(-BRAKING_MPS2, (target_mps - speed) / 1.5)


def _under(cap_mps: float, speed: float, braking: float) -> float:
    """Acceleration that brings the speed under a cap which itself falls at the comfortable braking."""
    return float(np.clip((cap_mps - speed) / 0.6, -HARDEST_BRAKING_MPS2, ACCELERATION_MPS2)) - (
        0.5 * braking if speed > cap_mps - 0.3 else 0.0
    )


def _stop_in(gap_m: float, speed: float) -> float:
    """Brake so as to stand after `gap_m`: along v = sqrt(2 b gap), held once there."""
    if gap_m <= 0.3:
        return -min(HARDEST_BRAKING_MPS2, max(1.0, 3.0 * speed))
    needed = speed * speed / (2.0 * gap_m)
    if needed > 0.85 * BRAKING_MPS2:
        return -min(needed, HARDEST_BRAKING_MPS2)
    return float(np.clip((np.sqrt(2.0 * BRAKING_MPS2 * gap_m) - speed) / 0.8, 0.0, ACCELERATION_MPS2))


def _follow(leader: Leader, front_s: float, speed: float, after_s: float) -> float:
    """IDM acceleration behind a leader predicted to go on as now, or to brake on until it stands."""
    lead_speed, lead_s = leader.predict(after_s)
    gap = max(lead_s - front_s, 0.1)
    closing = speed - lead_speed
    wanted = STANDSTILL_GAP_M + max(0.0, speed * HEADWAY_S + speed * closing / (2.0 * np.sqrt(ACCELERATION_MPS2 * 2.0)))
    accel = _toward(CRUISE_MPS, speed) - ACCELERATION_MPS2 * (wanted / gap) ** 2
    if gap < STANDSTILL_GAP_M + 0.5 and lead_speed < 0.5:
        accel = min(accel, -3.0 * speed)
    return float(max(accel, -HARDEST_BRAKING_MPS2))


def _main_cause(rollout: _Rollout) -> Cause:
    """What binds now, or within the next second; free road only if nothing does."""
    soon = rollout.causes[:10]
    return next((cause for cause in soon if cause.kind is not CauseKind.FREE), soon[0])
