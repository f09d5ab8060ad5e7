"""What of a text so far may foretell its next token: its latest tokens, its opening together with them, its length.

A context that leaves tokens out survives an unusual word: what follows the words around it is still remembered. The
opening says what the text is about when the latest tokens alone would not.
"""

from collections.abc import Iterator
from operator import itemgetter

Text = tuple[int, ...]
# The kind of a context, then its tokens.
Key = tuple[int, ...]

# Contexts of the latest tokens have up to so many; the beginning of a text counts as one.
LONGEST_CONTEXT = 10
BEGINNING = -1
# Places of the tokens of other contexts: from the text's first, and from its latest backwards.
PATTERNS = (
    (0, -1),
    (0, 1, -1),
    (0, 1, 2, -1),
    (0, 1, 2, 3, -1),
    (0, 1, -2, -1),
    (0, 1, 2, 3, -2, -1),
    (-3, -2),
    (-4, -3, -2),
    (0, -3, -2),
    (-3, -1),
    (-4, -3, -1),
)
# So many of the latest tokens together with the number of tokens so far.
PLACED = (1, 2)

_FIRST_PATTERN = LONGEST_CONTEXT + 1
_FIRST_PLACED = _FIRST_PATTERN + len(PATTERNS)
# That nothing is written yet: a kind of its own, since openings repeat far more than other tokens.
OPENING = _FIRST_PLACED + len(PLACED)
KINDS = OPENING + 1
# Kind, tokens of a text from which on its pattern is no run of latest tokens, and the pattern.
_PICKED = tuple(
    (_FIRST_PATTERN + index, sum(place >= 0 for place in places) - min(places) + 1, itemgetter(*places))
    for index, places in enumerate(PATTERNS)
)


def contexts(text: Text) -> Iterator[Key]:
    """The contexts of a text's next token, one of each kind at most; the first is the empty one."""
    length = len(text)
    for size in range(min(length, LONGEST_CONTEXT) + 1):
        yield (size, *text[length - size :])
    if length < LONGEST_CONTEXT:
        yield (length + 1, BEGINNING, *text)
    for kind, least, pick in _PICKED:
        if length >= least:
            yield (kind, *pick(text))
    for index, size in enumerate(PLACED):
        if length >= size:
            yield (_FIRST_PLACED + index, length, *text[-size:])
    if not text:
        yield (OPENING,)
