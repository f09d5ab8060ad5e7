"""Keys and values of the target by slot; a slot is a sequence index, never a rotary position."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from flatrope_planner.errors import InputError


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


class SlotCache:
    """Room for a fixed number of tokens of one request; every pass sees all slots and a mask says which count."""

    def __init__(self, layers: int, kv_heads: int, head_dim: int, capacity: int) -> None:
        """Empty slots."""
        shape = (layers, 1, kv_heads, capacity, head_dim)
        self.keys = torch.zeros(shape)
        self.values = torch.zeros(shape)
        self.capacity = capacity
        # Committed tokens; the pass in flight writes behind them.
        self.length = 0

    def update(self, key: Tensor, value: Tensor, layer: int, **_: object) -> tuple[Tensor, Tensor]:
        """Write a pass's keys and values (1, kv_heads, n, head_dim) behind the committed ones; all slots come back.

        Raises:
            InputError: when the pass does not fit.
        """
        end = self.length + key.shape[2]
        if end > self.capacity:
            msg = f"cache: {end} tokens do not fit into {self.capacity} slots"
            raise InputError(msg)
        self.keys[layer, :, :, self.length : end] = key
        self.values[layer, :, :, self.length : end] = value
        return self.keys[layer], self.values[layer]

    def keep(self, rows: list[int]) -> None:
        """Commit these rows of the last pass, in this order; the others are forgotten."""
        end = self.length + len(rows)
        # A chain lies where it belongs already.
        if rows != list(range(len(rows))):
            source = torch.tensor(rows) + self.length
            self.keys[:, :, :, self.length : end] = self.keys[:, :, :, source]
            self.values[:, :, :, self.length : end] = self.values[:, :, :, source]
        self.length = end

    def committed(self) -> KeyValues:
        """The committed keys and values, (1, kv_heads, length, head_dim) a layer."""
        return KeyValues(
            [key[:, :, : self.length] for key in self.keys], [value[:, :, : self.length] for value in self.values]
        )
