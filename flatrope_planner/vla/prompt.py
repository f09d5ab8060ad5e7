"""The prompt in Alpamayo's layout, and where each of its tokens stands in the target's three-dimensional positions."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flatrope_planner.errors import InputError
from flatrope_planner.vla import tokenizer as tok
from flatrope_planner.vla.config import TOKEN_COLUMNS, TOKEN_ROWS
from flatrope_planner.vla.tokenizer import VlaTokenizer

SYSTEM_TEXT = "You are a driving assistant that generates safe and accurate actions."
INSTRUCTION_TEXT = "output the chain-of-thought reasoning of the driving process, then output the future trajectory."
ROLES = ("system\n", "user\n", "assistant\n")

# What would become a mark, or a number of the ego history, in the midst of a route.
_MARK = re.compile(r"<\|\w*\|>|<i\d+>")


@dataclass(frozen=True)
class PromptTokens:
    """A tokenised prompt, up to and including `<|cot_start|>`."""

    # int64 (L,).
    ids: NDArray[np.int64]
    # int64 (3, L): time, height, width.
    positions: NDArray[np.int64]
    # Indices of the ego history's tokens.
    history: tuple[int, ...]

    @property
    def rope_delta(self) -> int:
        """What to add to a sequence index behind the prompt to get its position on all three axes."""
        return int(self.positions.max()) + 1 - len(self.ids)


@dataclass(frozen=True)
class PictureSlot:
    """A picture's place in a prompt."""

    # Merged tokens.
    rows: int
    columns: int
    # Text before it.
    label: str = ""

    @property
    def tokens(self) -> int:
        """Tokens that the picture takes."""
        return self.rows * self.columns

    @property
    def places(self) -> NDArray[np.int64]:
        """int64 (3, tokens): time, height and width from the picture's first token on."""
        rows, columns = np.divmod(np.arange(self.tokens), self.columns)
        return np.stack([np.zeros_like(rows), rows, columns])


def prompt_texts() -> list[str]:
    """All fixed text of a prompt, piece by piece as it is tokenised."""
    return [*ROLES, SYSTEM_TEXT, INSTRUCTION_TEXT, "\n"]


def build_prompt(tokenizer: VlaTokenizer, pictures: int, history_bins: Sequence[int], command: str) -> PromptTokens:
    """Lay out nano's prompt: that many pictures, the 48 bins of the ego history and a command ("" for none)."""
    return lay_out(tokenizer, [PictureSlot(TOKEN_ROWS, TOKEN_COLUMNS)] * pictures, history_bins, command or None)


def lay_out(
    tokenizer: VlaTokenizer, pictures: Sequence[PictureSlot], history_bins: Sequence[int], route: str | None
) -> PromptTokens:
    """Lay out a prompt: pictures in order, the ego history's bins and a route (None for none).

    Raises:
        InputError: when the route holds what looks like a mark of the prompt's own.
    """
    if route is not None and (mark := _MARK.search(route)):
        msg = f"command {route[:80]!r} holds {mark[0]!r}, expected plain words"
        raise InputError(msg)
    seen = "".join(f"{slot.label}{tok.VISION_START}{tok.IMAGE_PAD * slot.tokens}{tok.VISION_END}" for slot in pictures)
    history = tok.HISTORY_START + "".join(map(tokenizer.history_token, history_bins)) + tok.HISTORY_END
    way = tok.ROUTE_START + route + tok.ROUTE_END if route is not None else ""
    turns = (SYSTEM_TEXT, seen + history + way + INSTRUCTION_TEXT)
    text = "".join(f"{tok.IM_START}{role}{turn}{tok.IM_END}\n" for role, turn in zip(ROLES, turns, strict=False))
    ids = np.array(tokenizer.encode(f"{text}{tok.IM_START}{ROLES[2]}{tok.COT_START}"))
    is_history = (ids >= tokenizer.history_ids.start) & (ids < tokenizer.history_ids.stop)
    positions = mrope_positions(ids, tokenizer.image_pad, [slot.places for slot in pictures])
    return PromptTokens(ids, positions, tuple(np.flatnonzero(is_history).tolist()))


def mrope_positions(ids: NDArray[np.int64], pad: int, places: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Qwen-VL's positions: text counts on, a picture or video spans its places; behind it, the highest counts on.

    Args:
        ids: (L,) tokens of the prompt.
        pad: the token that stands for a patch.
        places: of each picture or video int64 (3, tokens), from its first token on.

    Returns:
        int64 (3, L).
    """
    ahead = iter(places)
    pieces = []
    count = index = 0
    while index < len(ids):
        spans = next(ahead) if ids[index] == pad else np.zeros((3, 1), dtype=np.int64)
        pieces.append(spans + count)
        index += spans.shape[1]
        count = int(pieces[-1].max()) + 1
    return np.concatenate(pieces, axis=1)
