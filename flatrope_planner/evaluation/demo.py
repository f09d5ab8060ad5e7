"""The demo: starts everything, records it, and makes the report."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from flatrope_planner.bringup.configuration import config_file
from flatrope_planner.bringup.description import (
    DEMO_ARGUMENTS,
    DRIVER,
    FAMILY,
    PLANNER,
    ROLE,
    SIMULATOR,
    NodeProcess,
    completed,
    demo_environment,
    demo_processes,
)
from flatrope_planner.bringup.leftovers import warn_of_leftovers
from flatrope_planner.bringup.processes import ProcessGroup
from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.evaluation.live_line import LiveLine
from flatrope_planner.evaluation.report.page import write_report
from flatrope_planner.simulation.tour import families_of

RECORDER = "recorder"
SPOKEN = f"[{RECORDER}] "
PROBLEM = f"{SPOKEN}problem: "
# About a minute of driving, unless other scenes are asked for.
SCENES = {"family": "pedestrian,curve,traffic_light,lead", "seed": "0"}
# For the last messages to be written after all others have ended.
SETTLE_S = 1.0
POLL_S = 0.1
# Domains that need no privileged or ephemeral ports; and the last one that there is.
FIRST_DOMAIN, DOMAINS, LAST_DOMAIN = 10, 90, 232
BAG, REPORT, SUMMARY = RESULTS = ("run.mcap", "report.html", "summary.json")


def run_demo(chosen: Mapping[str, str], out: Path) -> dict[str, Any]:
    """Drive the scenes, record them and write `run.mcap`, `summary.json` and `report.html` into `out`.

    These replace earlier ones when the demo is over; when it fails, it leaves nothing.

    Args:
        chosen: arguments of the demo's description (`bringup.description.DEMO_ARGUMENTS`).
        out: folder of the results.

    Raises:
        InputError: on an argument that does not fit.
        SetupError: if a process ended before its time.
    """
    chosen = {**SCENES, **chosen}
    processes, domain = demo_processes(chosen), _domain()
    families_of(completed(DEMO_ARGUMENTS, chosen)[FAMILY.name])
    started_s = time.monotonic()
    with _unfinished(out) as folder:
        _drive((*processes, recorder_process(chosen, folder / BAG)), domain)
        summary = {**write_report(folder / BAG, folder / REPORT), "wall_s": round(time.monotonic() - started_s, 1)}
        (folder / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return summary


@contextmanager
def _unfinished(out: Path) -> Iterator[Path]:
    """A folder in `out` for results that are moved to `out` itself once they are complete."""
    is_new = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    finished = False
    try:
        with TemporaryDirectory(prefix=".unfinished-", dir=out) as folder:
            yield Path(folder)
            for name in RESULTS:
                (Path(folder) / name).replace(out / name)
            finished = True
    finally:
        if is_new and not finished:
            out.rmdir()


def _drive(processes: Sequence[NodeProcess], domain: str) -> None:
    """Run the processes until the simulator has driven all scenes."""
    live = LiveLine(SPOKEN)
    problems: list[str] = []

    def take(line: str) -> None:
        if line.startswith(PROBLEM):
            problems.append(line.removeprefix(PROBLEM))
        else:
            live.write(line)

    live.write(f"ROS 2 domain {domain}, on this machine alone: export ROS_DOMAIN_ID={domain} to listen in")
    warn_of_leftovers(live.write)
    try:
        with ProcessGroup(processes, {**demo_environment(), "ROS_DOMAIN_ID": domain}, take) as group:
            _wait_for_end(group, problems)
            # Simulated time has ended: a planner that was left waiting would say that it stands still.
            group.stop(but=RECORDER)
            time.sleep(SETTLE_S)
    finally:
        live.close()


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
    counts = f"{summary['dropped_ticks']} dropped, {summary['fallback_plans']} fallbacks"
    return "\n".join(
        [
            f"{summary['ticks']} plans{latency}, {counts}{waits}; scenes:",
            *scenes,
            f"report:  {out / REPORT}",
            f"numbers: {out / SUMMARY}",
            f"bag:     {out / BAG}",
        ]
    )


def _wait_for_end(group: ProcessGroup, problems: Sequence[str]) -> None:
    """Return when the simulator has driven all scenes."""
    while True:
        if problems:
            raise SetupError(problems[0])
        ended = group.ended()
        if ended is not None and (ended.name != SIMULATOR or ended.exit_code != 0):
            msg = f"before the demo was over {ended}"
            raise SetupError(msg)
        if ended is not None:
            return
        time.sleep(POLL_S)


def _domain() -> str:
    """The domain that is set, or one of our own, away from other traffic on this machine.

    Raises:
        InputError: if what is set is none.
    """
    chosen = os.environ.get("ROS_DOMAIN_ID") or str(FIRST_DOMAIN + os.getpid() % DOMAINS)
    if not chosen.isdecimal() or int(chosen) > LAST_DOMAIN:
        msg = f"ROS_DOMAIN_ID is {chosen!r}, expected a whole number of [0, {LAST_DOMAIN}]"
        raise InputError(msg)
    return chosen
