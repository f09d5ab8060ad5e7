"""Bounds on pictures and names from outside, and on how much of them is repeated in a message."""

from flatrope_planner.errors import InputError

# 8K fits (7680 x 4320); a decoded picture takes 100 MB at most.
MAX_PIXELS = 2**25
MAX_SHOWN_CHARACTERS = 40
# Of a frame: it is repeated in every status and, in a path, for every pose.
MAX_NAME_CHARACTERS = 255


def require_bounded_size(width: int, height: int) -> None:
    """Refuse a size before memory is reserved for it.

    Raises:
        InputError: if there are no pixels, or more than MAX_PIXELS.
    """
    if width < 1 or height < 1 or width * height > MAX_PIXELS:
        msg = f"picture of {width}x{height} pixels, expected 1 to {MAX_PIXELS}"
        raise InputError(msg)


def require_bounded_name(what: str, name: str) -> None:
    """Refuse a name that no one has given on purpose.

    Raises:
        InputError: if it is longer than MAX_NAME_CHARACTERS.
    """
    if len(name) > MAX_NAME_CHARACTERS:
        msg = f"{what} {shortened(name)} of {len(name)} characters, expected at most {MAX_NAME_CHARACTERS}"
        raise InputError(msg)


def shortened(text: str) -> str:
    """The beginning of a text from outside, in quotes, on one line of ASCII."""
    return ascii(text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}...")
