"""Windows, percentiles and levels on numbers worked out by hand."""

from dataclasses import replace

import pytest

from flatrope_planner.nodes.monitoring import (
    NO_PLAN,
    Level,
    MonitorSettings,
    PlannerMonitor,
    TaskReport,
    Threshold,
    TickFigures,
)

SETTINGS = MonitorSettings(
    window_s=10.0,
    stale_after_s=3.0,
    latency_ms=Threshold(100.0, 200.0),
    age_ms=Threshold(500.0, 1000.0),
    rate_hz=Threshold(1.5, 0.5, falling=True),
    dropped_share=Threshold(0.3, 0.6),
    acceptance_length=Threshold(2.0, float("-inf"), falling=True),
)


def figures(tick: int, **changes: float) -> TickFigures:
    """Tick number n, planned for n half seconds."""
    return TickFigures(
        t0_ns=int(changes.get("t0_ns", tick * 500_000_000)),
        stage_ms={"reasoning": 10.0 * tick, "total": changes.get("total", 20.0)},
        observation_age_ms=changes.get("age", 100.0),
        ticks=tick,
        dropped_ticks=int(changes.get("dropped", 0)),
        rounds=int(changes.get("rounds", 0)),
        proposed=int(changes.get("proposed", 0)),
        accepted=int(changes.get("accepted", 0)),
        committed=int(changes.get("committed", 0)),
    )


def reports(monitor: PlannerMonitor, now_s: float) -> dict[str, TaskReport]:
    return {report.task: report for report in monitor.reports(now_s)}


def fed(count: int, **changes: float) -> PlannerMonitor:
    """A monitor that took one tick each half second from 0.5 s on."""
    monitor = PlannerMonitor(SETTINGS)
    for tick in range(1, count + 1):
        monitor.take(0.5 * tick, figures(tick, **changes))
    return monitor


def test_nothing_heard_is_stale() -> None:
    assert {report.level for report in PlannerMonitor(SETTINGS).reports(100.0)} == {Level.STALE}


def test_a_planner_that_falls_silent_becomes_stale_and_recovers() -> None:
    monitor = fed(4)
    assert reports(monitor, 5.0)["liveness"].level is Level.OK
    silent = reports(monitor, 5.1)
    assert {report.level for report in silent.values()} == {Level.STALE}
    assert silent["liveness"].message == "the planner is silent for 3.1 s"
    monitor.take(5.2, figures(5))
    assert reports(monitor, 5.2)["latency"].level is Level.OK


def test_a_planner_that_lives_without_planning_is_alive_but_its_figures_are_stale() -> None:
    monitor = PlannerMonitor(SETTINGS)
    monitor.heard(9.0)
    now = reports(monitor, 10.0)
    assert now["liveness"].level is Level.OK
    assert now["latency"] == TaskReport("latency", Level.STALE, NO_PLAN)
    assert now["drops"].level is Level.STALE


def test_ticks_that_are_dropped_while_no_plan_is_published_are_told() -> None:
    monitor = PlannerMonitor(SETTINGS)
    # One plan a second of which none is published, where two are due: each tick takes the place of another.
    for second in range(20):
        monitor.heard(float(second))
        monitor.count(float(second), 5 + second, 3 + second)
    drops = reports(monitor, 19.0)["drops"]
    assert (drops.level, drops.message) == (Level.WARN, "50% of ticks dropped, and no plan is published")
    # Of the last ten seconds, and of all.
    assert drops.values == {"dropped": "10", "dropped_share": "0.500", "dropped_since_start": "22"}
    # Another planner counts anew, and nothing is dropped.
    monitor.count(19.5, 1, 0)
    assert reports(monitor, 19.5)["drops"].level is Level.STALE
    # Of a planner that is silent nothing is known any more.
    assert reports(fed_counts(), 100.0)["drops"].level is Level.STALE


def fed_counts() -> PlannerMonitor:
    monitor = PlannerMonitor(SETTINGS)
    monitor.heard(90.0)
    monitor.count(89.0, 0, 0)
    monitor.count(90.0, 0, 9)
    return monitor


