"""Targets that act by a flow: an expert reads what the text model has read, and noise becomes actions."""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from flatrope_planner.dimensions import ACTION_SIZE, FUTURE_POINTS
from flatrope_planner.domain import Trajectory
from flatrope_planner.vla.cache import KeyValues
from flatrope_planner.vla.request import VlaState
from flatrope_planner.vla.target import VlaTarget


@dataclass(frozen=True)
class Memory:
    """What an action expert reads of a request, for S samples of its actions."""

    memory: KeyValues
    # int64 (S,): see `vla.expert.run_expert`.
    offset: Tensor
    rope_delta: Tensor


class FlowTarget(VlaTarget):
    """Acts by an expert on the keys and values of its rationale."""

    # Actions of a plan.
    points = FUTURE_POINTS

    @abstractmethod
    def trajectories(self, state: VlaState, noise: Tensor) -> tuple[Trajectory, ...]:
        """The trajectories that grow out of noise (samples, points, 2) behind a finished rationale."""

    @torch.inference_mode()
    def act(self, state: VlaState, seed: int | None, samples: int = 1) -> tuple[Trajectory, ...]:
        """Draw trajectories; the same seed draws the same ones, and none starts each from the middle of the noise."""
        noise = torch.zeros(samples, self.points, ACTION_SIZE)
        if seed is not None:
            noise.normal_(generator=torch.Generator().manual_seed(seed))
        return self.trajectories(state, noise)

    def _memory(self, state: VlaState, samples: int) -> Memory:
        keys, values = state.cache.committed()
        return Memory(
            KeyValues(keys, values).expanded(samples),
            # Actions count on behind all that is written, read or not.
            torch.full((samples,), state.length + state.unread, device=self.device),
            torch.full((samples,), state.rope_delta, device=self.device),
        )
