"""How often each token followed each context, over some texts."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from flatrope_planner.speculation.contexts import Key, Text, contexts


@dataclass(slots=True)
class Followers:
    """What followed a context: tokens with the weight of the texts in which they did, and the weight of all."""

    weights: dict[int, float] = field(default_factory=dict)
    total: float = 0.0


class ContextCounts:
    """Weighted counts; texts can be added."""

    def __init__(self) -> None:
        """Count nothing yet."""
        self._followers: dict[Key, Followers] = {}
        self._closing: set[int] = set()

    def add(self, text: Text, weight: float = 1.0) -> None:
        """Count a text."""
        for place, token in enumerate(text):
            for key in contexts(text[:place]):
                followers = self._followers.get(key)
                if followers is None:
                    followers = self._followers[key] = Followers()
                followers.weights[token] = followers.weights.get(token, 0.0) + weight
                followers.total += weight
        self._closing.update(text[-1:])

    def behind(self, text: Text) -> Iterator[tuple[Key, Followers]]:
        """The contexts of a text's next token that are known, and what followed them."""
        for key in contexts(text):
            followers = self._followers.get(key)
            if followers is not None:
                yield key, followers

    def closes(self, text: Text) -> bool:
        """Whether some text ended with this one's last token."""
        return bool(text) and text[-1] in self._closing

    def goes_on_behind(self, text: Text) -> bool:
        """Whether anything ever followed this text's last token."""
        return (1, *text[-1:]) in self._followers

    def __len__(self) -> int:
        """Number of contexts that are known."""
        return len(self._followers)
