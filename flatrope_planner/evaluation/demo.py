"""The demo: starts everything, records it, and makes the report."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flatrope_planner.bringup.configuration import config_file
from flatrope_planner.bringup.description import (
    DEMO_ARGUMENTS,
    DRIVER,
    PLANNER,
    ROLE,
    SIMULATOR,
    NodeProcess,
    completed,
    demo_environment,
    demo_processes,
)
from flatrope_planner.bringup.processes import ProcessGroup
from flatrope_planner.errors import SetupError
from flatrope_planner.evaluation.live_line import LiveLine
from flatrope_planner.evaluation.report.page import write_report

RECORDER = "recorder"
SPOKEN = f"[{RECORDER}] "
PROBLEM = f"{SPOKEN}problem: "
# About a minute of driving, unless other scenes are asked for.
SCENES = {"family": "pedestrian,curve,traffic_light,lead", "seed": "0"}
# For the last messages to be written after the simulator has ended.
SETTLE_S = 1.0
POLL_S = 0.1
# Domains that need no privileged or ephemeral ports.
FIRST_DOMAIN, DOMAINS = 10, 90


def run_demo(chosen: Mapping[str, str], out: Path) -> dict[str, Any]:
    """Drive the scenes, record them and write `run.mcap`, `summary.json` and `report.html` into `out`.

    Args:
        chosen: arguments of the demo's description (`bringup.description.DEMO_ARGUMENTS`).
        out: folder of the results.

    Raises:
        InputError: on an argument that does not fit.
        SetupError: if a process ended before its time.
    """
    bag, chosen = out / "run.mcap", {**SCENES, **chosen}
    processes = (*demo_processes(chosen), recorder_process(chosen, bag))
    started_s = time.monotonic()
    live = LiveLine(SPOKEN)
    problems: list[str] = []

    def take(line: str) -> None:
        if line.startswith(PROBLEM):
            problems.append(line.removeprefix(PROBLEM))
        else:
            live.write(line)

    try:
        with ProcessGroup(processes, {**demo_environment(), "ROS_DOMAIN_ID": _domain()}, take) as group:
            _wait_for_end(group, problems)
            time.sleep(SETTLE_S)
    finally:
        live.close()
    summary = {**write_report(bag, out / "report.html"), "wall_s": round(time.monotonic() - started_s, 1)}
    (out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return summary


def recorder_process(chosen: Mapping[str, str], bag: Path) -> NodeProcess:
    """Records everything and tells what happens."""
    values = completed(DEMO_ARGUMENTS, chosen)
    by_reference = values[DRIVER.name] == "reference"
    says = f"/{SIMULATOR}/reference/rationale" if by_reference else f"/{PLANNER}/output/rationale"
    watched = () if by_reference else (("~/input/status", f"/{PLANNER}/output/status"),)
    return NodeProcess(
        executable="recorder_node",
        name=RECORDER,
        parameter_file=str(config_file("recorder.param.yaml")),
        parameters={"use_sim_time": True, "file": str(bag.absolute()), "show": True},
        remappings=(
            ("~/input/odometry", f"/carla/{values[ROLE.name]}/odometry"),
            ("~/input/rationale", says),
            ("~/input/scene", f"/{SIMULATOR}/scene"),
            *watched,
        ),
    )


def describe(summary: Mapping[str, Any], out: Path) -> str:
    """What came of it and where it is, for the terminal."""
    scenes = [f"  {scene['title']:<28} {scene['outcome'] or 'not finished'}" for scene in summary["scenes"]]
    total_ms = summary["stage_ms"].get("total", {})
    latency = f", {total_ms['p50']:.0f} ms each" if total_ms else ""
    late = summary["control_timeouts"]
    waits = f", {late} times no command in time" if late else ""
    return "\n".join(
        [
            f"{summary['ticks']} plans{latency}, {summary['dropped_ticks']} dropped{waits}; scenes:",
            *scenes,
            f"report:  {out / 'report.html'}",
            f"numbers: {out / 'summary.json'}",
            f"bag:     {out / 'run.mcap'}",
        ]
    )


def _wait_for_end(group: ProcessGroup, problems: Sequence[str]) -> None:
    """Return when the simulator has driven all scenes."""
    while True:
        if problems:
            raise SetupError(problems[0])
        ended = group.ended()
        if ended is not None and (ended.name != SIMULATOR or ended.exit_code != 0):
            msg = f"the {ended.name} ended with exit code {ended.exit_code} before the demo was over"
            raise SetupError(msg)
        if ended is not None:
            return
        time.sleep(POLL_S)


def _domain() -> str:
    """The domain that is set, or one of our own, away from other traffic on this machine."""
    return os.environ.get("ROS_DOMAIN_ID") or str(FIRST_DOMAIN + os.getpid() % DOMAINS)
