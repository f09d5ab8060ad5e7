"""Seconds into a recording, told by the stamps of what was recorded, and when which of its sources was silent.

The clock that recorded need not be the one that stamped: simulators stamp with a time of their own, which may begin at
zero, run slower or faster, and begin anew in the middle. Only differences of stamps count; the times of recording tell
where a drive begins.
"""

from collections import Counter
from dataclasses import dataclass

from flatrope_planner.domain import ns_to_seconds, seconds_to_ns
from flatrope_planner.planning.stream import RESTART_SAMPLES

# Nothing from a topic for longer is silence; nothing at all for longer is a pause of the recording.
SILENCE_S, PAUSE_S = 0.5, 1.0
# What is silent, where everything is.
EVERYTHING = ""
# Stamps may leap this far, and in addition so many times as far as the recorder's clock: else they lead astray.
MOST_LEAP_S, MOST_SPEED = 10.0, 20


@dataclass(frozen=True)
class Silence:
    """A stretch without anything from a topic, or from any (`EVERYTHING`)."""

    topic: str
    since_s: float
    until_s: float


class RecordedTime:
    """Hears of every input; the odometry leads."""

    def __init__(self, start_ns: int) -> None:
        """The first message was recorded at `start_ns`, by the recorder's clock."""
        self._start_ns = start_ns
        # To be added to a stamp for the time since the start (ns); None: no stamp of this drive is known.
        self._offset_ns: int | None = None
        # The same for the drive before, which goes on if it was only pictures that began anew.
        self._former_ns = 0
        self._is_first = True
        # The odometry's last stamp, when it was recorded, and how many have led astray since.
        self._last_ns, self._last_log_ns, self._astray = 0, start_ns, 0
        # Topic -> the latest time heard (ns since the start).
        self._newest_ns: dict[str, int] = {}
        self.silences: list[Silence] = []
        # Topic -> how often it was heard, and the first time (ns since the start).
        self._heard: Counter[str] = Counter()
        self._first_ns: dict[str, int] = {}

    @property
    def end_s(self) -> float:
        """The latest time heard of."""
        return ns_to_seconds(self._newest_ns.get(EVERYTHING, 0))

    def into_s(self, stamp_ns: int) -> float:
        """A stamp of the present drive as seconds into the recording."""
        offset_ns = self._former_ns if self._offset_ns is None else self._offset_ns
        return ns_to_seconds(stamp_ns + offset_ns)

    def begin_anew(self) -> None:
        """The stamps that follow are of another drive."""
        if self._offset_ns is not None:
            self._former_ns, self._offset_ns = self._offset_ns, None

    def hear_odometry(self, topic: str, stamp_ns: int, log_ns: int) -> None:
        """A pose with this stamp was recorded at this time."""
        if not self._is_plausible(stamp_ns, log_ns):
            self._astray += 1
            if self._astray < RESTART_SAMPLES:
                return
            self.begin_anew()
        if self._offset_ns is None:
            self._offset_ns = self._begin(log_ns) - stamp_ns
        self._last_ns, self._last_log_ns, self._astray = stamp_ns, log_ns, 0
        self._note(topic, stamp_ns)

    def hear_picture(self, topic: str, stamp_ns: int, log_ns: int) -> None:
        """A picture with this stamp was recorded at this time."""
        self._hear_first(log_ns)
        if self._is_first:
            # What its stamp means is not known yet, but there is something.
            self._add_silence(EVERYTHING, log_ns - self._start_ns)
        elif self._offset_ns is not None and self._is_plausible(stamp_ns, log_ns):
            self._note(topic, stamp_ns)

    def spacing_s(self, topic: str) -> float:
        """The mean time between two messages of a topic; 0 if there are none."""
        gaps = self._heard[topic] - 1
        return ns_to_seconds(self._newest_ns[topic] - self._first_ns[topic]) / gaps if gaps > 0 else 0.0

    def close(self) -> None:
        """Nothing follows."""
        end_ns = self._newest_ns.get(EVERYTHING, 0)
        for topic in list(self._newest_ns):
            self._add_silence(topic, end_ns)

    def _is_plausible(self, stamp_ns: int, log_ns: int) -> bool:
        if self._offset_ns is None:
            return True
        most_ns = seconds_to_ns(MOST_LEAP_S)
        passed_ns = max(log_ns - self._last_log_ns, 0)
        return -most_ns <= stamp_ns - self._last_ns <= most_ns + MOST_SPEED * passed_ns

    def _begin(self, log_ns: int) -> int:
        """Where a drive begins (ns since the start) whose first pose was recorded at this time."""
        if self._is_first:
            self._is_first = False
            self._hear_first(log_ns)
            return log_ns - self._start_ns
        # As long after the last drive as the recorder's clock says.
        return self._newest_ns[EVERYTHING] + max(log_ns - self._last_log_ns, 0)

    def _hear_first(self, log_ns: int) -> None:
        """Where nothing of use was recorded yet, nothing is missing."""
        if not self._newest_ns:
            self._newest_ns[EVERYTHING] = 0
            self._add_silence(EVERYTHING, log_ns - self._start_ns)

    def _note(self, topic: str, stamp_ns: int) -> None:
        now_ns = stamp_ns + (self._offset_ns or 0)
        self._heard[topic] += 1
        self._first_ns.setdefault(topic, now_ns)
        for each in (topic, EVERYTHING):
            self._add_silence(each, now_ns)

    def _add_silence(self, topic: str, now_ns: int) -> None:
        before_ns = self._newest_ns.get(topic, now_ns)
        if now_ns - before_ns > seconds_to_ns(SILENCE_S if topic else PAUSE_S):
            self.silences.append(Silence(topic, ns_to_seconds(before_ns), ns_to_seconds(now_ns)))
        self._newest_ns[topic] = max(before_ns, now_ns)
