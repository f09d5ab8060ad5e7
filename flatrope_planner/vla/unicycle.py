"""The action space: acceleration and curvature of a unicycle, every 0.1 s (Alpamayo's `UnicycleAccelCurvature`).

Angles are counter-clockwise, the ego starts at the origin, heading along x. Sums are taken in the order of Alpamayo's
own code, so that in single precision the results are its own to the last bit or nearly so.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from flatrope_planner.dimensions import FUTURE_PERIOD_S
from flatrope_planner.domain import Trajectory


@dataclass(frozen=True)
class Weights:
    """Of one least-squares fit: smoothness (third or second difference), and size of the unknowns."""

    smoothness: float
    ridge: float


@dataclass(frozen=True)
class Fits:
    """Weights of all fits."""

    speed: Weights = Weights(1e-6, 1e-4)
    yaw: Weights = Weights(1e-6, 1e-8)
    accel: Weights = Weights(1e-4, 1e-4)
    curvature: Weights = Weights(1e-4, 1e-4)


FITS = Fits()


@dataclass(frozen=True)
class Motion:
    """What N actions lead to, after each of them."""

    # (..., N, 2) m, (..., N) rad, (..., N) m/s.
    position_m: Tensor
    yaw_rad: Tensor
    speed_mps: Tensor

    def __getitem__(self, index: int) -> "Motion":
        """One of several motions."""
        return Motion(self.position_m[index], self.yaw_rad[index], self.speed_mps[index])


def action_to_trajectory(action: Tensor, speed_mps: Tensor, period_s: float = FUTURE_PERIOD_S) -> Motion:
    """Integrate actions (..., N, 2) (m/s^2, 1/m) from a starting speed (...,)."""
    accel, curvature = action.unbind(-1)
    start = speed_mps[..., None]
    speed = torch.cat([start, start + (accel * period_s).cumsum(-1)], dim=-1)
    turned = (curvature * speed[..., :-1] * period_s).cumsum(-1) + (curvature * accel * (0.5 * period_s**2)).cumsum(-1)
    yaw = torch.cat([torch.zeros_like(start), turned], dim=-1)
    # (..., N + 1, 2)
    half_steps = speed[..., None] * _heading(yaw) * (0.5 * period_s)
    position = half_steps[..., :-1, :].cumsum(-2) + half_steps[..., 1:, :].cumsum(-2)
    return Motion(position, yaw[..., 1:], speed[..., 1:])


def without_reversing(action: Tensor, speed_mps: Tensor, period_s: float = FUTURE_PERIOD_S) -> Tensor:
    """The actions with each deceleration cut where the car stands: a firm stop must not become reverse driving."""
    speed = speed_mps.clamp(min=0.0)
    kept = []
    for accel in action[..., 0].unbind(-1):
        following = (speed + accel * period_s).clamp(min=0.0)
        kept.append((following - speed) / period_s)
        speed = following
    return torch.stack([torch.stack(kept, dim=-1), action[..., 1]], dim=-1)


def trajectory_to_action(position_m: Tensor, yaw_rad: Tensor, speed_mps: Tensor, fits: Fits = FITS) -> Tensor:
    """The actions, 0.1 s each, that follow a path, smoothed.

    Args:
        position_m: (..., N, 2), after each step.
        yaw_rad: (..., N), after each step.
        speed_mps: (...,), at the start.
        fits: how smooth.

    Returns:
        (..., N, 2), m/s^2 and 1/m.
    """
    period_s = FUTURE_PERIOD_S
    steps = torch.diff(position_m, dim=-2, prepend=torch.zeros_like(position_m[..., :1, :]))
    yaw = _fit_from(torch.zeros_like(yaw_rad[..., :1]), _unwrap(yaw_rad), period_s, fits.yaw)
    speed = _fit_speed(steps, yaw, period_s, fits.speed, first=speed_mps)
    one = torch.ones_like(speed[..., 1:])
    accel = _fit_ratio(one, torch.diff(speed, dim=-1) / period_s, period_s, fits.accel)
    way = period_s * speed[..., :-1] + 0.5 * period_s**2 * accel
    return torch.stack([accel, _fit_ratio(way, torch.diff(yaw, dim=-1), period_s, fits.curvature)], dim=-1)


def estimate_speed(position_m: Tensor, rotation: Tensor, period_s: float, fits: Fits = FITS) -> Tensor:
    """Speed (...,) at the last of the poses (..., T, 3), (..., T, 3, 3), by a smooth fit to all of them."""
    yaw = _unwrap(torch.atan2(rotation[..., 1, 0], rotation[..., 0, 0]))
    return _fit_speed(torch.diff(position_m[..., :2], dim=-2), yaw, period_s, fits.speed)[..., -1]


def to_trajectory(motion: Motion, action: Tensor, height_m: float = 0.0) -> Trajectory:
    """One motion (no leading axes) as the domain's trajectory on flat ground."""
    flat = torch.full_like(motion.position_m[:, :1], height_m)
    return Trajectory(
        position_m=torch.cat([motion.position_m, flat], dim=1).double().cpu().numpy(),
        yaw_rad=motion.yaw_rad.double().cpu().numpy(),
        speed_mps=motion.speed_mps.double().cpu().numpy(),
        action=action.double().cpu().numpy(),
    )


