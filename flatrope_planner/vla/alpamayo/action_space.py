"""Alpamayo's action space: scaled acceleration and curvature of the unicycle in `vla.unicycle`, nothing clamped.

A strong stop runs into reverse, as it does in the released code: what is drawn is what the model says.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from flatrope_planner.dimensions import FUTURE_POINTS, HISTORY_PERIOD_S
from flatrope_planner.vla.alpamayo.config import ActionConfig
from flatrope_planner.vla.unicycle import FITS, Fits, Motion, action_to_trajectory, estimate_speed, trajectory_to_action


class ActionSpace(nn.Module):
    """Between what the flow yields and motions; its scales are weights of the checkpoint."""

    accel_mean: Tensor
    accel_std: Tensor
    curvature_mean: Tensor
    curvature_std: Tensor

    def __init__(self, config: ActionConfig) -> None:
        """Scales of the configuration, until those of the checkpoint are read."""
        super().__init__()
        self._fits = config.fits
        for name, value in zip(("accel", "curvature"), zip(config.mean, config.std, strict=True), strict=True):
            for part, number in zip(("mean", "std"), value, strict=True):
                self.register_buffer(f"{name}_{part}", torch.tensor(number))

    def actions(self, scaled: Tensor) -> Tensor:
        """(..., points, 2) of the flow -> (..., 64, 2), m/s^2 and 1/m.

        A plan of fewer points goes straight on at its last speed, a longer one is cut.
        """
        accel = scaled[..., 0] * self.accel_std + self.accel_mean
        actions = torch.stack([accel, scaled[..., 1] * self.curvature_std + self.curvature_mean], dim=-1)
        return F.pad(actions, (0, 0, 0, FUTURE_POINTS - actions.shape[-2]))

    def motion(self, scaled: Tensor, speed_mps: Tensor) -> Motion:
        """The motion (..., 64) that scaled actions (..., points, 2) lead to from a starting speed (...,)."""
        return action_to_trajectory(self.actions(scaled), speed_mps)

    def scaled_actions(self, position_m: Tensor, yaw_rad: Tensor, speed_mps: Tensor) -> Tensor:
        """The scaled actions (..., 64, 2) that follow positions (..., 64, 2) and headings (..., 64), smoothed."""
        accel, curvature = trajectory_to_action(position_m, yaw_rad, speed_mps, self._fits).unbind(-1)
        scaled = [(accel - self.accel_mean) / self.accel_std, (curvature - self.curvature_mean) / self.curvature_std]
        return torch.stack(scaled, dim=-1)


def speed_at_t0(position_m: Tensor, rotation: Tensor, fits: Fits = FITS) -> Tensor:
    """Speed (...,) at the last pose of a history (..., 16, 3), (..., 16, 3, 3), fitted in single precision."""
    return estimate_speed(position_m.float(), rotation.float(), HISTORY_PERIOD_S, fits)
