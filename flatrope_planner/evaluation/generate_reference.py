"""The judge: what transformers' own `generate` writes behind a prompt of nano, and how long it takes."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import LogitsProcessor, LogitsProcessorList

from flatrope_planner.domain import Observation
from flatrope_planner.vla.nano import NanoPrompt, NanoTarget
from flatrope_planner.vla.pictures import resize_picture
from flatrope_planner.vla.vision import GRID, patchify


@dataclass(frozen=True)
class Written:
    """A text of `generate`."""

    # Up to and with the stop token, where there is one.
    tokens: tuple[int, ...]
    # Behind the first token.
    reasoning_s: float
    passes: int


class GenerateReference:
    """Writes with `generate`, token by token or with its prompt lookup."""

    def __init__(self, target: NanoTarget, lookup_tokens: int | None = None) -> None:
        """Write as the target would.

        Args:
            target: whose network writes.
            lookup_tokens: how many tokens prompt lookup proposes; None: none are.
        """
        self._target, self._lookup_tokens = target, lookup_tokens
        self._suppressed = target.forbidden.nonzero().flatten().tolist()

    def write(self, observation: Observation, prompt: NanoPrompt) -> Written:
        """Greedy text for an observation whose prompt has been prepared."""
        target, vlm = self._target, self._target.vlm
        ids = torch.tensor([list(prompt.token_ids)])
        clock = _FirstTokenClock()
        passes = _Counter()
        handle = vlm.model.language_model.register_forward_hook(passes.count)
        lookup = {} if self._lookup_tokens is None else {"prompt_lookup_num_tokens": self._lookup_tokens}
        try:
            out = vlm.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                mm_token_type_ids=(ids == vlm.config.image_token_id).int(),
                pixel_values=_pixel_values(observation).to(vlm.dtype),
                image_grid_thw=torch.tensor([[1, *GRID]] * target.config.pictures),
                max_new_tokens=target.token_budget,
                do_sample=False,
                suppress_tokens=self._suppressed,
                eos_token_id=target.stop_token,
                pad_token_id=0,
                logits_processor=LogitsProcessorList([clock]),
                **lookup,
            )
        finally:
            handle.remove()
        tokens: list[int] = out[0, ids.shape[1] :].tolist()
        # The first pass belongs to the prefill.
        return Written(tuple(tokens), time.perf_counter() - clock.first_s, passes.passes - 1)


def is_same(written: Written, tokens: Sequence[int]) -> bool:
    """Whether an engine's text, whose end marks a spent budget may have forced, is what was written."""
    return tuple(tokens[: len(written.tokens)]) == written.tokens


class _FirstTokenClock(LogitsProcessor):
    """Notes when the first token is chosen; changes nothing."""

    def __init__(self) -> None:
        self.first_s = 0.0

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        del input_ids
        self.first_s = self.first_s or time.perf_counter()
        return scores


class _Counter:
    def __init__(self) -> None:
        self.passes = 0

    def count(self, *_: object) -> None:
        self.passes += 1


def _pixel_values(observation: Observation) -> Tensor:
    """Patches as Qwen's processor lays them out: each still picture twice in time."""
    pictures = [torch.from_numpy(resize_picture(f.image)) for frames in observation.frames.values() for f in frames]
    patches = patchify(torch.stack(pictures))
    pixels = patches.shape[-1] // 3
    return patches.reshape(-1, 3, 1, pixels).expand(-1, 3, 2, pixels).reshape(-1, 2 * patches.shape[-1])
