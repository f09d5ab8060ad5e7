"""Bounds on pictures from outside, and on how much of them is repeated in a message."""

from flatrope_planner.errors import InputError

# 8K fits (7680 x 4320); a decoded picture takes 100 MB at most.
MAX_PIXELS = 2**25
MAX_SHOWN_CHARACTERS = 40


def require_bounded_size(width: int, height: int) -> None:
    """Refuse a size before memory is reserved for it.

    Raises:
        InputError: if there are no pixels, or more than MAX_PIXELS.
    """
    if width < 1 or height < 1 or width * height > MAX_PIXELS:
        msg = f"picture of {width}x{height} pixels, expected 1 to {MAX_PIXELS}"
        raise InputError(msg)


def shortened(text: str) -> str:
    """The beginning of a text from outside, in quotes, on one line of ASCII."""
    return ascii(text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}...")
