"""The whole check-up: what is quick at once, what takes time in processes beside it; a line for each finding."""

import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, TextIO

from flatrope_planner.doctor.finding import Finding, Mark, worst
from flatrope_planner.doctor.installation import check_installation, check_messages
from flatrope_planner.doctor.loopback import check_loopback, start_loopback
from flatrope_planner.doctor.middleware import check_discovery, check_profile, check_ros
from flatrope_planner.doctor.model import NANO, check_memory, check_model, start_model
from flatrope_planner.doctor.packages import check_packages, check_python
from flatrope_planner.doctor.planner_inputs import check_planner, start_planner_probe
from flatrope_planner.doctor.shared_memory import check_leftovers, check_space
from flatrope_planner.doctor.storage import check_storage
from flatrope_planner.doctor.target_weights import check_target_weights
from flatrope_planner.doctor.weights import check_weights
from flatrope_planner.errors import reason

# Of the result's form, for programs that read it.
FORMAT = 1
EXIT_HEALTHY, EXIT_FAULTY = 0, 1
NAME_WIDTH = 15


@dataclass(frozen=True)
class Step:
    """One check and what is said while it works."""

    name: str
    check: Callable[[], Iterable[Finding]]


QUICK = (
    Step("python", check_python),
    Step("packages", check_packages),
    Step("package", check_installation),
    Step("messages", check_messages),
    Step("ros", check_ros),
    Step("discovery", check_discovery),
    Step("profile", check_profile),
    Step("shared memory", check_space),
    Step("leftovers", check_leftovers),
    Step("storage", check_storage),
)


def check_up(planner: str | None, target: str = NANO, stream: TextIO | None = None) -> dict[str, Any]:
    """Check everything, say what was found, and return it.

    Args:
        planner: name of a running planner that is to be looked at; None to look whether the usual one runs.
        target: whose weights are to be looked at, and who is to make a plan.
        stream: for the report; None for the standard output.
    """
    started_s, report = time.monotonic(), Report(stream or sys.stdout)
    with ExitStack() as running:
        loopback = running.enter_context(start_loopback())
        asked = running.enter_context(start_planner_probe(planner))
        model = running.enter_context(start_model(target))
        slow = (
            Step("loop-back", partial(check_loopback, loopback)),
            Step("planner", partial(check_planner, asked, planner)),
            Step("model", partial(check_model, model, target)),
        )
        found = [finding for step in (*QUICK, *_of_target(target), *slow) for finding in report.show(step)]
    return {
        "format": FORMAT,
        "mark": worst(found).value,
        "exit_code": EXIT_FAULTY if worst(found) is Mark.FAIL else EXIT_HEALTHY,
        "duration_s": time.monotonic() - started_s,
        "findings": [finding.record() for finding in found],
    }


def _of_target(target: str) -> tuple[Step, ...]:
    """What can be seen of a target without loading it; in which memory another one has to fit shows with its device."""
    if target == NANO:
        return Step("memory", check_memory), Step("weights", check_weights)
    return (Step("weights", partial(check_target_weights, target)),)


def guarded(step: Step) -> list[Finding]:
    """The step's findings; a check that fails itself is a finding too."""
    try:
        return list(step.check())
    except Exception as err:  # Whatever is wrong with a machine, the rest of the report is wanted all the more.
        words = f"this check failed itself: {type(err).__name__}: {reason(err)}"
        return [Finding(step.name, Mark.FAIL, words, "report it, with the rest of these lines")]


class Report:
    """Prints findings as they come, and who is being waited for."""

    def __init__(self, stream: TextIO) -> None:
        """Print to this stream."""
        self._stream = stream
        self._width = shutil.get_terminal_size().columns if stream.isatty() else 10_000

    def show(self, step: Step) -> list[Finding]:
        """Carry out one check."""
        if self._stream.isatty():
            print(f"  ...  {step.name}", end="", file=self._stream, flush=True)
        found = guarded(step)
        if self._stream.isatty():
            print("\r\x1b[K", end="", file=self._stream)
        for finding in found:
            self._print(f"  {finding.mark.value:<5}{finding.check:<{NAME_WIDTH}}", finding.found)
            if finding.remedy:
                self._print(f"{'':<{7 + NAME_WIDTH}}-> ", finding.remedy)
        return found

    def _print(self, opening: str, words: str) -> None:
        indent = " " * len(opening)
        lines = textwrap.wrap(
            words, max(self._width, 60), initial_indent=opening, subsequent_indent=indent, break_on_hyphens=False
        )
        print("\n".join(lines) or opening, file=self._stream, flush=True)
