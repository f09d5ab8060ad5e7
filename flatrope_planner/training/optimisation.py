"""AdamW with warm-up and cosine decay, and the running average of the weights that is shipped in the end."""

import math
from typing import Any

import torch
from torch import Tensor, nn

WARM_UP_STEPS = 300
FINAL_SHARE = 0.02
WEIGHT_DECAY = 0.05
BETAS = (0.9, 0.98)
MAX_GRADIENT_NORM = 1.0
AVERAGE_DECAY = 0.999


def learning_rate(step: int, steps: int, peak: float) -> float:
    """Rate of a step: linear warm-up, then half a cosine down to 2 %."""
    warm_up = min(WARM_UP_STEPS, max(steps // 10, 1))
    if step < warm_up:
        return peak * (step + 1) / warm_up
    share = min((step - warm_up) / max(steps - warm_up, 1), 1.0)
    return peak * (FINAL_SHARE + (1.0 - FINAL_SHARE) * 0.5 * (1.0 + math.cos(math.pi * share)))


class Optimiser:
    """Takes steps on a model and averages its weights."""

    def __init__(self, model: nn.Module, peak_rate: float, steps: int) -> None:
        """Matrices decay towards zero; embeddings, norms and biases do not."""
        self._model = model
        self._peak_rate, self._steps = peak_rate, steps
        embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
        matrices = [p for p in model.parameters() if p.ndim >= 2 and id(p) not in embeddings]
        others = [p for p in model.parameters() if p.ndim < 2 or id(p) in embeddings]
        groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}]
        self._adam = torch.optim.AdamW(groups, lr=peak_rate, betas=BETAS, fused=True)
        self.average: dict[str, Tensor] = {name: value.detach().clone() for name, value in model.named_parameters()}
        self.step_count = 0

    def step(self, loss: Tensor) -> float:
        """One step down the loss; returns the norm of the gradient before clipping."""
        for group in self._adam.param_groups:
            group["lr"] = learning_rate(self.step_count, self._steps, self._peak_rate)
        self._adam.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = float(nn.utils.clip_grad_norm_(self._model.parameters(), MAX_GRADIENT_NORM))
        if math.isfinite(norm):
            self._adam.step()
            self._update_average()
        self.step_count += 1
        return norm

    def _update_average(self) -> None:
        # Young averages follow fast, so that the random start is soon forgotten.
        decay = min(AVERAGE_DECAY, (1.0 + self.step_count) / (10.0 + self.step_count))
        values = [value.detach() for _, value in self._model.named_parameters()]
        torch._foreach_lerp_(list(self.average.values()), values, 1.0 - decay)  # one pass over all

    def state(self) -> dict[str, Any]:
        """Everything that `restore` needs."""
        return {"adam": self._adam.state_dict(), "average": self.average, "step": self.step_count}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._adam.load_state_dict(state["adam"])
        self.average = {name: value.clone() for name, value in state["average"].items()}
        self.step_count = state["step"]
