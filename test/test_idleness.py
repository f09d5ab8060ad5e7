"""What is said when nothing is planned: levels and words of the status, and each cause once on the console."""

from dataclasses import dataclass, field

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from test_planner_clock import WIDE, scene

from flatrope_planner.nodes.idleness import Idleness
from flatrope_planner.nodes.monitoring import Level, TaskReport

TIMEOUT_S = 3.0
ARRIVE = TaskReport("inputs", Level.OK, "all inputs arrive")
STOPPED = TaskReport("inputs", Level.ERROR, "nothing on /wide for 4.2 s, though /driver publishes there")
WAITING = TaskReport("inputs", Level.WARN, "waiting for an image of camera wide from 0.50 s before t0")
TIME = TaskReport("clock", Level.OK, "wall time")
STILL = TaskReport("clock", Level.WARN, "simulated time has stood still for 9.0 s")


@dataclass
class Console:
    """What was told, and the idleness that tells it."""

    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._idleness = Idleness(lambda line: self.lines.append(f"WARN {line}"), self.lines.append)

    def reports(
        self,
        idle_s: float | None,
        inputs: TaskReport,
        clock: TaskReport = TIME,
        plans: tuple[Level, str] = (Level.OK, "plans are good"),
        accepted: str = "37",
    ) -> dict[str, tuple[Level, str]]:
        reports = [
            TaskReport("planning", Level.OK, "37 plans made"),
            TaskReport("plans", *plans, {"accepted": accepted}),
            inputs,
            clock,
        ]
        shown = self._idleness.shown(reports, idle_s, TIMEOUT_S)
        assert shown[2:] == [inputs, clock]
        return {report.task: (report.level, report.message) for report in shown[:2]}


def test_a_planner_that_has_planned_and_stops_is_an_error_of_its_plans() -> None:
    words = "nothing has been planned for 3.5 s: see inputs"
    assert Console().reports(3.5, STOPPED) == {
        "planning": (Level.WARN, f"{words}; 37 plans made"),
        "plans": (Level.ERROR, words),
    }


def test_one_that_has_not_planned_yet_is_a_warning() -> None:
    told = Console().reports(3.5, STOPPED, plans=(Level.OK, "no plan yet"), accepted="0")
    assert told["plans"] == (Level.WARN, "nothing has been planned for 3.5 s: see inputs")


def test_what_became_of_the_last_plan_is_still_said() -> None:
    told = Console().reports(7.0, STOPPED, STILL, plans=(Level.ERROR, "the ego is being stopped: late"))
    words = "nothing has been planned for 7.0 s: see inputs and clock; before that: the ego is being stopped: late"
    assert told["plans"] == (Level.ERROR, words)


@pytest.mark.parametrize(
    ("idle_s", "inputs"),
    [
        # A tick in flight, a short pause, a slow simulator whose inputs all arrive, and a planner that is not to plan.
        (0.0, STOPPED),
        (3.0, STOPPED),
        (60.0, ARRIVE),
        (None, STOPPED),
    ],
)
def test_a_planner_that_has_no_cause_to_complain_says_nothing(idle_s: float | None, inputs: TaskReport) -> None:
    console = Console()
    assert console.reports(idle_s, inputs) == {
        "planning": (Level.OK, "37 plans made"),
        "plans": (Level.OK, "plans are good"),
    }
    assert console.lines == []


def test_the_console_hears_of_each_cause_once_and_of_its_end() -> None:
    console = Console()
    both = TaskReport("inputs", Level.ERROR, "nothing on /wide for 6.2 s, though /driver publishes there; no /tele")
    console.reports(3.9, STOPPED)
    assert console.lines == []
    # The last one is over before it has been told.
    seen = ((4.1, STOPPED), (5.1, STOPPED), (6.1, both), (7.2, both), (8.1, STOPPED), (9.1, WAITING))
    for idle_s, inputs in seen:
        later = TaskReport(inputs.task, inputs.level, inputs.message.replace("4.2", f"{idle_s + 0.1:.1f}"))
        console.reports(idle_s, later)
    assert console.lines == [
        "WARN nothing is planned: nothing on /wide for 4.2 s, though /driver publishes there",
        f"WARN nothing is planned: {both.message}",
    ]
    console.reports(0.0, ARRIVE)
    console.reports(0.2, ARRIVE)
    assert console.lines[2:] == ["planning goes on"]
    # The same fault again is news again.
    console.reports(5.0, STOPPED)
    assert console.lines[3:] == ["WARN nothing is planned: nothing on /wide for 4.2 s, though /driver publishes there"]


def test_a_planner_that_is_deactivated_meanwhile_does_not_claim_to_go_on() -> None:
    console = Console()
    console.reports(5.0, STOPPED)
    console.reports(None, STOPPED)
    console.reports(0.0, ARRIVE)
    assert len(console.lines) == 1


def test_a_camera_that_stops_is_told_by_the_node_and_on_its_console(capfd: pytest.CaptureFixture[str]) -> None:
    topic = f"/planner/input/camera/{WIDE}"
    with scene() as run:
        run.go_until(lambda: bool(run.t0_s))
        run.go_until(lambda: run.told("plans", DiagnosticStatus.OK, "plans are good"))
        run.drive.silent = {WIDE}
        words = "nothing has been planned for "
        run.go_until(lambda: run.told("plans", DiagnosticStatus.ERROR, words, "see inputs"))
        run.go_until(lambda: run.told("planning", DiagnosticStatus.WARN, words, "plans made"))
        console = capfd.readouterr().err
        assert "nano is loaded, in " in console
        assert "active: plans as soon as all inputs are there" in console
        console = ""

        def told(words: str) -> bool:
            nonlocal console
            console += capfd.readouterr().err
            return words in console

        run.go_until(lambda: told(f"nothing is planned: nothing on {topic} for "))
        run.go_for(2.0)
        run.drive.silent = set()
        run.go_until(lambda: told("planning goes on"))
        run.go_until(lambda: run.told("plans", DiagnosticStatus.OK, "plans are good"))
    console += capfd.readouterr().err
    assert (console.count("nothing is planned"), console.count("planning goes on")) == (1, 1)
