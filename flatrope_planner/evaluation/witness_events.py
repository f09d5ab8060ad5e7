"""What the processes of a fault run or soak report: one line of JSON each, and the lists that collect them.

Two clocks in every event: `wall_s` is the machine's steady clock, which all its processes share; stamps are ROS time.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

PREFIX = "event: "
AROUND_S = 0.5
# A leap that was ordered shows within this time (s).
SETTLED_S = 0.2


@dataclass(frozen=True)
class Beat:
    """A message on /clock."""

    wall_s: float
    clock_ns: int


@dataclass(frozen=True)
class PlanSeen:
    """A plan as it was published."""

    wall_s: float
    # Newest time on /clock when it came.
    clock_ns: int
    t0_ns: int
    # PlannedTrajectory.status.
    status: int
    reason: str
    # x, y (m), yaw (rad).
    ego: tuple[float, float, float]
    # Each: seconds after t0, x, y (m), yaw (rad), speed (m/s).
    points: tuple[tuple[float, float, float, float, float], ...]


@dataclass(frozen=True)
class StatusSeen:
    """One status message: every task's level and words, and its values that are words."""

    wall_s: float
    # Task -> level as in diagnostic_msgs.
    levels: Mapping[str, int]
    # Task, or "task.value" -> words.
    words: Mapping[str, str]


@dataclass(frozen=True)
class TickSeen:
    """The statistics of a tick."""

    wall_s: float
    t0_ns: int
    total_ms: float
    age_ms: float
    ticks: int
    dropped_ticks: int


@dataclass(frozen=True)
class Garbage:
    """A picture with this stamp was sent that nobody may plan with."""

    stamp_ns: int


@dataclass(frozen=True)
class Obeyed:
    """An order was carried out."""

    wall_s: float
    order: str


@dataclass(frozen=True)
class Matched:
    """All publishers of a player have found the planner."""

    wall_s: float
    player: str


@dataclass(frozen=True)
class Outcome:
    """How a scene of the simulator ended."""

    wall_s: float
    # The JSON that the simulator publishes.
    text: str


Event = Beat | PlanSeen | StatusSeen | TickSeen | Garbage | Obeyed | Matched | Outcome
_KINDS: dict[str, type[Event]] = {
    kind.__name__: kind for kind in (Beat, PlanSeen, StatusSeen, TickSeen, Garbage, Obeyed, Matched, Outcome)
}


def to_line(event: Event) -> str:
    """The event as a line for `from_line`."""
    return PREFIX + json.dumps({"kind": type(event).__name__, **asdict(event)})


def from_line(line: str) -> Event | None:
    """The event in a line of output; None if it holds none."""
    _, found, text = line.partition(PREFIX)
    if not found:
        return None
    content: dict[str, Any] = {name: _as_tuples(value) for name, value in json.loads(text).items()}
    return _KINDS[content.pop("kind")](**content)


def _as_tuples(value: Any) -> Any:
    """JSON knows only lists."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


@dataclass
class Timeline:
    """All events so far, by kind, in the order of their coming; they come from other threads."""

    beats: list[Beat] = field(default_factory=list)
    plans: list[PlanSeen] = field(default_factory=list)
    statuses: list[StatusSeen] = field(default_factory=list)
    ticks: list[TickSeen] = field(default_factory=list)
    # Since the clock last went back.
    garbage_ns: set[int] = field(default_factory=set)
    obeyed: list[Obeyed] = field(default_factory=list)
    matched: list[Matched] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)

    def take(self, event: Event) -> None:
        """Add an event."""
        match event:
            case Beat():
                if self.beats and event.clock_ns < self.beats[-1].clock_ns:
                    # Stamps of before come again.
                    self.garbage_ns.clear()
                self.beats.append(event)
            case PlanSeen():
                self.plans.append(event)
            case StatusSeen():
                self.statuses.append(event)
            case TickSeen():
                self.ticks.append(event)
            case Garbage():
                self.garbage_ns.add(event.stamp_ns)
            case Obeyed():
                self.obeyed.append(event)
            case Matched():
                self.matched.append(event)
            case Outcome():
                self.outcomes.append(event)

    def clock_at(self, wall_s: float) -> int:
        """The time on /clock (ns) at a moment; 0 before the first message."""
        for beat in reversed(self.beats):
            if beat.wall_s <= wall_s:
                return beat.clock_ns
        return 0

    def clock_from(self, wall_s: float) -> int:
        """The time on /clock (ns) as it goes on from a moment, also where it leaps back just then."""
        coming = [beat.clock_ns for beat in self.beats if wall_s < beat.wall_s <= wall_s + SETTLED_S]
        return min([self.clock_at(wall_s), *coming])

    def beats_around(self, wall_s: float) -> list[Beat]:
        """The messages on /clock of the half second before and after a moment."""
        return [beat for beat in self.beats if abs(beat.wall_s - wall_s) <= AROUND_S]
