"""One pass of the text model of a Qwen-VL, with what its vision tower has seen."""

from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor
from transformers import Qwen2_5_VLForConditionalGeneration, Qwen3VLForConditionalGeneration

from flatrope_planner.speculation.slots import Layout, cache_argument
from flatrope_planner.vla.attention_mask import additive
from flatrope_planner.vla.vision import VisionFeatures

QwenVL: TypeAlias = "Qwen2_5_VLForConditionalGeneration | Qwen3VLForConditionalGeneration"


@dataclass(frozen=True)
class Reading:
    """What the text model makes of n tokens in each of S sequences."""

    # (S, n, hidden), normalised.
    hidden: Tensor
    # (taps, S, n, hidden), behind the layers asked for.
    tapped: Tensor


@dataclass(frozen=True)
class Reader:
    """A Qwen-VL, and the token that stands for a patch of a picture in its prompts."""

    vlm: QwenVL
    image_pad: int

    def read(
        self,
        ids: Tensor,
        positions: Tensor,
        cache: object,
        features: VisionFeatures | None = None,
        layout: Layout | None = None,
        taps: tuple[int, ...] = (),
    ) -> Reading:
        """Run the text model over new tokens.

        Args:
            ids: (S, n) tokens.
            positions: (3, S, n) rotary positions.
            cache: takes the keys and values (`vla.cache`).
            features: of the pictures, flattened over all image tokens in `ids`; None when there are none.
            layout: which slots of the cache each token sees; None: causal, without a past.
            taps: text layers whose hidden states are wanted.
        """
        embeds = self.vlm.get_input_embeddings()(ids)
        text_model = self.vlm.model.language_model
        # The cache, and what the pictures add.
        extra: dict[str, object] = {cache_argument(type(text_model).forward): cache}
        if features is not None:
            slots = ids == self.image_pad
            # One more than there are patches is a token like others, which somebody has proposed.
            slots &= slots.flatten().cumsum(0).view_as(slots) <= features.tokens.shape[:2].numel()
            embeds = embeds.masked_scatter(slots[..., None], features.tokens.to(embeds.dtype))
            if features.deepstack:
                levels = [level.flatten(0, 1) for level in features.deepstack]
                extra |= {"visual_pos_masks": slots, "deepstack_visual_embeds": levels}
        out = text_model(
            inputs_embeds=embeds,
            attention_mask=_mask(ids, layout),
            position_ids=positions,
            output_hidden_states=bool(taps),
            layout=layout,
            **extra,
        )
        hidden: Tensor = out.last_hidden_state
        # The list of hidden states begins with the embeddings.
        shown = [out.hidden_states[layer + 1] for layer in taps]
        return Reading(hidden, torch.stack(shown) if shown else hidden.new_empty(0, *hidden.shape))


def _mask(ids: Tensor, layout: Layout | None) -> Tensor:
    """Four axes, so that it is taken as it is: causal, or nothing where a layout says what is seen."""
    if layout is not None:
        return torch.zeros(1, 1, 1, 1, device=ids.device)
    return additive(torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()[None, None]).to(ids.device)
