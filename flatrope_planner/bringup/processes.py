"""Starts a description as plain processes and ends them together: `flatrope up` and `flatrope demo`."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Thread
from types import FrameType, TracebackType

from flatrope_planner.bringup.description import NodeProcess
from flatrope_planner.interruption import unless_ignored

# Time for a node to end by itself after SIGINT; after it, SIGKILL.
GRACE_S = 4.0
POLL_S = 0.05
# Time for the rest of an ended process's output to come through.
FAREWELL_S = 1.0

Write = Callable[[str], None]


@dataclass(frozen=True)
class Ended:
    """A process that has come to its end."""

    name: str
    exit_code: int
    # The last line it printed.
    last_words: str = ""

    def __str__(self) -> str:
        # Whom a signal ends says nothing of it: its last words are of something else.
        words = f": {self.last_words}" if self.last_words and self.exit_code >= 0 else ""
        return f"the {self.name} {self.how}{words}"

    @property
    def how(self) -> str:
        """By which signal, or with which exit code."""
        if self.exit_code < 0:
            return f"was ended by signal {-self.exit_code} ({_signal_name(-self.exit_code)})"
        return f"ended with exit code {self.exit_code}"


class ProcessGroup:
    """Runs nodes, passes on what they print, and leaves nothing running."""

    def __init__(self, processes: Sequence[NodeProcess], environment: Mapping[str, str], write: Write = print) -> None:
        """Prepare; entering the context starts. `write` gets each line of output, from several threads.

        Args:
            processes: what to run.
            environment: set for all of them, beyond the present one.
            write: takes one line without its end.
        """
        self._processes, self._environment, self._write = processes, dict(environment), write
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._forwarders: dict[str, Thread] = {}
        self._last_words: dict[str, str] = {}
        # Those that failed as they were asked to end.
        self.failures: list[Ended] = []

    def __enter__(self) -> "ProcessGroup":
        try:
            for process in self._processes:
                self.start(process)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def ended(self) -> Ended | None:
        """The first process found to have ended, None while all run."""
        for name, process in self._running.items():
            code = process.poll()
            if code is not None:
                # What it said last may still be under way.
                self._forwarders[name].join(FAREWELL_S)
                return Ended(name, code, self._last_words.get(name, ""))
        return None

    def stop(self, but: str = "") -> None:
        """Ask all to end, except the one of this name, and end those that do not."""
        running = {name: process for name, process in self._running.items() if name != but}
        for process in running.values():
            _signal_group(process, signal.SIGINT)
        until_s = time.monotonic() + GRACE_S
        for name, process in running.items():
            try:
                process.wait(max(0.0, until_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._write(f"[{name}] does not end by itself: killed")
            # A node's own children, if it has any, go with it.
            _signal_group(process, signal.SIGKILL)
            process.wait()
        for name, process in running.items():
            self._forwarders.pop(name).join(FAREWELL_S)
            del self._running[name]
            if process.returncode:
                self.failures.append(Ended(name, process.returncode, self._last_words.get(name, "")))

    def pid(self, name: str) -> int:
        """The process id of a node of that name."""
        return self._running[name].pid

    def kill(self, name: str) -> None:
        """End a node at once, as a crash would."""
        process = self._running.pop(name)
        _signal_group(process, signal.SIGKILL)
        process.wait()
        self._forwarders.pop(name).join(FAREWELL_S)

    def start(self, process: NodeProcess) -> None:
        """Start one more node, or one again that was killed."""
        # A session of its own: Ctrl-C in the terminal reaches us alone, and we decide how the nodes end.
        child = subprocess.Popen(
            command_line(process),
            env={**os.environ, **self._environment, **process.environment, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._running[process.name] = child
        forwarder = Thread(target=self._forward, args=(process.name, child), daemon=True)
        forwarder.start()
        self._forwarders[process.name] = forwarder

    def _forward(self, name: str, child: "subprocess.Popen[str]") -> None:
        if child.stdout is not None:
            with child.stdout as lines:
                for line in lines:
                    self._last_words[name] = line.strip() or self._last_words.get(name, "")
                    self._write(f"[{name}] {line.rstrip()}")


def command_line(process: NodeProcess) -> list[str]:
    """The command that runs a node with this very Python."""
    command = [*process.prefix, sys.executable, "-m", "flatrope_planner.nodes", process.executable, "--ros-args"]
    command += ["-r", f"__node:={process.name}"]
    if process.namespace:
        command += ["-r", f"__ns:={process.namespace}"]
    command += ["--params-file", process.parameter_file]
    for name, value in process.parameters.items():
        command += ["-p", f"{name}:={_parameter_text(value)}"]
    for source, target in process.remappings:
        command += ["-r", f"{source}:={target}"]
    return command


def run(
    processes: Sequence[NodeProcess], environment: Mapping[str, str], write: Write = print, *, to_the_end: bool = False
) -> Ended | None:
    """Run until asked to end, or until one process ends, which ends all; returns that process.

    Args:
        processes: what to run.
        environment: set for all of them, beyond the present one.
        write: takes one line of output without its end.
        to_the_end: a process that fails as it is asked to end is returned, too.
    """
    asked = Event()

    def ask(_signal: int, _frame: FrameType | None) -> None:
        asked.set()

    before = {number: signal.signal(number, ask) for number in unless_ignored()}
    try:
        with ProcessGroup(processes, environment, write) as group:
            while not asked.wait(POLL_S):
                ended = group.ended()
                if ended is not None:
                    write(f"the {ended.name} {ended.how}: ending all")
                    return ended
        return next(iter(group.failures), None) if to_the_end else None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _parameter_text(value: bool | int | float | str) -> str:
    """The value as YAML that keeps its type."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return repr(value)
    # Two quotes stand for one within quotes.
    return "'" + value.replace("'", "''") + "'"


def _signal_name(number: int) -> str:
    # Those for real time have no names.
    return signal.Signals(number).name if number in set(signal.Signals) else "for real time"


def _signal_group(process: "subprocess.Popen[str]", number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
