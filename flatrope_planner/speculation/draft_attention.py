"""The attention of drafts, and a way to look at it while they draft."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor
from torch.nn import functional as F

_RECORD: ContextVar[list[Tensor] | None] = ContextVar("record", default=None)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Grouped scaled-dot-product attention: (S, heads, n, d) over (S, kv_heads, T, d) -> (S, heads, n, d)."""
    record = _RECORD.get()
    if record is not None:
        record.append(_weights(query, key, mask))
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=True)


@contextmanager
def recorded_attention() -> Iterator[list[Tensor]]:
    """The weights (S, heads, n, T) of every attention inside, in order."""
    record: list[Tensor] = []
    token = _RECORD.set(record)
    try:
        yield record
    finally:
        _RECORD.reset(token)


def _weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    repeated = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    scores = query @ repeated.transpose(2, 3) / query.shape[-1] ** 0.5
    return torch.softmax(scores if mask is None else scores + mask, dim=-1)
