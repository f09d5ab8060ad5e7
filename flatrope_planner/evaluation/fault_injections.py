"""How a fault is made and undone: each kind through what the stage offers."""

import signal
from dataclasses import dataclass
from typing import Protocol


class Stage(Protocol):
    """What injections need of the processes that play and plan. Times are of the steady clock (s)."""

    def now_s(self) -> float:
        """The present moment."""
        ...

    def order(self, player: str, order: str) -> float:
        """Give a process an order; returns when it was carried out."""
        ...

    def kill(self, player: str) -> float:
        """End a player as a crash would; returns when."""
        ...

    def restart(self, player: str) -> float:
        """Start a killed player again; returns when the planner and it have found each other."""
        ...

    def signal_planner(self, number: signal.Signals) -> float:
        """Send a signal to the planner's process; returns when."""
        ...

    def player_of(self, channel: str) -> str:
        """Which process plays a channel."""
        ...


class Injection(Protocol):
    """Something that can be made wrong and right again."""

    def begin(self, stage: Stage) -> float:
        """Make it wrong; returns the moment."""
        ...

    def end(self, stage: Stage) -> float:
        """Make it right; returns the moment."""
        ...


@dataclass(frozen=True)
class SensorFault:
    """Messages of some channels are damaged."""

    channels: tuple[str, ...]
    # As `nodes.message_faults` or `nodes.played_clock` name it.
    fault: str

    def begin(self, stage: Stage) -> float:
        """See `Injection`: the moment of the first channel."""
        return min(stage.order(stage.player_of(channel), f"{channel} {self.fault}") for channel in self.channels)

    def end(self, stage: Stage) -> float:
        """See `Injection`: the moment of the last channel."""
        return max(stage.order(stage.player_of(channel), f"{channel} none") for channel in self.channels)


@dataclass(frozen=True)
class ClockLeap:
    """The clock leaps, and with it every stamp. There is nothing to end."""

    by_s: float

    def begin(self, stage: Stage) -> float:
        """See `Injection`."""
        return stage.order("clock", f"clock leap {self.by_s:g}")

    def end(self, stage: Stage) -> float:
        """See `Injection`."""
        return stage.order("clock", "clock none")


@dataclass(frozen=True)
class KilledPublisher:
    """A player is killed, and started again in the end."""

    player: str

    def begin(self, stage: Stage) -> float:
        """See `Injection`."""
        return stage.kill(self.player)

    def end(self, stage: Stage) -> float:
        """See `Injection`."""
        return stage.restart(self.player)


@dataclass(frozen=True)
class HaltedPlanner:
    """The planner's process gets no time at all."""

    def begin(self, stage: Stage) -> float:
        """See `Injection`."""
        return stage.signal_planner(signal.SIGSTOP)

    def end(self, stage: Stage) -> float:
        """See `Injection`."""
        return stage.signal_planner(signal.SIGCONT)


@dataclass(frozen=True)
class FaultyModel:
    """The planner's core fails."""

    # As `nodes.faulty_planner` names it.
    fault: str

    def begin(self, stage: Stage) -> float:
        """See `Injection`."""
        return stage.order("planner", f"planner {self.fault}")

    def end(self, stage: Stage) -> float:
        """See `Injection`: the moment of the order, as a planner that waits with its next tick would hide the delay."""
        told_s = stage.now_s()
        stage.order("planner", "planner none")
        return told_s


@dataclass(frozen=True)
class BrokenFromTheStart:
    """The planner was started with the fault, which does not end."""

    def begin(self, stage: Stage) -> float:
        """See `Injection`."""
        return stage.now_s()

    def end(self, stage: Stage) -> float:
        """See `Injection`."""
        return stage.now_s()
