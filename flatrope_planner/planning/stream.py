"""Samples of one source, in the order of their time stamps whatever the order of their arrival."""

from bisect import bisect_left
from typing import Generic, Protocol, TypeVar

from flatrope_planner.domain import seconds_to_ns

# A stamp this far behind the newest means that the source began anew: a bag that loops, a simulator that was restarted.
RESTART_AFTER_S = 2.0


class Stamped(Protocol):
    """Anything with a time of its own."""

    @property
    def stamp_ns(self) -> int:
        """When it was measured (ns)."""
        ...


T = TypeVar("T", bound=Stamped)


class Stream(Generic[T]):
    """The newest `span_s` seconds of samples, and at most `capacity` of them."""

    def __init__(self, span_s: float, capacity: int) -> None:
        """An empty stream."""
        self._span_ns, self._capacity = seconds_to_ns(span_s), capacity
        self.stamps_ns: list[int] = []
        self.samples: list[T] = []

    def began_anew(self, stamp_ns: int) -> bool:
        """Whether a sample of this stamp can only come from a restarted source."""
        return bool(self.stamps_ns) and stamp_ns < self.stamps_ns[-1] - seconds_to_ns(RESTART_AFTER_S)

    def add(self, sample: T) -> None:
        """Put a sample in its place; of two with the same stamp the first one stays."""
        index = bisect_left(self.stamps_ns, sample.stamp_ns)
        if index < len(self.stamps_ns) and self.stamps_ns[index] == sample.stamp_ns:
            return
        self.stamps_ns.insert(index, sample.stamp_ns)
        self.samples.insert(index, sample)
        too_old = bisect_left(self.stamps_ns, self.stamps_ns[-1] - self._span_ns)
        self.drop_first(max(too_old, len(self.stamps_ns) - self._capacity))

    def drop_first(self, count: int) -> None:
        """Forget the oldest ones."""
        del self.stamps_ns[:count], self.samples[:count]

    def nearest(self, stamp_ns: int) -> T | None:
        """The sample closest in time, the older one of two equally close; None in an empty stream."""
        if not self.samples:
            return None
        index = bisect_left(self.stamps_ns, stamp_ns)
        around = range(max(index - 1, 0), min(index + 1, len(self.samples)))
        return self.samples[min(around, key=lambda i: abs(self.stamps_ns[i] - stamp_ns))]
