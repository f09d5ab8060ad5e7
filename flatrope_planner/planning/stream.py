"""Samples of one source, in the order of their time stamps whatever the order of their arrival."""

from bisect import bisect_left
from typing import Generic, Protocol, TypeVar

from flatrope_planner.domain import ns_to_seconds, seconds_to_ns
from flatrope_planner.errors import InputError

# A sample no further behind the newest one is merely late and finds its place.
LATE_S = 0.6
# So many in a row that are further behind, each newer than the one before: the source began anew, as a bag that loops
# or a simulator that was restarted. A single one is a stray.
RESTART_SAMPLES = 3


class Stamped(Protocol):
    """Anything with a time of its own."""

    @property
    def stamp_ns(self) -> int:
        """When it was measured (ns)."""
        ...


T = TypeVar("T", bound=Stamped)


class Stream(Generic[T]):
    """The newest `span_s` seconds of samples, and at most `capacity` of them, spread over the span."""

    def __init__(self, span_s: float, capacity: int) -> None:
        """An empty stream."""
        self._span_ns, self._capacity = seconds_to_ns(span_s), capacity
        self._spacing_ns = self._span_ns // capacity
        self.stamps_ns: list[int] = []
        self.samples: list[T] = []
        # Samples far behind the newest one, held until it is clear whether the source began anew.
        self._behind: list[T] = []

    def take(self, sample: T) -> bool:
        """Take in what the source sent; whether it began anew, so that everything before is forgotten.

        Raises:
            InputError: if the stamp came before, or lies far behind the newest one and nothing says yet that the source
                began anew.
        """
        stamp_ns = sample.stamp_ns
        if self.stamps_ns and stamp_ns < self.stamps_ns[-1] - seconds_to_ns(LATE_S):
            return self._take_behind(sample)
        index = bisect_left(self.stamps_ns, stamp_ns)
        if index < len(self.stamps_ns) and self.stamps_ns[index] == stamp_ns:
            msg = f"stamp {ns_to_seconds(stamp_ns):.3f} s has come before"
            raise InputError(msg)
        if index == len(self.stamps_ns):
            self._behind.clear()
        self.add(sample)
        return False

    def _take_behind(self, sample: T) -> bool:
        if self._behind and sample.stamp_ns <= self._behind[-1].stamp_ns:
            self._behind.clear()
        self._behind.append(sample)
        if len(self._behind) < RESTART_SAMPLES:
            msg = f"stamp lies {ns_to_seconds(self.stamps_ns[-1] - sample.stamp_ns):.2f} s behind the newest one"
            raise InputError(msg)
        self.begin_anew()
        return True

    def begin_anew(self) -> None:
        """Forget everything but the samples that were held for being far behind."""
        held, self._behind = self._behind, []
        self.drop_first(len(self.samples))
        for sample in held:
            self.add(sample)

    def add(self, sample: T) -> None:
        """Put a sample in its place; of two with the same stamp the first one stays."""
        index = bisect_left(self.stamps_ns, sample.stamp_ns)
        if index < len(self.stamps_ns) and self.stamps_ns[index] == sample.stamp_ns:
            return
        if index == len(self.stamps_ns):
            self._thin_out()
            index = len(self.stamps_ns)
        self.stamps_ns.insert(index, sample.stamp_ns)
        self.samples.insert(index, sample)
        too_old = bisect_left(self.stamps_ns, self.stamps_ns[-1] - self._span_ns)
        self.drop_first(max(too_old, len(self.stamps_ns) - self._capacity))

    def _thin_out(self) -> None:
        """Before a new newest sample comes: the last one goes if it is closer to the one before than needed.

        So a source of any rate fills the span, not just its end, and nothing but the ends of the lists is touched.
        """
        if len(self.stamps_ns) > 1 and self.stamps_ns[-1] - self.stamps_ns[-2] < self._spacing_ns:
            del self.stamps_ns[-1], self.samples[-1]

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
