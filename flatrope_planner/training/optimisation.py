"""Muon and AdamW with warm-up and cosine decay, and the running average of the weights that is shipped in the end.

Muon (Jordan et al. 2024; scaled to AdamW's step size after Liu et al. 2025, arXiv 2502.16982) moves the hidden
matrices, AdamW everything else: embeddings, the head, narrow projections, norms and biases.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

WARM_UP_STEPS = 200
FINAL_SHARE = 0.02
WEIGHT_DECAY = 0.05
BETAS = (0.9, 0.98)
MAX_GRADIENT_NORM = 1.0
AVERAGE_DECAY = 0.999
# A matrix with fewer rows or columns than this is no hidden matrix.
NARROW = 32
# Muon's rate beside AdamW's.
MUON_SHARE = 2.0


def learning_rate(step: int, seeing_steps: int, steps: int, peak: float) -> float:
    """Rate of a step: up linearly and level while only seeing is learnt, then up again and down a cosine to 2 %."""
    if step < seeing_steps:
        return peak * min((step + 1) / _warm_up(seeing_steps), 1.0)
    step, steps = step - seeing_steps, steps - seeing_steps
    if step < _warm_up(steps):
        return peak * (step + 1) / _warm_up(steps)
    share = min((step - _warm_up(steps)) / max(steps - _warm_up(steps), 1), 1.0)
    return peak * (FINAL_SHARE + (1.0 - FINAL_SHARE) * 0.5 * (1.0 + math.cos(math.pi * share)))


def _warm_up(steps: int) -> int:
    return min(WARM_UP_STEPS, max(steps // 10, 1))


class Optimiser:
    """Takes steps on modules and averages the weights of the first."""

    def __init__(self, model: nn.Module, teacher: nn.Module, schedule: Callable[[int], float]) -> None:
        """Train `model` and `teacher` together, step i at rate `schedule(i)`; only the model's weights are averaged."""
        self._schedule = schedule
        self._parameters = [*model.parameters(), *teacher.parameters()]
        self._named = dict(model.named_parameters())
        hidden = _hidden_matrices(model)
        chosen = {id(p) for p in hidden}
        others = [p for p in self._parameters if id(p) not in chosen]
        self._muon = torch.optim.Muon(hidden, weight_decay=WEIGHT_DECAY, adjust_lr_fn="match_rms_adamw")
        self._adam = torch.optim.AdamW(others, betas=BETAS, weight_decay=0.0, fused=True)
        self.average: dict[str, Tensor] = {name: value.detach().clone() for name, value in self._named.items()}
        self.step_count = 0

    def step(self, loss: Tensor, merge: Callable[[Iterable[Tensor]], None] | None = None) -> float:
        """One step down the loss; returns the norm of the gradient before clipping.

        Args:
            loss: of a batch.
            merge: brings the gradients of several processes together, in place.
        """
        rate = self._schedule(self.step_count)
        _set_rate(self._adam, rate)
        _set_rate(self._muon, rate * MUON_SHARE)
        for each in (self._adam, self._muon):
            each.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if merge is not None:
            merge(p.grad for p in self._parameters if p.grad is not None)
        norm = float(nn.utils.clip_grad_norm_(self._parameters, MAX_GRADIENT_NORM))
        if math.isfinite(norm):
            self._adam.step()
            self._muon.step()  # type: ignore[no-untyped-call]
            self._update_average()
        self.step_count += 1
        return norm

    def _update_average(self) -> None:
        # Young averages follow fast, so that the random start is soon forgotten.
        decay = min(AVERAGE_DECAY, (1.0 + self.step_count) / (10.0 + self.step_count))
        values = [value.detach() for value in self._named.values()]
        torch._foreach_lerp_(list(self.average.values()), values, 1.0 - decay)  # one pass over all

    def state(self) -> dict[str, Any]:
        """Everything that `restore` needs."""
        optimisers = {"adam": self._adam.state_dict(), "muon": self._muon.state_dict()}
        return {**optimisers, "average": self.average, "step": self.step_count}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._adam.load_state_dict(state["adam"])
        self._muon.load_state_dict(state["muon"])
        self.average = {name: value.to(self._named[name].device, copy=True) for name, value in state["average"].items()}
        self.step_count = state["step"]


def _hidden_matrices(model: nn.Module) -> list[Tensor]:
    """Weights of linear layers but narrow ones and the head."""
    linear = (module for name, module in model.named_modules() if isinstance(module, nn.Linear) and "head" not in name)
    return [module.weight for module in linear if min(module.weight.shape) >= NARROW]


def _set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    groups: Iterable[dict[str, Any]] = optimiser.param_groups
    for group in groups:
        group["lr"] = rate
