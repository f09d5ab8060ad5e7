"""std_msgs/String to a route hint.

It becomes a part of the target's prompt, so it must not hold a target's own marks, such as those that stand for
pictures or end a turn, nor be of any length: a prompt that is too long fails every tick until another command comes.
"""

from typing import TYPE_CHECKING

from flatrope_planner.conversion.limits import shortened
from flatrope_planner.errors import InputError

if TYPE_CHECKING:
    from std_msgs.msg import String

# Several times what any route hint says; a token for each byte at the most.
MAX_BYTES = 200
# Every mark is in these.
MARKS = "<>"


def route_hint(message: "String") -> str:
    """The text; an empty one ends the hint.

    Raises:
        InputError: if it is too long, or not plain text.
    """
    text = str(message.data).strip()
    if len(text) > MAX_BYTES or len(text.encode(errors="replace")) > MAX_BYTES:
        msg = f"command {shortened(text)} of {len(text)} characters, expected at most {MAX_BYTES} bytes"
        raise InputError(msg)
    if not text.isprintable() or any(mark in text for mark in MARKS):
        msg = f"command {shortened(text)}, expected printable text without < and >"
        raise InputError(msg)
    return text
