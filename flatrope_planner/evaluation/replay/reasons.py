"""Counts complaints that come again and again with other numbers in them."""

import re

SECONDS = re.compile(r"\d+\.\d+(?= s\b)")


class Reasons:
    """Complaints that differ in seconds only are one reason, told with the range of its seconds."""

    def __init__(self) -> None:
        """None yet."""
        # By what stands around its seconds.
        self._counts: dict[tuple[str, ...], int] = {}
        # The least and the most of each.
        self._ranges: dict[tuple[str, ...], list[tuple[str, str]]] = {}

    def add(self, complaint: str) -> None:
        """Count a complaint."""
        reason, seconds = tuple(SECONDS.split(complaint)), SECONDS.findall(complaint)
        known = self._ranges.get(reason, [(each, each) for each in seconds])
        self._ranges[reason] = [
            (min(low, each, key=float), max(high, each, key=float))
            for (low, high), each in zip(known, seconds, strict=True)
        ]
        self._counts[reason] = self._counts.get(reason, 0) + 1

    @property
    def counts(self) -> dict[str, int]:
        """Reason in words -> how often, in the order of words."""
        return dict(sorted((self._told(reason), count) for reason, count in self._counts.items()))

    @property
    def commonest(self) -> str:
        """The reason that was heard most often, of equal ones the first; empty if there is none."""
        return self._told(max(self._counts, key=self._counts.__getitem__)) if self._counts else ""

    def _told(self, reason: tuple[str, ...]) -> str:
        """For example: "odometry is 0.26 to 4.95 s behind the images; at most 0.25 s are bridged"."""
        first, *others = reason
        ranges = (low if low == high else f"{low} to {high}" for low, high in self._ranges[reason])
        return first + "".join(f"{each}{rest}" for each, rest in zip(ranges, others, strict=True))