def _heading(yaw: Tensor) -> Tensor:
    return torch.stack([yaw.cos(), yaw.sin()], dim=-1)


def _unwrap(angle: Tensor) -> Tensor:
    turn = torch.diff(angle, dim=-1)
    turn = torch.atan2(turn.sin(), turn.cos())
    return torch.cat([angle[..., :1], angle[..., :1] + turn.cumsum(-1)], dim=-1)


def _smoothness(order: int, size: int, weight: float, period_s: float, like: Tensor) -> Tensor:
    """Normal matrix (size, size) of the penalty on differences of this order."""
    rows = torch.eye(size, dtype=like.dtype, device=like.device)
    for _ in range(order):
        rows = torch.diff(rows, dim=0)
    return weight / period_s ** (2 * order) * (rows.mT @ rows)


def _solve(matrix: Tensor, right: Tensor) -> Tensor:
    return torch.cholesky_solve(right[..., None], torch.linalg.cholesky(matrix))[..., 0]


def _fit_speed(steps: Tensor, yaw: Tensor, period_s: float, weights: Weights, first: Tensor | None = None) -> Tensor:
    """Speeds (..., N + 1) whose trapezoids along the headings give the steps (..., N, 2); `first` pins the first."""
    n = steps.shape[-2]
    heading = _heading(yaw)
    design = torch.zeros(*steps.shape[:-1], 2, n + 1, dtype=steps.dtype, device=steps.device)
    row = torch.arange(n)
    design[..., row, :, row] = heading[..., :-1, :].movedim(-2, 0)
    design[..., row, :, row + 1] = heading[..., 1:, :].movedim(-2, 0)
    # (..., 2N, N + 1)
    design = design.flatten(-3, -2)
    data, penalty = design.mT @ design, _smoothness(3, n + 1, weights.smoothness, period_s, steps)
    right = (design.mT @ (2.0 / period_s * steps).flatten(-2)[..., None])[..., 0]
    ridge = weights.ridge * torch.eye(n + 1, dtype=steps.dtype, device=steps.device)
    if first is None:
        return _solve(data + penalty + ridge, right)
    pinned = first[..., None]
    right = right[..., 1:] - data[..., 1:, 0] * pinned - penalty[1:, 0] * pinned
    return torch.cat([pinned, _solve((data + penalty + ridge)[..., 1:, 1:], right)], dim=-1)


def _fit_from(first: Tensor, rest: Tensor, period_s: float, weights: Weights) -> Tensor:
    """A smooth sequence (..., N + 1) near `rest` (..., N) that begins with `first` (..., 1)."""
    n = rest.shape[-1]
    penalty = _smoothness(3, n + 1, weights.smoothness, period_s, rest)
    eye = torch.eye(n, dtype=rest.dtype, device=rest.device)
    matrix = (eye + penalty[1:, 1:] + weights.ridge * eye).expand(*rest.shape[:-1], n, n)
    fitted = _solve(matrix, rest - penalty[1:, 0] * first)
    return torch.cat([first, fitted], dim=-1)


def _fit_ratio(slope: Tensor, value: Tensor, period_s: float, weights: Weights) -> Tensor:
    """Smooth x (..., N) with slope * x near value; well-posed where the slope vanishes."""
    n = slope.shape[-1]
    ridge = weights.ridge * torch.eye(n, dtype=slope.dtype, device=slope.device)
    matrix = torch.diag_embed(slope**2) + _smoothness(2, n, weights.smoothness, period_s, slope) + ridge
    return _solve(matrix, slope * value)
