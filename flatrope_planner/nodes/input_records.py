"""Who delivers and who does not: a record of every input, and the status of them all."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from flatrope_planner.errors import FlatropeError, reason
from flatrope_planner.nodes.inputs import InputState
from flatrope_planner.nodes.monitoring import Level, TaskReport
from flatrope_planner.nodes.picture_losses import PictureLosses
from flatrope_planner.nodes.publishers import Publishers

# Arrivals that a rate is taken from.
RATE_ARRIVALS = 32
# Messages after a longer silence have begun anew (s, steady).
RESUMED_S = 1.0
# How long a change that is over is still reported (s, steady).
CHANGE_SHOWN_S = 10.0


@dataclass
class InputRecord:
    """What has come on one topic. Times are of the steady clock (s)."""

    topic: str
    # Whether nothing is amiss while nobody publishes there.
    optional: bool = False
    received: int = 0
    rejected: int = 0
    rejection: str = ""
    rejected_s: float = 0.0
    last_s: float | None = None
    # When messages began to come, without a longer silence since then.
    since_s: float | None = None
    # When something came that could be used.
    used_s: float | None = None
    frame_id: str | None = None
    frame_changes: int = 0
    # What is odd about the newest message that could be used, in words; "" for nothing.
    oddity: str = ""
    # Of a camera: whether its pictures arrive.
    losses: PictureLosses | None = None
    _change: str = ""
    _changed_s: float = 0.0
    _arrivals_s: deque[float] = field(default_factory=lambda: deque(maxlen=RATE_ARRIVALS))

    def take(self, now_s: float, use: Callable[[], None]) -> str | None:
        """Note a message and use it; why that could not be done, None if it could.

        Never raises: an exception that leaves a callback ends the node.
        """
        self.received += 1
        if self.last_s is None or now_s - self.last_s > RESUMED_S:
            self.since_s = now_s
        self.last_s = now_s
        self._arrivals_s.append(now_s)
        try:
            use()
        except FlatropeError as err:
            self.rejection = str(err)
        except Exception as err:
            # Nobody foresaw this one; the next message may be better.
            self.rejection = f"{type(err).__name__}: {reason(err)}"
        else:
            self.used_s = now_s
            return None
        self.rejected += 1
        self.rejected_s = now_s
        return self.rejection

    def changes_frame(self, now_s: float, frame_id: str) -> bool:
        """Note the frame a message is in; whether the one before was in another."""
        before, self.frame_id = self.frame_id, frame_id
        if before is None or before == frame_id:
            return False
        self.frame_changes += 1
        self._change, self._changed_s = f"frame_id of {self.topic} was {before!r} and is {frame_id!r}", now_s
        return True

    @property
    def is_small(self) -> bool:
        """Whether it is no picture, and has to come."""
        return self.losses is None and not self.optional

    def comes(self, now_s: float, timeout_s: float) -> bool:
        """Whether messages come, be they of use or not."""
        return self.last_s is not None and now_s - self.last_s <= timeout_s

    def comes_steadily(self, now_s: float, timeout_s: float) -> bool:
        """Whether they have come for `timeout_s`, at the least."""
        return self.comes(now_s, timeout_s) and self.since_s is not None and now_s - self.since_s >= timeout_s

    def rate_hz(self, now_s: float, timeout_s: float) -> float:
        """Messages a second, 0 when none has come for `timeout_s`, or too few to tell."""
        if not self._arrivals_s or now_s - self._arrivals_s[-1] > timeout_s:
            return 0.0
        span_s = self._arrivals_s[-1] - self._arrivals_s[0]
        return (len(self._arrivals_s) - 1) / span_s if span_s > 0.0 else 0.0

    def complaint(self, now_s: float, timeout_s: float, publishers: Publishers, *, paused: bool = False) -> str | None:
        """What is wrong with the topic, in words; None if it delivers or need not.

        `paused`: whether nothing else comes from the sources either, so that nothing of this topic need be lost.
        """
        if self.optional or (self.used_s is not None and now_s - self.used_s <= timeout_s):
            return None
        if self.comes(now_s, timeout_s):
            return f"nothing on {self.topic} can be used: {self.rejection}"
        if (nobody := publishers.none_heard(self.topic)) is not None:
            return nobody
        likely = self.losses.silence() if self.losses is not None and not paused else ""
        silent = f"though {', '.join(publishers.heard)} publishes there{likely and f', {likely}'}"
        if self.last_s is None:
            return f"nothing has come on {self.topic}, {silent}"
        return f"nothing on {self.topic} for {now_s - self.last_s:.1f} s, {silent}"

    def warnings(self, now_s: float, publishers: Publishers) -> list[str]:
        """What is odd about a topic without a complaint, in words."""
        warnings = [f"{self.topic}: {unheard}" for unheard in publishers.unheard]
        if len(publishers.heard) > 1:
            warnings.append(f"{self.topic} has several publishers: {', '.join(publishers.heard)}")
        if self._change and now_s - self._changed_s <= CHANGE_SHOWN_S:
            warnings.append(self._change)
        lost = self.losses.warning() if self.losses is not None else ""
        warnings += [f"{self.topic}: {words}" for words in (self.oddity, lost) if words]
        return warnings

    def values(self, now_s: float, timeout_s: float, publishers: Publishers) -> dict[str, str]:
        """The record in figures."""
        values = {
            "topic": self.topic,
            "publishers": str(publishers.count),
            "rate_hz": f"{self.rate_hz(now_s, timeout_s):.1f}",
            "received": str(self.received),
            "rejected": str(self.rejected),
        }
        if self.rejection:
            # It stays when all is well again: with its age nobody takes it for news.
            values["rejection"] = f"{self.rejection} ({now_s - self.rejected_s:.0f} s ago)"
        if self.frame_id is not None:
            values |= {"frame_id": self.frame_id, "frame_changes": str(self.frame_changes)}
        return values


@dataclass
class InputRecords:
    """The records of all inputs by name."""

    timeout_s: float
    records: dict[str, InputRecord] = field(default_factory=dict)

    def report(
        self, now_s: float, publishers: Mapping[str, Publishers], state: InputState, signs: Sequence[str] = ()
    ) -> TaskReport:
        """The state of the inputs; the worst thing first (levels: docs/topics.md), `signs` of mistaken cameras last."""
        complaints, warnings, values = list[str](), list[str](), dict[str, str]()
        paused = self._paused(now_s, publishers)
        for name, record in self.records.items():
            complaint = record.complaint(now_s, self.timeout_s, publishers[name], paused=paused)
            if complaint is None:
                warnings += record.warnings(now_s, publishers[name])
            else:
                complaints.append(complaint)
            for key, value in record.values(now_s, self.timeout_s, publishers[name]).items():
                values[f"{name}.{key}"] = value
            if name in state.ages_s:
                values[f"{name}.age_s"] = f"{state.ages_s[name]:.3f}"
        stale = state.stale if paused else self._with_losses(state.stale)
        level, message = _worst(complaints, [*warnings, *signs], replace(state, stale=stale))
        return TaskReport("inputs", level, message, values)

    def _paused(self, now_s: float, publishers: Mapping[str, Publishers]) -> bool:
        """Whether of what is small, and published, nothing comes: it has not been sent yet, or no longer is.

        Nor is it told for as long as a picture may be silent after something small has begun to come.
        """
        small = [each for name, each in self.records.items() if each.is_small and publishers[name].heard]
        return bool(small) and not any(each.comes_steadily(now_s, self.timeout_s) for each in small)

    def _with_losses(self, stale: str | None) -> str | None:
        """Which inputs are too old, with what may keep the pictures of a camera among them from coming."""
        if stale is None:
            return None
        old = {name: record.losses for name, record in self.records.items() if name in stale}
        causes = {losses.silence() for losses in old.values() if losses is not None}
        return "; ".join([stale, *sorted(filter(None, causes))])


def _worst(complaints: list[str], warnings: list[str], state: InputState) -> tuple[Level, str]:
    lag = "" if state.lag is None else str(state.lag)
    if complaints:
        return Level.ERROR, "; ".join(complaints)
    if state.stale is not None:
        return Level.STALE, "; ".join(filter(None, (state.stale, lag)))
    told = [state.missing or "", *warnings, lag]
    if any(told):
        return Level.WARN, "; ".join(filter(None, told))
    return Level.OK, "all inputs arrive"
