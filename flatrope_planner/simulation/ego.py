"""The ego vehicle: size, state, and how it answers a command."""

from dataclasses import dataclass, replace

import numpy as np

from flatrope_planner.domain import DriveCommand, Floats

LENGTH_M = 4.6
WIDTH_M = 1.9
# From the rear axle, where its pose is measured, to the middle and to the front bumper.
REAR_AXLE_TO_CENTER_M = 1.4
REAR_AXLE_TO_FRONT_M = REAR_AXLE_TO_CENTER_M + LENGTH_M / 2.0

MAX_BRAKING_MPS2 = 6.0
MAX_ACCELERATION_MPS2 = 2.5
MAX_CURVATURE = 0.2
SPEED_LAG_S = 0.3
JERK_MPS3 = 25.0
CURVATURE_RATE = 0.3


@dataclass(frozen=True)
class EgoState:
    """Rear axle in the world: m, rad, m/s, rad/s, m/s^2; curvature in 1/m."""

    x_m: float
    y_m: float
    yaw_rad: float
    speed_mps: float
    yaw_rate_radps: float = 0.0
    accel_mps2: float = 0.0
    curvature: float = 0.0

    def ahead(self, distance_m: float) -> tuple[float, float]:
        """World point this far in front of the rear axle."""
        return self.x_m + distance_m * float(np.cos(self.yaw_rad)), self.y_m + distance_m * float(np.sin(self.yaw_rad))


def advance(state: EgoState, command: DriveCommand, dt_s: float) -> EgoState:
    """The state dt later: speed and curvature follow the command with lag, jerk and rate limits; never backwards."""
    wanted = float(
        np.clip((command.speed_mps - state.speed_mps) / SPEED_LAG_S, -MAX_BRAKING_MPS2, MAX_ACCELERATION_MPS2)
    )
    change = JERK_MPS3 * dt_s
    accel = state.accel_mps2 + float(np.clip(wanted - state.accel_mps2, -change, change))
    speed = max(0.0, state.speed_mps + accel * dt_s)
    bend = float(np.clip(command.yaw_rate_radps / max(state.speed_mps, 0.5), -MAX_CURVATURE, MAX_CURVATURE))
    turn = CURVATURE_RATE * dt_s
    curvature = state.curvature + float(np.clip(bend - state.curvature, -turn, turn))
    middle = (state.speed_mps + speed) / 2.0
    yaw = state.yaw_rad + curvature * middle * dt_s
    direction = (state.yaw_rad + yaw) / 2.0
    return replace(
        state,
        x_m=state.x_m + middle * dt_s * float(np.cos(direction)),
        y_m=state.y_m + middle * dt_s * float(np.sin(direction)),
        yaw_rad=yaw,
        speed_mps=speed,
        yaw_rate_radps=curvature * speed,
        accel_mps2=(speed - state.speed_mps) / dt_s,
        curvature=curvature,
    )


def box(center: tuple[float, float], yaw_rad: float, length_m: float, width_m: float) -> Floats:
    """(4, 2) corners of a rectangle, front left first, counter-clockwise."""
    forward = np.array([np.cos(yaw_rad), np.sin(yaw_rad)]) * length_m / 2.0
    left = np.array([-np.sin(yaw_rad), np.cos(yaw_rad)]) * width_m / 2.0
    middle = np.array(center)
    return np.array(
        [middle + forward + left, middle - forward + left, middle - forward - left, middle + forward - left]
    )


def footprint(state: EgoState) -> Floats:
    """(4, 2) world corners of the ego."""
    return box(state.ahead(REAR_AXLE_TO_CENTER_M), state.yaw_rad, LENGTH_M, WIDTH_M)


def overlap(one: Floats, other: Floats) -> bool:
    """Whether two convex polygons of (N, 2) corners share a point (separating axis theorem)."""
    for polygon in (one, other):
        edges = np.roll(polygon, -1, axis=0) - polygon
        normals = np.stack([-edges[:, 1], edges[:, 0]], axis=1)
        a, b = one @ normals.T, other @ normals.T
        if np.any((a.max(axis=0) < b.min(axis=0)) | (b.max(axis=0) < a.min(axis=0))):
            return False
    return True