def test_percentiles_of_each_stage() -> None:
    # Reasoning takes 10, 20, ... 110 ms: p50 is the sixth value, p90 the tenth, p99 nine tenths between the last two.
    values = reports(fed(11), 5.5)["latency"].values
    assert values["reasoning_p50_ms"] == "60.0"
    assert values["reasoning_p90_ms"] == "100.0"
    assert values["reasoning_p99_ms"] == "109.0"
    assert values["total_p50_ms"] == "20.0"


@pytest.mark.parametrize(("total", "level"), [(100.0, Level.OK), (101.0, Level.WARN), (201.0, Level.ERROR)])
def test_latency_levels(total: float, level: Level) -> None:
    assert reports(fed(4, total=total), 2.0)["latency"].level is level


def test_old_ticks_leave_the_window() -> None:
    monitor = fed(1, total=999.0)
    for tick in range(2, 24):
        monitor.take(0.5 * tick, figures(tick))
    assert reports(monitor, 10.4)["latency"].values["total_p99_ms"] != "20.0"
    assert reports(monitor, 10.6)["latency"].values["total_p99_ms"] == "20.0"


def test_rate_is_in_time_of_the_observations_whatever_the_wall_clock_does() -> None:
    monitor = PlannerMonitor(SETTINGS)
    for tick in range(1, 6):
        # A simulator that stands still in between: 0.5 s of its time takes 2 s.
        monitor.take(2.0 * tick, figures(tick))
    assert reports(monitor, 10.0)["rate"].values["rate_hz"] == "2.00"


@pytest.mark.parametrize(("step_s", "level"), [(0.5, Level.OK), (1.0, Level.WARN), (2.5, Level.ERROR)])
def test_rate_levels(step_s: float, level: Level) -> None:
    monitor = PlannerMonitor(SETTINGS)
    for tick in range(1, 4):
        monitor.take(float(tick), figures(tick, t0_ns=tick * step_s * 1e9))
    assert reports(monitor, 3.0)["rate"].level is level


def test_one_plan_has_no_rate_and_nothing_is_divided_by_zero() -> None:
    assert reports(fed(1), 0.5)["rate"].level is Level.OK


def test_drops_are_counted_within_the_window() -> None:
    monitor = PlannerMonitor(SETTINGS)
    monitor.take(1.0, replace(figures(10, dropped=100), deadline_misses=5, fallbacks=1))
    monitor.take(2.0, replace(figures(13, dropped=103), deadline_misses=7, fallbacks=4))
    drops = reports(monitor, 2.0)["drops"]
    assert (drops.level, drops.message) == (Level.WARN, "50% of ticks dropped")
    assert drops.values == {
        "dropped": "3",
        "dropped_share": "0.500",
        "dropped_since_start": "103",
        "deadline_misses": "2",
        "fallbacks": "3",
    }


def test_stamps_from_the_future_are_an_error() -> None:
    assert reports(fed(2, age=-50.0), 1.0)["age"].level is Level.ERROR
    assert reports(fed(2, age=600.0), 1.0)["age"].level is Level.WARN


def test_acceptance_is_over_all_rounds_of_the_window() -> None:
    monitor = PlannerMonitor(SETTINGS)
    monitor.take(1.0, figures(1, rounds=1, proposed=4, accepted=3, committed=4))
    monitor.take(1.5, figures(2, rounds=3, proposed=12, accepted=1, committed=4))
    speculation = reports(monitor, 1.5)["speculation"]
    assert speculation.values["mean_acceptance_length"] == "2.00"
    assert speculation.values["acceptance_rate"] == "0.250"
    assert speculation.level is Level.OK
    monitor.take(2.0, figures(3, rounds=4, proposed=16, accepted=0, committed=4))
    assert reports(monitor, 2.0)["speculation"].level is Level.WARN


@pytest.mark.parametrize(("tick", "t0_ns"), [(1, 9e9), (5, 0.0)])
def test_a_planner_or_clock_that_begins_anew_empties_the_window(tick: int, t0_ns: float) -> None:
    monitor = fed(4)
    monitor.take(2.5, figures(tick, t0_ns=t0_ns))
    assert reports(monitor, 2.5)["rate"].values["plans"] == "1"
