"""The judge: what transformers' own `generate` writes behind a prompt, and how long it takes."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor, LogitsProcessorList, PreTrainedModel

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


@dataclass(frozen=True)
class WritingRules:
    """What a text may be."""

    stop_token: int
    token_budget: int
    # Tokens that are never written.
    forbidden: tuple[int, ...] = ()


class GenerateReference:
    """Writes with `generate`, token by token or with its prompt lookup."""

    def __init__(self, model: PreTrainedModel, rules: WritingRules, lookup_tokens: int | None = None) -> None:
        """Write with a model.

        Args:
            model: who writes.
            rules: what a text may be.
            lookup_tokens: how many tokens prompt lookup proposes; None: none are.
        """
        self._model, self._rules, self._lookup_tokens = model, rules, lookup_tokens

    def write(self, token_ids: Sequence[int], inputs: Mapping[str, Any]) -> Written:
        """Greedy text behind a prompt; `inputs` is what else the model wants for it."""
        rules = self._rules
        ids = torch.tensor([list(token_ids)], device=self._model.device)
        clock, passes = _FirstTokenClock(), _Counter()
        handle = self._model.get_decoder().register_forward_hook(passes.count)
        lookup = {} if self._lookup_tokens is None else {"prompt_lookup_num_tokens": self._lookup_tokens}
        try:
            out = self._model.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=rules.token_budget,
                do_sample=False,
                suppress_tokens=list(rules.forbidden) or None,
                eos_token_id=rules.stop_token,
                pad_token_id=rules.stop_token,
                logits_processor=LogitsProcessorList([clock]),
                **lookup,
                **inputs,
            )
        finally:
            handle.remove()
        tokens: list[int] = out[0, ids.shape[1] :].tolist()
        # The first pass belongs to the prefill.
        return Written(tuple(tokens), time.perf_counter() - clock.first_s, passes.passes - 1)


def is_same(written: Written, tokens: Sequence[int]) -> bool:
    """Whether an engine's text, whose end marks a spent budget may have forced, is what was written."""
    return tuple(tokens[: len(written.tokens)]) == written.tokens


def nano_rules(target: NanoTarget) -> WritingRules:
    """What nano may write."""
    return WritingRules(target.stop_token, target.token_budget, tuple(target.forbidden.nonzero().flatten().tolist()))


def nano_inputs(target: NanoTarget, observation: Observation, prompt: NanoPrompt) -> dict[str, Tensor]:
    """The pictures of an observation as Qwen's processor lays them out: each still one twice in time."""
    pictures = [torch.from_numpy(resize_picture(f.image)) for frames in observation.frames.values() for f in frames]
    patches = patchify(torch.stack(pictures))
    pixels = patches.shape[-1] // 3
    doubled = patches.reshape(-1, 3, 1, pixels).expand(-1, 3, 2, pixels).reshape(-1, 2 * patches.shape[-1])
    return {
        "pixel_values": doubled.to(target.vlm.dtype),
        "image_grid_thw": torch.tensor([[1, *GRID]] * len(pictures)),
        "mm_token_type_ids": (torch.tensor([list(prompt.token_ids)]) == target.image_pad).int(),
    }


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
