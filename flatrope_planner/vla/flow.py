"""Flow matching: actions grow out of noise along a straight path (training), by Euler steps (planning)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

# Flow time in training: TIME_MAX - TIME_MAX * Beta(1.5, 1), so that noisy steps are drawn more often.
TIME_MAX = 0.999
TIME_BETA = (1.5, 1.0)

# (x (S, 64, 2), t (S,)) -> velocity (S, 64, 2)
Velocity = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class FlowBatch:
    """Points on the way from noise to action, and the velocity a model should give there."""

    # (S, 64, 2)
    noisy: Tensor
    # (S,)
    time: Tensor
    # (S, 64, 2)
    velocity: Tensor


def draw_flow_batch(action: Tensor, generator: torch.Generator) -> FlowBatch:
    """Draw a flow time and noise for each normalised action (S, 64, 2)."""
    noise = torch.randn(action.shape, generator=generator)
    # Beta(a, 1) by inversion: a torch distribution cannot take a generator.
    beta = torch.rand(len(action), generator=generator) ** (1.0 / TIME_BETA[0])
    time = TIME_MAX - TIME_MAX * beta
    share = time[:, None, None]
    return FlowBatch(share * action + (1.0 - share) * noise, time, action - noise)


def integrate(velocity: Velocity, noise: Tensor, steps: int) -> Tensor:
    """Euler steps from noise (S, 64, 2) at t = 0 to an action at t = 1."""
    action = noise
    for step in range(steps):
        time = torch.full((len(noise),), step / steps)
        action = action + velocity(action, time) / steps
    return action
