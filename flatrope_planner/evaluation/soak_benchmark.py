"""The soak: the closed loop of the demo for a long time, watched from outside."""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flatrope_planner.bringup.configuration import config_file, default_parameters
from flatrope_planner.bringup.description import (
    PLANNER,
    SIMULATOR,
    NodeProcess,
    demo_environment,
    demo_processes,
)
from flatrope_planner.bringup.processes import Ended, ProcessGroup
from flatrope_planner.errors import SetupError
from flatrope_planner.evaluation import soak_verdict
from flatrope_planner.evaluation.percentiles import percentiles
from flatrope_planner.evaluation.process_usage import usage_of
from flatrope_planner.evaluation.soak_picture import soak_picture
from flatrope_planner.evaluation.soak_verdict import Sample
from flatrope_planner.evaluation.witness_events import Timeline, from_line
from flatrope_planner.progress import with_progress
from flatrope_planner.simulation.scene_name import scene_name

WITNESS = "plan_witness"
SAMPLE_PERIOD_S = 5.0
PLAN_PERIOD_S = 0.1
START_S = 120.0
SECONDS_PER_MINUTE = 60.0
POLL_S = 0.1
DOMAIN = "95"


@dataclass
class Run:
    """What is known of a run so far."""

    timeline: Timeline = field(default_factory=Timeline)
    samples: list[Sample] = field(default_factory=list)
    began_s: float = 0.0
    ended: Ended | None = None

    def take(self, line: str) -> None:
        """Take in a line of output."""
        event = from_line(line)
        if event is not None:
            self.timeline.take(event)


def run_soak_benchmark(minutes: float, picture: Path | None = None) -> dict[str, Any]:
    """Drive for that long, scene after scene, and say what has grown.

    Args:
        minutes: from the first plan on.
        picture: where to draw memory and latency over time.

    Raises:
        SetupError: if no plan comes at all.
    """
    processes = soak_processes()
    environment = {**demo_environment(), "ROS_DOMAIN_ID": os.environ.get("ROS_DOMAIN_ID", DOMAIN)}
    run = Run()
    with ProcessGroup(processes, environment, run.take) as group:
        print("waiting for the first plan", file=sys.stderr)
        _wait_for_first_plan(run, group)
        count = max(2, round(minutes * SECONDS_PER_MINUTE / SAMPLE_PERIOD_S))
        watched = [process.name for process in processes if process.name != WITNESS]
        for _ in with_progress(_samples(run, group, watched, count), count, "samples"):
            pass
    if picture is not None:
        picture.write_text(soak_picture(run.samples, run.timeline.ticks, run.began_s), encoding="utf-8")
    return result_of(run, default_parameters("planner.param.yaml")["status_period_s"])


def soak_processes() -> tuple[NodeProcess, ...]:
    """The demo, endless and planning at 10 Hz, and a witness."""
    changed: Mapping[str, Mapping[str, float | bool]] = {
        PLANNER: {"period_s": PLAN_PERIOD_S},
        SIMULATOR: {"exit_when_done": False},
    }
    processes = [
        replace(process, parameters={**process.parameters, **changed.get(process.name, {})})
        for process in demo_processes({})
    ]
    outputs = {"status": f"/{PLANNER}/output/status", "speculation": f"/{PLANNER}/output/speculation"}
    heard = {**outputs, "outcome": f"/{SIMULATOR}/outcome"}
    witness = NodeProcess(
        executable=WITNESS,
        name=WITNESS,
        parameter_file=str(config_file("sensor_player.param.yaml")),
        remappings=tuple((f"~/input/{name}", topic) for name, topic in heard.items()),
    )
    return (*processes, witness)


