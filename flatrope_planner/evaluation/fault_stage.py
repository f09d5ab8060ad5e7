"""The processes of a fault run: sensor players, a witness, and the planner under test."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from flatrope_planner.bringup.configuration import config_file
from flatrope_planner.bringup.description import PLANNER, NodeProcess, demo_environment, image_environment
from flatrope_planner.bringup.processes import ProcessGroup
from flatrope_planner.errors import SetupError
from flatrope_planner.evaluation.drive import Drive
from flatrope_planner.evaluation.order_pipe import OrderPipe
from flatrope_planner.evaluation.planner_starts import PlannerStart, planner_process
from flatrope_planner.evaluation.stale_shared_memory import CrashRemains, StaleSharedMemory
from flatrope_planner.evaluation.witness_events import Matched, Obeyed, PlanSeen, Timeline, from_line

WITNESS = "plan_witness"
# Player -> channels. Each can be killed alone.
PLAYERS = {"clock": ("clock",), "cameras": ("front_wide", "front_tele"), "odometry": ("odometry",)}
POLL_S = 0.02
# Longest waits: for an order to be carried out, for a process to come up and find the others (s).
OBEY_S = 4.0
UP_S = 40.0
SAID_LINES = 20


class FaultStage:
    """Starts everything, passes on orders, and keeps what is reported; leaving it ends everything."""

    def __init__(self, drive: Drive, folder: Path, domain: str) -> None:
        """Prepare in an empty folder."""
        self.drive, self._folder = drive, folder
        drive.save(folder)
        self._environment = {**demo_environment(), "ROS_DOMAIN_ID": domain}
        self._pipes = {name: OrderPipe(folder / f"{name}.orders") for name in (*PLAYERS, PLANNER)}
        self._players = ProcessGroup([self._player(name) for name in PLAYERS], self._environment, self._take)
        self._witness = ProcessGroup([_witness()], self._environment, self._take)
        self._planner: ProcessGroup | None = None
        self._planners = 0
        # When the planner that runs was started.
        self.planner_began_s = 0.0
        self._held, self._remains = ExitStack(), CrashRemains()
        self.timeline = Timeline()
        # What the planner printed last.
        self.said: list[str] = []

    def __enter__(self) -> "FaultStage":
        self._held.enter_context(self._players)
        self._held.enter_context(self._witness)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop_planner()
        finally:
            self._held.close()
            self._remains.remove()
            for pipe in self._pipes.values():
                pipe.close()

    def now_s(self) -> float:
        """The steady clock."""
        return time.monotonic()

    def start_planner(self, start: PlannerStart) -> None:
        """Start another planner in place of the one that runs.

        Raises:
            SetupError: when the system does not allow this start.
        """
        stale = start is PlannerStart.STALE_SHARED_MEMORY
        if stale and self._planner is None:
            self._begin(PlannerStart.PLAIN)
            self.wait(lambda: bool(self.timeline.statuses), UP_S)
        self.stop_planner(crash=stale)
        if stale:
            self._held.enter_context(StaleSharedMemory())
        self._begin(start)

    def _begin(self, start: PlannerStart) -> None:
        self._planners += 1
        folder = self._folder / f"planner-{self._planners}"
        folder.mkdir()
        process = planner_process(start, folder, self._pipes[PLANNER].path)
        self.planner_began_s = self.now_s()
        self._planner = ProcessGroup([process], self._environment, self._take)
        self._planner.__enter__()

    def stop_planner(self, *, crash: bool = False) -> None:
        """End the planner, if one runs."""
        if self._planner is not None:
            if crash and not self.planner_ended():
                self._remains.note(self._planner.pid(PLANNER))
                self._planner.kill(PLANNER)
            self._planner.stop()
        self._planner = None

    def planner_ended(self) -> str:
        """How the planner came to its end, in words; "" while it runs."""
        ended = self._planner.ended() if self._planner is not None else None
        return "" if ended is None else str(ended)

    def wait(self, condition: Callable[[], bool], patience_s: float) -> bool:
        """Wait for a condition, as long as the planner runs; returns whether it came true.

        Raises:
            SetupError: when a player or the witness has ended.
        """
        until_s = self.now_s() + patience_s
        while not condition():
            for group in (self._players, self._witness):
                ended = group.ended()
                if ended is not None:
                    msg = f"the fault run cannot go on: {ended}"
                    raise SetupError(msg)
            if self.now_s() > until_s or self.planner_ended():
                return False
            time.sleep(POLL_S)
        return True

    def plans_since(self, since_s: float) -> list[PlanSeen]:
        """The plans that came after a moment."""
        return [plan for plan in self.timeline.plans if plan.wall_s > since_s]

    def order(self, player: str, order: str) -> float:
        """Give an order; returns when it was carried out, or now when it was not."""
        before = len(self.timeline.obeyed)
        self._pipes[player].send(order)

        def carried_out() -> list[Obeyed]:
            return [each for each in self.timeline.obeyed[before:] if each.order == order]

        self.wait(lambda: bool(carried_out()), OBEY_S)
        return carried_out()[0].wall_s if carried_out() else self.now_s()

    def kill(self, player: str) -> float:
        """End a player as a crash would; returns when."""
        self._remains.note(self._players.pid(player))
        killed_s = self.now_s()
        self._players.kill(player)
        return killed_s

    def restart(self, player: str) -> float:
        """Start a killed player again; returns when its publishers and the planner have found each other."""
        before = len(self.timeline.matched)
        self._players.start(self._player(player))

        def found() -> list[Matched]:
            return [each for each in self.timeline.matched[before:] if each.player == player]

        self.wait(lambda: bool(found()), UP_S)
        return found()[0].wall_s if found() else self.now_s()

    def signal_planner(self, number: signal.Signals) -> float:
        """Send a signal to the planner; returns when."""
        if self._planner is not None and not self.planner_ended():
            os.kill(self._planner.pid(PLANNER), number)
        return self.now_s()

    def player_of(self, channel: str) -> str:
        """Which process plays a channel."""
        return next(player for player, channels in PLAYERS.items() if channel in channels)

    def _player(self, name: str) -> NodeProcess:
        return NodeProcess(
            executable="sensor_player",
            name=name,
            parameter_file=str(config_file("sensor_player.param.yaml")),
            parameters={
                "drive": str(self._folder),
                "orders": str(self._pipes[name].path),
                "plays": ",".join(PLAYERS[name]),
            },
            environment=image_environment(),
        )

    def _take(self, line: str) -> None:
        event = from_line(line)
        if event is not None:
            self.timeline.take(event)
        elif line.startswith(f"[{PLANNER}]"):
            self.said = [*self.said, line][-SAID_LINES:]


def _witness() -> NodeProcess:
    outputs = ("trajectory", "status", "speculation")
    return NodeProcess(
        executable=WITNESS,
        name=WITNESS,
        parameter_file=str(config_file("sensor_player.param.yaml")),
        remappings=tuple((f"~/input/{output}", f"/{PLANNER}/output/{output}") for output in outputs),
    )
