"""Trouble with plans on the console: once, with the reason, and anew when it was over for a while."""

from dataclasses import dataclass, field

from flatrope_planner.nodes.monitoring import Level, TaskReport
from flatrope_planner.nodes.plan_alarm import PATIENCE_S, RECOVERED_S, PlanAlarm, Trouble

GOOD = "plans are good and in time again"


@dataclass
class Console:
    """What was told, and the alarm that tells it; looks once a second."""

    lines: list[str] = field(default_factory=list)
    now_s: float = 100.0

    def __post_init__(self) -> None:
        self._alarm = PlanAlarm(lambda line: self.lines.append(f"WARN {line}"), self.lines.append)

    def look(self, trouble: Trouble, message: str = "plans are good", accepted: int = 7, times: int = 1) -> None:
        level = Level.OK if trouble is Trouble.NONE else Level.ERROR
        for _ in range(times):
            self._alarm.look(TaskReport("plans", level, message, {"accepted": str(accepted)}), trouble, self.now_s)
            self.now_s += 1.0


def test_plans_that_are_late_in_turns_and_by_other_times_are_told_once() -> None:
    console = Console()
    console.look(Trouble.LATE_IN_FLIGHT, "the ego is being stopped: the plan is late")
    for took_s in (2.5, 2.61, 2.4):
        console.look(Trouble.LATE, f"not published: its observation was {took_s} s old; a tick takes {took_s} s")
        console.look(Trouble.LATE, f"the ego is being stopped: the plan is late; a tick takes {took_s} s")
    assert console.lines == ["WARN plans: not published: its observation was 2.5 s old; a tick takes 2.5 s"]


def test_a_first_plan_that_does_not_come_is_told_too() -> None:
    console = Console()
    console.look(Trouble.LATE_IN_FLIGHT, "late", times=int(PATIENCE_S))
    assert console.lines == []
    console.look(Trouble.LATE_IN_FLIGHT, "late", times=9)
    assert console.lines == ["WARN plans: late"]


def test_plans_that_are_late_now_and_then_are_told_even_if_none_is_seen_to_be_late() -> None:
    console = Console()
    for _ in range(int(PATIENCE_S)):
        console.look(Trouble.LATE_IN_FLIGHT, "late")
        console.look(Trouble.NONE)
    assert console.lines == ["WARN plans: late"]


def test_every_reason_why_plans_are_refused_is_told_once() -> None:
    console = Console()
    for figure in (3.1, 2.0):
        console.look(Trouble.BAD, f"the ego is being stopped: it drives into something after {figure} m")
        console.look(Trouble.BAD, "the ego is being stopped: the speed is not finite")
    assert console.lines == [
        "WARN plans: the ego is being stopped: it drives into something after 3.1 m",
        "WARN plans: the ego is being stopped: the speed is not finite",
    ]


def test_it_is_told_anew_after_plans_were_all_right_for_a_while() -> None:
    console = Console()
    console.look(Trouble.LATE, "late")
    # One good plan among late ones is no end of it.
    console.look(Trouble.NONE, accepted=8)
    console.look(Trouble.LATE, "late", accepted=8)
    console.look(Trouble.NONE, accepted=9, times=int(RECOVERED_S))
    assert console.lines == ["WARN plans: late"]
    console.look(Trouble.NONE, accepted=12, times=9)
    assert console.lines == ["WARN plans: late", GOOD]
    console.look(Trouble.LATE, "late", accepted=13)
    assert console.lines == ["WARN plans: late", GOOD, "WARN plans: late"]
    # Then another drive begins, in which nothing has been planned yet.
    console.look(Trouble.NONE, accepted=14, times=9)
    assert len(console.lines) == 3