def result_of(run: Run, status_period_s: float) -> dict[str, Any]:
    """All figures of a run, and the verdict."""
    timeline = run.timeline
    statuses = [status for status in timeline.statuses if status.wall_s >= run.began_s]
    ticks = [tick for tick in timeline.ticks if tick.wall_s >= run.began_s]
    wall_hz, ros_hz = soak_verdict.rates_hz(ticks)
    processes = soak_verdict.processes_in_figures(run.samples)
    end_s = run.began_s + (run.samples[-1].time_s if run.samples else 0.0)
    missed = soak_verdict.missed_heartbeats(statuses, status_period_s, end_s)
    result = {
        "minutes": round((end_s - run.began_s) / SECONDS_PER_MINUTE, 2),
        "plans": len(ticks),
        "dropped_ticks": ticks[-1].dropped_ticks - ticks[0].dropped_ticks if ticks else 0,
        "plans_per_second": round(wall_hz, 2),
        "plans_per_ros_second": round(ros_hz, 2),
        "latency_ms": percentiles([tick.total_ms for tick in ticks]),
        "observation_age_ms": percentiles([tick.age_ms for tick in ticks]),
        "latency_ratio": round(soak_verdict.latency_ratio(ticks), 3),
        # Of the process that grows most.
        "memory_growth_percent": max((each["memory_growth_percent"] for each in processes.values()), default=0.0),
        "processes": processes,
        "crashes": int(run.ended is not None),
        "crash": "" if run.ended is None else str(run.ended),
        "missed_heartbeats": missed,
        "missed_lifecycle": missed + soak_verdict.lifecycle_lapses(statuses),
        "outcomes": _outcomes(timeline),
    }
    return {**result, "passed": soak_verdict.passed(result)}


def table(result: Mapping[str, Any]) -> str:
    """One line a process, and the verdict."""
    lines = [f"{'process':<14}{'growth':>8}{'memory, MiB':>18}{'threads':>10}{'files':>10}"]
    for name, figures in result["processes"].items():
        memory, threads, files = (_change(figures[key]) for key in ("memory_mib", "threads", "files"))
        growth = f"{figures['memory_growth_percent']:+.2f} %"
        lines.append(f"{name:<14}{growth:>8}{memory:>18}{threads:>10}{files:>10}")
    scenes, p50_ms = result["outcomes"], result["latency_ms"].get("p50", 0.0)
    planned = f"{result['plans']} plans in {result['minutes']:.1f} min, {result['plans_per_second']:.1f} a second"
    lines += [
        f"{planned}, median {p50_ms:.0f} ms, last quarter over first {result['latency_ratio']:.2f}",
        f"{result['missed_lifecycle']} missed signs of life, {result['crashes']} crashes",
        f"{scenes['success']} of {scenes['scenes']} scenes passed",
        "passed" if result["passed"] else "NOT passed",
    ]
    return "\n".join(lines)


def _change(values: tuple[float, float]) -> str:
    return f"{values[0]} > {values[1]}"


def _outcomes(timeline: Timeline) -> dict[str, Any]:
    verdicts = [json.loads(outcome.text) for outcome in timeline.outcomes]
    failures = [f"{scene_name(each['family'], each['seed'])}: {', '.join(each['failures'])}" for each in verdicts]
    success = sum(bool(each["success"]) for each in verdicts)
    failed = [words for words, each in zip(failures, verdicts, strict=True) if not each["success"]]
    return {"scenes": len(verdicts), "success": success, "failed": failed}


def _wait_for_first_plan(run: Run, group: ProcessGroup) -> None:
    until_s = time.monotonic() + START_S
    while not run.timeline.ticks:
        ended = group.ended()
        if ended is not None or time.monotonic() > until_s:
            msg = f"the soak has not begun: {ended or f'no plan within {START_S:.0f} s'}"
            raise SetupError(msg)
        time.sleep(POLL_S)
    run.began_s = time.monotonic()


def _samples(run: Run, group: ProcessGroup, names: list[str], count: int) -> Iterator[Sample]:
    """A sample every period, until the time is over or a process ends."""
    for number in range(count + 1):
        until_s = run.began_s + number * SAMPLE_PERIOD_S
        while time.monotonic() < until_s and run.ended is None:
            run.ended = group.ended()
            time.sleep(POLL_S)
        if run.ended is not None:
            return
        sample = Sample(time.monotonic() - run.began_s, {name: usage_of(group.pid(name)) for name in names})
        run.samples.append(sample)
        if number:
            yield sample
