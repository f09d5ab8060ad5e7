"""Traces -> tensors for a block draft: several anchors of each text, each with its block."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from flatrope_planner.speculation.block_draft import Places
from flatrope_planner.training.draft_scoring import Truth
from flatrope_planner.training.objective import IGNORED
from flatrope_planner.training.traces import Trace
from flatrope_planner.vla.attention_mask import additive

# Blocks of one text that are trained on at a time, and how many of them begin where a block does if all before it were
# right: behind the text's first token, a block later, and so on.
ANCHORS = 8
BOUNDARY_ANCHORS = 4


@dataclass(frozen=True)
class BlockBatch:
    """S texts of up to T read tokens with A blocks of B tokens each."""

    # float (taps, S, T, hidden), and where these tokens stand.
    tapped: Tensor
    context: Places
    # int64 (S, A): the token each block starts from, and where the block's tokens stand, (S, A * B).
    anchors: Tensor
    block: Places
    # float (S, 1, A * B, T + A * B), to be added to scores.
    mask: Tensor
    # int64 (S, A, B - 1): the token before each place; and what is true of the place.
    before: Tensor
    truth: Truth


def block_batch(
    traces: Sequence[Trace], block_size: int, rng: np.random.Generator, context_tokens: int | None = None
) -> BlockBatch:
    """Draw anchors and lay out blocks.

    Args:
        traces: texts of one target.
        block_size: B.
        rng: draws the anchors.
        context_tokens: how many of the last tokens before an anchor its block sees, besides the pinned ones; None for
            all.
    """
    longest = max(len(trace.tokens) for trace in traces) - 1
    rows = [_row(trace, block_size, rng, longest, context_tokens) for trace in traces]
    parts = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
    tapped = torch.stack([padded(trace.tapped.float(), longest, 1) for trace in traces], dim=1)
    index = torch.arange(longest).expand(len(traces), -1)
    return BlockBatch(
        tapped=tapped,
        context=Places(index, parts["context_positions"].movedim(1, 0)),
        anchors=parts["anchors"],
        block=Places(parts["block_index"], (parts["block_index"] + parts["delta"]).expand(3, -1, -1)),
        mask=parts["mask"][:, None],
        before=parts["before"],
        truth=Truth(parts["labels"], parts["likeliest"], parts["log_probability"]),
    )


def _row(
    trace: Trace, block_size: int, rng: np.random.Generator, longest: int, context_tokens: int | None
) -> dict[str, Tensor]:
    tokens, prompt = trace.tokens.long(), trace.prompt
    length = len(tokens)
    # An anchor is known but not read; something has to follow it. The text's first token comes with the prompt.
    boundaries = np.arange(prompt, max(length - 1, prompt + 1), block_size)
    anywhere = np.arange(prompt, max(length - 1, prompt + 1))
    drawn = rng.choice(anywhere, ANCHORS - BOUNDARY_ANCHORS)
    anchor_index = torch.from_numpy(np.concatenate([np.resize(boundaries, BOUNDARY_ANCHORS), drawn]))
    places = anchor_index[:, None] + torch.arange(1, block_size)
    inside = places < length
    within = places.clamp(max=length - 1)
    block_index = (anchor_index[:, None] + torch.arange(block_size)).flatten()
    return {
        "context_positions": padded(trace.positions.long(), longest, 1),
        "anchors": tokens[anchor_index],
        "block_index": block_index,
        "delta": (trace.positions[0, -1].long() - (length - 1))[None],
        "mask": _mask(anchor_index, block_size, (longest, context_tokens), trace.pinned.long()),
        "before": tokens[(places - 1).clamp(max=length - 1)],
        "labels": tokens[within].masked_fill(~inside, IGNORED),
        "likeliest": trace.likeliest.long()[within - prompt],
        "log_probability": trace.log_probability[within - prompt],
    }


def _mask(anchors: Tensor, block_size: int, reach: tuple[int, int | None], pinned: Tensor) -> Tensor:
    """(A * B, T + A * B): tokens before the anchor, and the block's own."""
    longest, context_tokens = reach
    index = torch.arange(longest)
    sees = index < anchors[:, None]
    if context_tokens is not None:
        near = index >= anchors[:, None] - context_tokens
        near[:, pinned] = True
        sees &= near
    own = torch.eye(len(anchors), dtype=torch.bool).repeat_interleave(block_size, 1)
    seen = torch.cat([sees, own], dim=1).repeat_interleave(block_size, 0)
    return additive(seen)


def padded(value: Tensor, length: int, axis: int) -> Tensor:
    """Zeros behind, or cut, to a length along an axis."""
    missing = length - value.shape[axis]
    if missing <= 0:
        return value.narrow(axis, 0, length)
    shape = [*value.shape]
    shape[axis] = missing
    return torch.cat([value, value.new_zeros(shape)], dim=axis)
