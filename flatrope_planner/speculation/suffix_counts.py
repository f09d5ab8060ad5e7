"""How often each token followed each run of tokens: counts of all n-grams up to a bounded length, as a tree.

The beginning of a text is part of the contexts that reach back to it, so what texts begin with is counted too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Context:
    """A run of tokens, and the runs that are one token longer."""

    followers: "dict[int, Context]" = field(default_factory=dict)
    # Weight of the texts' places where this run ends, and of those where a token follows it.
    weight: float = 0.0
    followed: float = 0.0
    # Number of these places, whatever they weigh.
    places: int = 0


# The contexts that end a text, by length: the empty one first, as far as they are known.
Suffixes = list[Context]


class SuffixCounts:
    """Weighted counts of n-grams; texts can be added and taken out."""

    def __init__(self, longest: int) -> None:
        """Count what follows contexts of up to `longest` tokens, the beginning of a text counted as one."""
        self._longest = longest
        self._root, self._opening = Context(), Context()

    def add(self, text: Sequence[int], weight: float = 1.0) -> None:
        """Count a text."""
        self._count(text, weight, 1)

    def remove(self, text: Sequence[int], weight: float = 1.0) -> None:
        """Take out a text that was added with this weight; runs of which none is left are forgotten."""
        self._count(text, -weight, -1)

    def at_start(self) -> Suffixes:
        """Contexts before the first token of a text."""
        return [self._root, self._opening]

    def behind(self, suffixes: Suffixes, token: int) -> Suffixes:
        """Contexts once a token has followed."""
        longer = [self._root]
        for context in suffixes[: self._longest]:
            following = context.followers.get(token)
            # Where a run is unknown, every run that ends in it is.
            if following is None:
                break
            longer.append(following)
        return longer

    def __len__(self) -> int:
        """Number of contexts, the empty one and the beginning not counted."""
        waiting, count = [self._root, self._opening], -2
        while waiting:
            waiting += waiting.pop().followers.values()
            count += 1
        return count

    def _count(self, text: Sequence[int], weight: float, sign: int) -> None:
        self._count_run(self._opening, text[: self._longest], weight, sign)
        for start in range(len(text)):
            self._count_run(self._root, text[start : start + self._longest + 1], weight, sign)

    @staticmethod
    def _count_run(context: Context, run: Sequence[int], weight: float, sign: int) -> None:
        for token in run:
            context.followed += weight
            following = context.followers.get(token)
            if following is None:
                following = context.followers[token] = Context()
            following.weight += weight
            following.places += sign
            if not following.places:
                del context.followers[token]
                return
            context = following
