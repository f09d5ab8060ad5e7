"""How many large pictures reach the planner node over the real middleware."""

import json
import os
import time
from typing import Any

from flatrope_planner.bringup.configuration import config_file
from flatrope_planner.bringup.description import (
    CAMERA_TOPIC,
    ODOMETRY_TOPIC,
    PLANNER,
    NodeProcess,
    demo_environment,
    image_environment,
    planner_processes,
)
from flatrope_planner.bringup.processes import ProcessGroup
from flatrope_planner.errors import SetupError

PROBE = "transport_probe"
RESULT = f"[{PROBE}] transport: "
# Beyond the test itself: loading, settling, and some slowness.
PATIENCE_S = 90.0
POLL_S = 0.1


def run_transport_benchmark(duration_s: float) -> dict[str, Any]:
    """Send two cameras' pictures for that long from a process of its own, count those the planner node took in.

    Raises:
        SetupError: if the nodes do not come up.
    """
    lines: list[str] = []
    environment = {**demo_environment(), "ROS_DOMAIN_ID": os.environ.get("ROS_DOMAIN_ID", "93")}
    with ProcessGroup((*_planner(), _probe(duration_s)), environment, lines.append) as group:
        until_s = time.monotonic() + duration_s + PATIENCE_S
        while time.monotonic() < until_s and group.ended() is None:
            time.sleep(POLL_S)
    results = [line.removeprefix(RESULT) for line in lines if line.startswith(RESULT)]
    if not results:
        msg = f"the planner did not report what it received; last output: {lines[-1] if lines else 'none'}"
        raise SetupError(msg)
    counts = json.loads(results[0])
    share = {camera: received / counts["sent"] for camera, received in counts["received"].items()}
    return {"delivered": min(share.values()), "delivered_by_camera": share, **counts, "duration_s": duration_s}


def table(result: dict[str, Any]) -> str:
    """One line a camera."""
    sent, shares = result["sent"], result["delivered_by_camera"]
    counts = result["received"].items()
    return "\n".join(f"{camera:<14}{received}/{sent} pictures, {shares[camera]:.1%}" for camera, received in counts)


def _planner() -> tuple[NodeProcess, ...]:
    topics = {CAMERA_TOPIC.name: f"/{PROBE}/{{camera}}/image", ODOMETRY_TOPIC.name: f"/{PROBE}/odometry"}
    return planner_processes(topics)


def _probe(duration_s: float) -> NodeProcess:
    return NodeProcess(
        executable=PROBE,
        name=PROBE,
        parameter_file=str(config_file("transport_probe.param.yaml")),
        parameters={"duration_s": duration_s},
        remappings=(("~/input/status", f"/{PLANNER}/output/status"),),
        environment=image_environment(),
    )
