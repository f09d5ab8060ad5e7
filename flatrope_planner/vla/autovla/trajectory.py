"""From poses every half second to the planner's trajectory: every tenth of a second, and on to its horizon.

AutoVLA plans five seconds. What lies behind them is no plan of its: the ego keeps its last speed, straight on.
"""

import numpy as np

from flatrope_planner.dimensions import FUTURE_PERIOD_S, FUTURE_POINTS
from flatrope_planner.domain import Floats, Trajectory
from flatrope_planner.vla.autovla.codebook import STEP_PERIOD_S

POINTS_PER_STEP = round(STEP_PERIOD_S / FUTURE_PERIOD_S)
# A codebook tells motions apart that differ by half of this: whoever stands may seem to creep to and fro.
RESOLUTION_M = 0.1
# A way shorter than this has no curvature.
LEAST_WAY_M = 0.01


def trajectory_of(poses: Floats, start_speed_mps: float) -> Trajectory:
    """The motion through poses (n, 3) of the ego frame, from the ego's speed at t0 on.

    Between two poses the path is the cubic that leaves and reaches them along their headings, at speeds that no cubic
    overshoots with (Fritsch and Butland, 1984): all poses are met, and a car that stands between two of them stands.
    Headings turn evenly from pose to pose. Only where a plan seems to go back by less than a codebook can tell, the ego
    waits until it goes on.
    """
    knots = _without_creeping_back(np.concatenate([np.zeros((1, 3)), poses]))
    knots[:, 2] = np.unwrap(knots[:, 2])
    position, yaw, speed = _prolonged(*_between(knots, _speeds(knots, start_speed_mps)))
    accel = np.diff(speed, prepend=start_speed_mps) / FUTURE_PERIOD_S
    turn, way = np.diff(yaw, prepend=0.0), _ways(position, yaw)
    curvature = np.divide(turn, way, out=np.zeros_like(turn), where=np.abs(way) > LEAST_WAY_M)
    flat = np.concatenate([position, np.zeros((FUTURE_POINTS, 1))], axis=1)
    return Trajectory(flat, yaw, speed, np.stack([accel, curvature], axis=1))


def _without_creeping_back(knots: Floats) -> Floats:
    """The poses with each that lies a little behind the one before put onto it."""
    kept = [knots[0]]
    for pose in knots[1:]:
        ahead = _along(pose[:2] - kept[-1][:2], kept[-1][2])
        kept.append(kept[-1] if -RESOLUTION_M < ahead < 0.0 else pose)
    return np.array(kept)


def _along(step: Floats, heading: Floats | float) -> Floats:
    """Steps (..., 2) along a heading (m)."""
    along: Floats = step[..., 0] * np.cos(heading) + step[..., 1] * np.sin(heading)
    return along


def _ways(position: Floats, yaw: Floats) -> Floats:
    """How far each step leads along the body, the first one from the origin."""
    step = np.diff(position, axis=0, prepend=np.zeros((1, 2)))
    return _along(step, yaw - np.diff(yaw, prepend=0.0) / 2.0)


def _speeds(knots: Floats, start_mps: float) -> Floats:
    """Speed along the heading at each pose: the harmonic mean of those before and behind it, 0 where it turns round."""
    mean = _along(np.diff(knots[:, :2], axis=0), (knots[:-1, 2] + knots[1:, 2]) / 2.0) / STEP_PERIOD_S
    before, behind = mean[:-1], mean[1:]
    product, total = before * behind, before + behind
    inner = np.divide(2.0 * product, total, out=np.zeros_like(total), where=product > 0.0)
    return np.concatenate([[start_mps], inner, mean[-1:]])


def _between(knots: Floats, speeds: Floats) -> tuple[Floats, Floats, Floats]:
    """Positions, headings and speeds at the points of the trajectory up to the last pose."""
    share = np.arange(1, POINTS_PER_STEP + 1)[:, None] / POINTS_PER_STEP
    tangents = (speeds * STEP_PERIOD_S)[:, None] * np.stack([np.cos(knots[:, 2]), np.sin(knots[:, 2])], axis=1)
    positions, yaws, along = [], [], []
    for one, other, leave, reach in zip(knots, knots[1:], tangents, tangents[1:], strict=False):
        way = (other - one)[:2]
        bend, twist = 3.0 * way - 2.0 * leave - reach, leave + reach - 2.0 * way
        positions.append(one[:2] + share * (leave + share * (bend + share * twist)))
        yaws.append(one[2] + share[:, 0] * (other[2] - one[2]))
        velocity = (leave + share * (2.0 * bend + 3.0 * share * twist)) / STEP_PERIOD_S
        along.append(_along(velocity, yaws[-1]))
    return np.concatenate(positions), np.concatenate(yaws), np.concatenate(along)


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
