"""Keys and values of one request by slot, and attention that does not depend on how a block was laid out.

A slot is a sequence index, never a rotary position; the tokens of a block lie behind the committed ones until some of
them are kept. Floating-point sums depend on the order of their terms, so two trees that hold the same token would give
it slightly different states. Here every row sums over the prompt first and then over its own path, gathered into
sequence order: the result is the same whatever else the block holds (docs/architecture.md).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from flatrope_planner.errors import InputError
from flatrope_planner.speculation.candidates import Block

PATH_ATTENTION = "flatrope_paths"
# Most rows of a block.
MAX_WIDTH = 128


@dataclass(frozen=True)
class Layout:
    """What the rows of a block attend over; rows before the block are the prompt, read in the same pass."""

    # Slots, from the first, that every row sees: the prompt.
    shared: int
    # int64 (n, places): the slots of each row's path, itself included, in sequence order; bool: whether there is one.
    paths: Tensor
    seen: Tensor


class SlotCache:
    """Room for the prompt and a fixed number of further tokens of one request."""

    def __init__(self, shape: "CacheShape", shared: int, places: int) -> None:
        """Empty slots.

        Args:
            shape: of keys and values.
            shared: tokens that are read first, all at once.
            places: most tokens that are ever committed behind them.
        """
        self.shared, self._places = shared, places
        slots = (shape.layers, 1, shape.kv_heads, shared + places + MAX_WIDTH, shape.head_dim)
        self.keys = torch.zeros(slots, dtype=shape.dtype, device=shape.device)
        self.values = torch.zeros(slots, dtype=shape.dtype, device=shape.device)
        # Committed tokens; the pass in flight writes behind them.
        self.length = 0

    def update(self, key: Tensor, value: Tensor, layer: int, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        """Write a pass's keys and values (1, kv_heads, n, head_dim) behind the committed ones; all slots come back.

        Raises:
            InputError: when the pass does not fit.
        """
        end = self.length + key.shape[2]
        if end > self.keys.shape[3]:
            msg = f"cache: {end} tokens do not fit into {self.keys.shape[3]} slots"
            raise InputError(msg)
        self.keys[layer, :, :, self.length : end] = key
        self.values[layer, :, :, self.length : end] = value
        return self.keys[layer], self.values[layer]

    def layout(self, block: Block) -> Layout:
        """How the rows of a block attend.

        Raises:
            InputError: when a path is longer than there are places.
        """
        # In the first pass the prompt is about to be written before the block.
        start = max(self.length, self.shared)
        committed = start - self.shared
        own = block.paths()
        lengths = np.array([committed + len(ancestors) for ancestors in own])
        if lengths.max() > self._places:
            msg = f"cache: a path of {lengths.max()} tokens does not fit into {self._places} places"
            raise InputError(msg)
        places = np.arange(self._places)
        paths = np.tile(self.shared + places, (len(own), 1))
        for row, ancestors in enumerate(own):
            paths[row, committed : lengths[row]] = [start + ancestor for ancestor in ancestors]
        seen = places < lengths[:, None]
        # What is not seen points at a slot that exists.
        paths[~seen] = 0
        device = self.keys.device
        return Layout(self.shared, torch.from_numpy(paths).to(device), torch.from_numpy(seen).to(device))

    def keep(self, rows: Sequence[int]) -> None:
        """Commit these rows of the last pass, in this order; the others are forgotten."""
        end = self.length + len(rows)
        # A chain lies where it belongs already.
        if list(rows) != list(range(len(rows))):
            source = torch.tensor(rows, device=self.keys.device) + self.length
            self.keys[:, :, :, self.length : end] = self.keys[:, :, :, source]
            self.values[:, :, :, self.length : end] = self.values[:, :, :, source]
        self.length = end

    def committed(self) -> tuple[list[Tensor], list[Tensor]]:
        """The committed keys and values, (1, kv_heads, length, head_dim) a layer."""
        return [key[:, :, : self.length] for key in self.keys], [value[:, :, : self.length] for value in self.values]


@dataclass(frozen=True)
class CacheShape:
    """Shape of a model's keys and values."""

    layers: int
    kv_heads: int
    head_dim: int
    dtype: torch.dtype = torch.float32
    device: str = "cpu"


def path_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    *,
    layout: Layout | None = None,
    **others: object,
) -> tuple[Tensor, Tensor | None]:
    """Attention over a `SlotCache`, to be called by transformers.

    Args:
        module: the layer.
        query: (1, heads, rows, head_dim).
        key: (1, kv_heads, slots, head_dim).
        value: as `key`.
        attention_mask: not used with a layout, which says what is seen.
        scaling: of the scores.
        layout: of the block; without one, this is scaled-dot-product attention as usual.

    Returns:
        (1, rows, heads, head_dim), and no weights.
    """
    if layout is None:
        usual: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **others
        )
        return usual
    before = query.shape[2] - len(layout.paths)
    mixed = [_attend_to_paths(query[0, :, before:], key[0], value[0], scaling, layout)]
    if before:
        q, k, v = (part[:, :, :before] for part in (query, key, value))
        causal = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scaling, enable_gqa=True)
        mixed.insert(0, causal[0].transpose(0, 1))
    return torch.cat(mixed)[None], None


def _attend_to_paths(query: Tensor, key: Tensor, value: Tensor, scaling: float, layout: Layout) -> Tensor:
    """(heads, n, d) queries over (kv_heads, slots, d) -> (n, heads, d)."""
    heads, n, d = query.shape
    kv_heads = len(key)
    grouped = query.reshape(kv_heads, heads // kv_heads, n, d)
    # (kv_heads, n, places, d): each row's own path.
    own_key, own_value = key[:, layout.paths], value[:, layout.paths]
    shared_key, shared_value = key[:, : layout.shared], value[:, : layout.shared]
    # The heads of a group read the same prompt: one product for all.
    to_shared = (grouped.flatten(1, 2) @ shared_key.transpose(1, 2)).view(kv_heads, heads // kv_heads, n, -1)
    to_own = (grouped.transpose(1, 2) @ own_key.transpose(2, 3)).transpose(1, 2)
    to_own = to_own.masked_fill(~layout.seen, torch.finfo(to_own.dtype).min)
    scores = torch.cat([to_shared, to_own], dim=3) * scaling
    weights = scores.softmax(dim=-1, dtype=torch.float32).to(query.dtype)
    on_shared, on_own = weights[..., : layout.shared], weights[..., layout.shared :]
    from_shared = (on_shared.flatten(1, 2) @ shared_value).view(kv_heads, heads // kv_heads, n, -1)
    mixed: Tensor = from_shared + (on_own.transpose(1, 2) @ own_value).transpose(1, 2)
    return mixed.reshape(heads, n, d).transpose(0, 1)


@cache
def cache_argument(forward: Callable[..., Any]) -> str:
    """The name by which the `forward` of a class of transformers takes its cache.

    It was renamed, and versions before that take the new name without a word and leave the cache alone. The last
    version for Python 3.10 is one of these.
    """
    return "cache" if "cache" in signature(forward).parameters else "past_key_values"


AttentionInterface.register(PATH_ATTENTION, path_attention)
AttentionMaskInterface.register(PATH_ATTENTION, sdpa_mask)
