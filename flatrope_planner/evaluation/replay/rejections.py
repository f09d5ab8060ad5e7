"""What was recorded and is of no use: how many messages of how many, and the first complaint of each kind."""

from collections import Counter
from collections.abc import Mapping


class Rejections:
    """Counts messages that cannot be used, and apart from them pictures that cannot be decoded."""

    def __init__(self) -> None:
        """Nothing is refused yet."""
        self._messages: Counter[str] = Counter()
        self._pictures: Counter[str] = Counter()
        self._complaints: dict[tuple[str, bool], str] = {}

    def add(self, topic: str, complaint: str, *, undecodable: bool = False) -> None:
        """Count a message of the topic."""
        (self._pictures if undecodable else self._messages)[topic] += 1
        self._complaints.setdefault((topic, undecodable), complaint)

    @property
    def counts(self) -> Counter[str]:
        """Topic -> messages of no use, for whatever reason."""
        return self._messages + self._pictures

    def lines(self, messages: Mapping[str, int], looked_at: Mapping[str, int]) -> list[str]:
        """A line for each topic and kind.

        Args:
            messages: topic -> messages that were read.
            looked_at: topic -> pictures that a plan asked for: no others are decoded.
        """
        lines = []
        for topic in sorted(self.counts):
            if count := self._messages[topic]:
                first = self._complaints[topic, False]
                lines.append(f"{topic}: {count} of {messages[topic]} messages are of no use; the first: {first}")
            if count := self._pictures[topic]:
                of = f"{looked_at[topic]} pictures looked at ({messages[topic]} were recorded)"
                first = self._complaints[topic, True]
                lines.append(f"{topic}: {count} of {of} cannot be decoded; the first: {first}")
        return lines
