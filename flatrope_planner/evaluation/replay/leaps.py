"""Stamps that leap ahead: time has leapt, or a stamp is wrong. Those that follow tell.

Taken at its word, one stamp from the far future would make all that follow look late, and so begin a second drive.
"""

from collections.abc import Iterable

from flatrope_planner.domain import ns_to_seconds, seconds_to_ns
from flatrope_planner.evaluation.replay.bag_source import RawMessage, header_stamp_ns
from flatrope_planner.evaluation.replay.rejections import Rejections
from flatrope_planner.planning.stream import LATE_S, RESTART_SAMPLES

LATE_NS = seconds_to_ns(LATE_S)
# How much faster than the recorder's clock stamps may run where messages are further apart than that.
MOST_SPEED = 4
# A leap to a single stamp is believed, too, once so many messages have it: a clock that has stopped.
MOST_HELD = 30


class Leaps:
    """Hears of every message; of some topics it holds those that leap ahead."""

    def __init__(self, topics: Iterable[str], rejections: Rejections) -> None:
        """Watch over topics whose messages begin with a header; tell `rejections` of stamps that others contradict."""
        self._sources = {topic: _Source() for topic in topics}
        self._rejections = rejections

    def begin_anew(self) -> None:
        """The stamps that follow are of another time."""
        for source in self._sources.values():
            source.newest_ns = None

    def settled(self, message: RawMessage) -> list[RawMessage]:
        """The messages that count now, in the order in which they came: none while it is not clear which do."""
        stamp_ns = header_stamp_ns(message.cdr) or 0
        source = self._sources.get(message.topic)
        if source is None or stamp_ns <= 0:
            return [message]
        for ahead_ns in source.contradicted(stamp_ns):
            complaint = f"stamp lies {ns_to_seconds(ahead_ns):.2f} s ahead of one that came later"
            self._rejections.add(message.topic, complaint)
        return source.settled(stamp_ns, message)

    def rest(self) -> list[RawMessage]:
        """What is held; nothing contradicts it any more."""
        return [message for source in self._sources.values() for message in source.rest()]


class _Source:
    def __init__(self) -> None:
        # Of what counts: the newest stamp, None before the first, and when the last message was recorded (ns).
        self.newest_ns: int | None = None
        self._log_ns = 0
        # What is held, with its stamp.
        self._held: list[tuple[int, RawMessage]] = []

    def contradicted(self, stamp_ns: int) -> list[int]:
        """How far ahead of this stamp those are that are held and further ahead than it can be late; forgets them."""
        ahead_ns = [held_ns - stamp_ns for held_ns, _ in self._held]
        self._held = [held for held, each_ns in zip(self._held, ahead_ns, strict=True) if each_ns <= LATE_NS]
        return [each_ns for each_ns in ahead_ns if each_ns > LATE_NS]

    def settled(self, stamp_ns: int, message: RawMessage) -> list[RawMessage]:
        """What counts now. A leap is believed if as many stamps agree on it as on one back (`RESTART_SAMPLES`)."""
        self._held.append((stamp_ns, message))
        agreeing = {held_ns for held_ns, _ in self._held}
        is_settled = len(agreeing) >= RESTART_SAMPLES or len(self._held) >= MOST_HELD
        if not is_settled and self._is_leap(stamp_ns, message.log_ns):
            return []
        self.newest_ns, self._log_ns = max(*agreeing, self.newest_ns or 0), message.log_ns
        return self.rest()

    def rest(self) -> list[RawMessage]:
        held = [message for _, message in self._held]
        self._held.clear()
        return held

    def _is_leap(self, stamp_ns: int, log_ns: int) -> bool:
        """Whether a stamp is further ahead than the time between two recordings explains, or nothing came before it."""
        if self.newest_ns is None:
            return True
        return stamp_ns - self.newest_ns > LATE_NS + MOST_SPEED * max(log_ns - self._log_ns, 0)
