"""The arithmetic of the soak, on recordings made up by hand; and what is read from /proc."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from flatrope_planner.evaluation.process_usage import Usage, usage_of
from flatrope_planner.evaluation.soak_benchmark import Run, result_of, soak_processes, table
from flatrope_planner.evaluation.soak_picture import soak_picture
from flatrope_planner.evaluation.soak_verdict import (
    Sample,
    after_warm_up,
    growth_percent,
    latency_ratio,
    lifecycle_lapses,
    missed_heartbeats,
    rates_hz,
    robust_line,
)
from flatrope_planner.evaluation.witness_events import Outcome, StatusSeen, TickSeen, Timeline


def samples(memory_kib: Sequence[float], period_s: float = 60.0) -> list[Sample]:
    return [Sample(i * period_s, {"planner": Usage(round(kib), 10, 7, 30)}) for i, kib in enumerate(memory_kib)]


def ticks(total_ms: Sequence[float]) -> list[TickSeen]:
    """One each 0.5 s of wall time and 0.1 s of ROS time."""
    return [TickSeen(0.5 * i, 100_000_000 * i, value, value + 50.0, i + 1, 2 * i) for i, value in enumerate(total_ms)]


def statuses(times_s: Sequence[float], **words: str) -> list[StatusSeen]:
    return [StatusSeen(time_s, {}, words) for time_s in times_s]


def test_the_robust_line_is_not_moved_by_outliers() -> None:
    x = np.arange(20.0)
    y = 3.0 + 2.0 * x
    y[4], y[17] = 500.0, -500.0
    assert robust_line(x, y) == pytest.approx((2.0, 3.0))


def test_growth_counts_from_the_end_of_the_warm_up() -> None:
    # 20 min: warm after 2 min, at 1000 kB; then 10 kB a minute for 18 minutes.
    memory = [100.0, 700.0, *(1000.0 + 10.0 * i for i in range(19))]
    assert growth_percent(samples(memory), "planner") == pytest.approx(18.0)
    assert growth_percent(samples([100.0, 700.0, *[1000.0] * 19]), "planner") == 0.0


def test_the_warm_up_is_a_tenth_of_a_long_run_and_half_of_a_short_one() -> None:
    assert after_warm_up(samples([1.0] * 61))[0].time_s == 360.0
    assert after_warm_up(samples([1.0] * 5, 30.0))[0].time_s == 60.0
    assert after_warm_up([]) == []


def test_latency_compares_the_last_quarter_with_the_first() -> None:
    assert latency_ratio(ticks([100.0, 110.0, 300.0, 50.0, 50.0, 300.0, 120.0, 132.0])) == pytest.approx(1.2)
    assert latency_ratio(ticks([100.0])) == 1.0


def test_each_status_that_does_not_come_is_a_miss() -> None:
    assert missed_heartbeats(statuses([0.0, 1.0, 2.2, 3.0]), 1.0, 4.0) == 0
    # Those of 2, 3 and 4 s did not come; nor did those of 7, 8 and 9 s.
    assert missed_heartbeats(statuses([0.0, 1.0, 5.0, 6.0]), 1.0, 10.0) == 6


def test_a_node_that_falls_out_of_its_active_state_is_noticed() -> None:
    coming, active = statuses([0.0], lifecycle="configuring"), statuses([1.0, 2.0], lifecycle="active")
    warned, gone = statuses([3.0], lifecycle="active: named twice"), statuses([4.0], lifecycle="inactive: at rest")
    assert lifecycle_lapses([*coming, *active, *warned, *gone]) == 1
    assert lifecycle_lapses(coming) == 0
    assert lifecycle_lapses(statuses([0.0, 1.0], model="loaded")) == 0


def test_rates_leave_out_the_leaps_between_scenes() -> None:
    seen = ticks([100.0] * 5)
    leapt = [*seen, *(TickSeen(t.wall_s + 2.5, t.t0_ns + 10**11, 100.0, 0.0, 9, 9) for t in seen)]
    wall_hz, ros_hz = rates_hz(leapt)
    assert wall_hz == pytest.approx(9 / 4.5)
    assert ros_hz == pytest.approx(10.0)


def run_of(memory_kib: Sequence[float], total_ms: Sequence[float], heard: Sequence[float]) -> Run:
    outcomes = [
        Outcome(1.0, '{"family": "lead", "seed": 1, "success": true, "failures": []}'),
        Outcome(2.0, '{"family": "curve", "seed": 1, "success": false, "failures": ["left the road"]}'),
    ]
    timeline = Timeline(ticks=ticks(total_ms), statuses=statuses(heard), outcomes=outcomes)
    return Run(timeline, samples(memory_kib, 1.0))


@pytest.mark.parametrize(
    ("memory_kib", "total_ms", "heard", "passed"),
    [
        ([1000.0] * 11, [100.0] * 20, range(11), True),
        # 6 kB a second for the 5 s that count, on 1000 kB: 3 %.
        ([1000.0] * 5 + [1000.0 + 6.0 * i for i in range(6)], [100.0] * 20, range(11), False),
        ([1000.0] * 11, [100.0] * 10 + [120.0] * 10, range(11), False),
        ([1000.0] * 11, [100.0] * 20, [0, 1, 2, 6, 7, 8, 9, 10], False),
        ([1000.0] * 11, [], range(11), False),
    ],
)
def test_a_run_passes_when_nothing_grows(
    memory_kib: list[float], total_ms: list[float], heard: Sequence[float], passed: bool
) -> None:
    result = result_of(run_of(memory_kib, total_ms, heard), 1.0)
    assert result["passed"] is passed
    assert ("NOT passed" in table(result)) is not passed


def test_the_figures_of_a_run() -> None:
    result = result_of(run_of([1000.0] * 5 + [1000.0 + 6.0 * i for i in range(6)], [100.0] * 20, range(9)), 1.0)
    assert result["memory_growth_percent"] == 3.0
    assert result["processes"]["planner"]["threads"] == [7, 7]
    assert (result["plans"], result["dropped_ticks"], result["plans_per_second"]) == (20, 38, 2.0)
    assert result["latency_ms"] == {"p50": 100.0, "p90": 100.0, "p99": 100.0}
    assert result["outcomes"] == {"scenes": 2, "success": 1, "failed": ["curve, seed 1: left the road"]}


def test_the_picture_is_svg_with_a_line_for_each_process() -> None:
    picture = ET.fromstring(soak_picture(samples([1000.0] * 11), ticks([100.0] * 40), 0.0))  # noqa: S314
    assert len(picture.findall("{*}svg")) == 2
    assert [text.text for text in picture.findall("{*}text")] == ["planner"]
    assert soak_picture(samples([1000.0] * 2), [], 0.0).startswith("<svg")


def test_the_soak_is_the_demo_without_an_end() -> None:
    by_name = {process.name: process for process in soak_processes()}
    assert by_name["planner"].parameters["period_s"] == 0.1
    assert by_name["simulator"].parameters["exit_when_done"] is False
    assert {"controller", "diagnostics", "plan_witness"} <= set(by_name)


def test_usage_counts_children_too() -> None:
    # The child tells when it is up: while it is being loaded, files come and go.
    up = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {up!r}])"
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    both, alone = usage_of(parent.pid), usage_of(child)
    os.kill(child, 9)
    parent.wait()
    parent.stdout.close()
    assert (both.threads, alone.threads) == (2, 1)
    assert both.memory_kib > alone.memory_kib > 0
    assert both.files >= alone.files + 3
    assert usage_of(parent.pid) == Usage(0, 0, 0, 0)


def test_usage_is_what_proc_says(tmp_path: Path) -> None:
    folder = tmp_path / "5"
    for part in ("fd", "task/5"):
        (folder / part).mkdir(parents=True)
    (folder / "task/5/children").write_text("")
    (folder / "smaps_rollup").write_text(
        "00-ff ---p 0 00:00 0 [rollup]\nRss: 90 kB\nPss:      70 kB\nPss_Shmem:  20 kB\n"
    )
    (folder / "status").write_text("Name:\tpython\nThreads:\t3\n")
    (folder / "fd/0").touch()
    assert usage_of(5, tmp_path) == Usage(70, 20, 3, 1)
