"""From poses every half second to the planner's trajectory: every tenth of a second, and on to its horizon.

AutoVLA plans five seconds. What lies behind them is no plan of its: the ego keeps its last speed, straight on.
"""

import numpy as np

from flatrope_planner.dimensions import FUTURE_PERIOD_S, FUTURE_POINTS
from flatrope_planner.domain import Floats, Trajectory
from flatrope_planner.vla.autovla.codebook import STEP_PERIOD_S

POINTS_PER_STEP = round(STEP_PERIOD_S / FUTURE_PERIOD_S)
# Slower than this, a path has no direction: the headings of the poses are followed instead.
LEAST_SPEED_MPS = 0.1
# A way shorter than this has no curvature.
LEAST_WAY_M = 0.01


def trajectory_of(poses: Floats, start_speed_mps: float) -> Trajectory:
    """The smooth motion through poses (n, 3) of the ego frame, from the ego's speed at t0 on.

    Between two poses the path is the cubic that leaves and reaches them along their headings, at speeds that no cubic
    overshoots with (Fritsch and Butland, 1984); so all poses are met, and a car that stands between two of them stands.
    """
    knots = np.concatenate([np.zeros((1, 3)), poses])
    knots[:, 2] = np.unwrap(knots[:, 2])
    position, yaw, speed = _between(knots, _speeds(knots, start_speed_mps))
    position, yaw, speed = _prolonged(position, yaw, speed)
    accel = np.diff(speed, prepend=start_speed_mps) / FUTURE_PERIOD_S
    step = np.diff(position, axis=0, prepend=np.zeros((1, 2)))
    turn, way = np.diff(yaw, prepend=0.0), np.hypot(*step.T) * np.where(speed < 0.0, -1.0, 1.0)
    curvature = np.divide(turn, way, out=np.zeros_like(turn), where=np.abs(way) > LEAST_WAY_M)
    flat = np.concatenate([position, np.zeros((FUTURE_POINTS, 1))], axis=1)
    return Trajectory(flat, yaw, speed, np.stack([accel, curvature], axis=1))


def _speeds(knots: Floats, start_mps: float) -> Floats:
    """Speed along the heading at each pose: the harmonic mean of those before and behind it, 0 where it turns round."""
    step = np.diff(knots[:, :2], axis=0)
    middle = (knots[:-1, 2] + knots[1:, 2]) / 2.0
    mean = (step[:, 0] * np.cos(middle) + step[:, 1] * np.sin(middle)) / STEP_PERIOD_S
    before, behind = mean[:-1], mean[1:]
    product, total = before * behind, before + behind
    inner = np.divide(2.0 * product, total, out=np.zeros_like(total), where=product > 0.0)
    return np.concatenate([[start_mps], inner, mean[-1:]])


def _between(knots: Floats, speeds: Floats) -> tuple[Floats, Floats, Floats]:
    """Positions, headings and speeds at the points of the trajectory up to the last pose."""
    share = np.arange(1, POINTS_PER_STEP + 1)[:, None] / POINTS_PER_STEP
    positions, yaws, along = [], [], []
    for index in range(len(knots) - 1):
        one, other = knots[index], knots[index + 1]
        way = (other - one)[:2]
        leave, reach = (
            speeds[place] * STEP_PERIOD_S * np.array([np.cos(knots[place, 2]), np.sin(knots[place, 2])])
            for place in (index, index + 1)
        )
        bend, twist = 3.0 * way - 2.0 * leave - reach, leave + reach - 2.0 * way
        positions.append(one[:2] + share * (leave + share * (bend + share * twist)))
        velocity = (leave + share * (2.0 * bend + 3.0 * share * twist)) / STEP_PERIOD_S
        heading, speed = _direction(velocity, one[2] + share[:, 0] * (other[2] - one[2]))
        yaws.append(heading)
        along.append(speed)
    return np.concatenate(positions), np.concatenate(yaws), np.concatenate(along)


def _direction(velocity: Floats, heading: Floats) -> tuple[Floats, Floats]:
    """Headings and speeds of velocities (n, 2) near headings (n,), negative in reverse."""
    size = np.hypot(*velocity.T)
    off = np.arctan2(velocity[:, 1], velocity[:, 0]) - heading
    backwards = np.cos(off) < 0.0
    off = np.where(backwards, off - np.pi, off)
    off = np.arctan2(np.sin(off), np.cos(off))
    return np.where(size > LEAST_SPEED_MPS, heading + off, heading), np.where(backwards, -size, size)


def _prolonged(position: Floats, yaw: Floats, speed: Floats) -> tuple[Floats, Floats, Floats]:
    """Straight on at the last speed as far as a trajectory reaches."""
    missing = FUTURE_POINTS - len(yaw)
    ahead = np.arange(1, missing + 1)[:, None] * FUTURE_PERIOD_S * speed[-1]
    straight = position[-1] + ahead * np.array([np.cos(yaw[-1]), np.sin(yaw[-1])])
    return (
        np.concatenate([position, straight]),
        np.concatenate([yaw, np.full(missing, yaw[-1])]),
        np.concatenate([speed, np.full(missing, speed[-1])]),
    )
