"""Euler steps along Alpamayo's flow, at the times its own sampler takes; with guidance, away from a second velocity."""

import torch
from torch import Tensor

from flatrope_planner.vla.flow import Velocity


def flow_times(steps: int) -> Tensor:
    """float32 (steps + 1,): from noise at 0 to the action at 1."""
    return torch.linspace(0.0, 1.0, steps + 1)


def sample_flow(velocity: Velocity, noise: Tensor, steps: int) -> Tensor:
    """Actions (S, 64, 2) out of noise of that shape."""
    times = flow_times(steps).to(noise.device)
    action = noise
    for start, step in zip(times, times.diff(), strict=False):
        action = action + step * velocity(action, start.expand(len(noise)))
    return action


def guided(with_route: Velocity, without: Velocity, weight: float) -> Velocity:
    """Velocity that exaggerates what a route changes (classifier-free guidance, arXiv 2311.13443, equation 6)."""

    def velocity(action: Tensor, time: Tensor) -> Tensor:
        return (1.0 - weight) * without(action, time) + weight * with_route(action, time)

    return velocity
