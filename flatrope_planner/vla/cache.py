"""Keys and values of passes that are not decoding: training's, and the action expert's."""

from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import torch
from torch import Tensor


def cache_argument(forward: Callable[..., Any]) -> str:
    """The name by which a transformers model takes its cache.

    It was renamed, and versions before that take the new name without a word and leave the cache alone. The last
    version for Python 3.10 is one of these.
    """
    return "cache" if "cache" in signature(forward).parameters else "past_key_values"


@dataclass
class KeyValues:
    """Keys and values layer by layer, each (S, kv_heads, L, head_dim); keys carry their rotation."""

    keys: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)

    def expanded(self, samples: int) -> "KeyValues":
        """One request's keys and values, seen by several samples."""
        return KeyValues(
            [key.expand(samples, -1, -1, -1) for key in self.keys],
            [value.expand(samples, -1, -1, -1) for value in self.values],
        )


class RecordingCache(KeyValues):
    """A cache for one pass without a past: notes what each layer computes."""

    def update(self, key: Tensor, value: Tensor, layer: int, **_: object) -> tuple[Tensor, Tensor]:
        """Note a layer's keys and values and hand them on."""
        del layer
        self.keys.append(key)
        self.values.append(value)
        return key, value


class JoinedCache(KeyValues):
    """A cache that is read but never written: what a pass adds is gone with the pass."""

    def update(self, key: Tensor, value: Tensor, layer: int, **_: object) -> tuple[Tensor, Tensor]:
        """The stored keys and values followed by the pass's own."""
        return torch.cat([self.keys[layer], key], dim=2), torch.cat([self.values[layer], value], dim=2)
