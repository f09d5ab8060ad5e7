"""One request to a target: what it is asked, and what it has read of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from flatrope_planner.speculation.slots import SlotCache
from flatrope_planner.vla.prompt import PromptTokens
from flatrope_planner.vla.vision import VisionFeatures


@dataclass(frozen=True)
class VlaPrompt:
    """An observation as a target reads it."""

    tokens: PromptTokens
    features: VisionFeatures
    # (): speed at t0 (m/s), from the ego history.
    speed_mps: Tensor
    # Height at t0 (m) in the ego frame.
    height_m: float = 0.0

    @property
    def token_ids(self) -> Sequence[int]:
        """Tokens of the prompt."""
        ids: list[int] = self.tokens.ids.tolist()
        return ids

    @property
    def pinned(self) -> Sequence[int]:
        """The ego history."""
        return self.tokens.history

    @property
    def rope_delta(self) -> int:
        """See `speculation.target.Prompt`."""
        return self.tokens.rope_delta

    def rotary_positions(self) -> Tensor:
        """int64 (3, tokens)."""
        return torch.from_numpy(self.tokens.positions)


@dataclass
class VlaState:
    """What a target has read of one request."""

    cache: SlotCache
    rope_delta: int
    speed_mps: Tensor
    height_m: float = 0.0
    # Committed tokens behind the prompt, and the tokens of the last block.
    written: list[int] = field(default_factory=list)
    block: tuple[int, ...] = ()
    # See `speculation.target.DecodingState`.
    unread: int = 0
    # Behind the same prompt without its route: what guidance compares with; None where there is no guidance.
    unguided: "VlaState | None" = None

    @property
    def length(self) -> int:
        """Committed tokens, the prompt's included."""
        return self.cache.length

    def keep(self, rows: Sequence[int]) -> None:
        """Commit these rows of the last block, in this order."""
        self.cache.keep(rows)
        self.written += [self.block[row] for row in rows]
