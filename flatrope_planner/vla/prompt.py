"""The prompt in Alpamayo's layout, and where each of its tokens stands in the target's three-dimensional positions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flatrope_planner.vla import tokenizer as tok
from flatrope_planner.vla.config import TOKEN_COLUMNS, TOKEN_ROWS, TOKENS_PER_PICTURE
from flatrope_planner.vla.tokenizer import NanoTokenizer

SYSTEM_TEXT = "You are a driving assistant that generates safe and accurate actions."
INSTRUCTION_TEXT = "output the chain-of-thought reasoning of the driving process, then output the future trajectory."
ROLES = ("system\n", "user\n", "assistant\n")


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


def prompt_texts() -> list[str]:
    """All fixed text of a prompt, piece by piece as it is tokenised."""
    return [*ROLES, SYSTEM_TEXT, INSTRUCTION_TEXT, "\n"]


def build_prompt(tokenizer: NanoTokenizer, pictures: int, history_bins: Sequence[int], command: str) -> PromptTokens:
    """Lay out a prompt for that many pictures, the 48 bins of the ego history and a command ("" for none)."""
    picture = tok.VISION_START + tok.IMAGE_PAD * TOKENS_PER_PICTURE + tok.VISION_END
    history = tok.HISTORY_START + "".join(map(tok.history_token, history_bins)) + tok.HISTORY_END
    route = tok.ROUTE_START + command + tok.ROUTE_END if command else ""
    turns = (SYSTEM_TEXT, picture * pictures + history + route + INSTRUCTION_TEXT)
    text = "".join(f"{tok.IM_START}{role}{turn}{tok.IM_END}\n" for role, turn in zip(ROLES, turns, strict=False))
    ids = np.array(tokenizer.encode(f"{text}{tok.IM_START}{ROLES[2]}{tok.COT_START}"))
    is_history = (ids >= tokenizer.history_ids.start) & (ids < tokenizer.history_ids.stop)
    return PromptTokens(ids, mrope_positions(ids, tokenizer.image_pad), tuple(np.flatnonzero(is_history).tolist()))


def mrope_positions(ids: NDArray[np.int64], image_pad: int) -> NDArray[np.int64]:
    """Qwen3-VL's positions: text counts on, a picture spans rows and columns and advances the count by the longer.

    Returns:
        int64 (3, L).
    """
    rows, columns = np.divmod(np.arange(TOKENS_PER_PICTURE), TOKEN_COLUMNS)
    picture = np.stack([np.zeros_like(rows), rows, columns])
    pieces = []
    count = index = 0
    while index < len(ids):
        if ids[index] == image_pad:
            pieces.append(picture + count)
            index += TOKENS_PER_PICTURE
            count += max(TOKEN_ROWS, TOKEN_COLUMNS)
        else:
            pieces.append(np.full((3, 1), count))
            index += 1
            count += 1
    return np.concatenate(pieces, axis=1)
