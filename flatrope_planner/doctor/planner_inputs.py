"""A running planner: what it is fed with, by which clock it goes, and what it says of itself."""

import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from flatrope_planner.bringup.configuration import config_file
from flatrope_planner.doctor.finding import Finding, Mark
from flatrope_planner.doctor.probe import Probe
from flatrope_planner.errors import SetupError

MODULE, CHECK = "flatrope_planner.nodes.planner_probe", "planner"
DEFAULT_NAME = "planner"
TIMEOUT_S = 30.0
# Without these no plan; other inputs may be absent.
REQUIRED = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage", "nav_msgs/msg/Odometry")
ACTIVE = "active"
ERROR = 2
_LEVELS = {1: Mark.WARN, ERROR: Mark.FAIL, 3: Mark.WARN}


def start_planner_probe(name: str | None) -> Probe:
    """A process that asks about the planner of that name in the user's own domain."""
    return Probe(MODULE, name or DEFAULT_NAME)


def check_planner(probe: Probe, name: str | None) -> Iterator[Finding]:
    """What the process saw; that no planner runs is a fault only where one was named."""
    try:
        facts = probe.facts(TIMEOUT_S)
    except SetupError as err:
        yield Finding(CHECK, Mark.WARN, f"could not be asked: {err}", "see the lines on ROS and middleware above")
        return
    if "planner" not in facts:
        yield Finding(CHECK, Mark.WARN, f"could not be asked: {facts['trouble']}", "ask again", facts)
    elif facts["planner"] is None:
        yield _absent(facts["nodes"], name)
    else:
        yield from findings(facts)


def findings(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """The findings that the facts of a running planner make."""
    name, state = facts["planner"], facts["state"]
    if state in (None, ACTIVE):
        yield Finding(CHECK, Mark.OK, f"{name} runs{'' if state is None else ', active'}", facts={"name": name})
    else:
        remedy = _way_to_active(name, state, facts["status"])
        yield Finding(CHECK, Mark.WARN, f"{name} is {state}: it does not plan", remedy, {"name": name, "state": state})
    yield from map(_input, facts["inputs"])
    yield _clock(facts)
    for task, status in facts["status"].items():
        if status["level"] in _LEVELS:
            words, mark = f"says of {task.rpartition(': ')[2]}: {status['message']}", _LEVELS[status["level"]]
            yield Finding(CHECK, mark, words, "it says more on ~/output/status and /diagnostics", dict(status))


def _way_to_active(name: str, state: str, status: Mapping[str, Any]) -> str:
    """What lets a planner plan that is not active."""
    failed = any(task.endswith(": model") and said["level"] == ERROR for task, said in status.items())
    if failed:
        # Configuring it again would only fail again, and so would its parameter autostart.
        return "its model could not be loaded, the reason stands below: mend that and start it again"
    step = "configure" if state == "unconfigured" else "activate"
    by_hand = f", or ros2 lifecycle set {name} {step}" if shutil.which("ros2") else ""
    return f"it waits for a manager to {step} it: start it with autostart:=true{by_hand}"


def _absent(nodes: list[str], name: str | None) -> Finding:
    others = f"; there are {', '.join(nodes[:8])}" if nodes else ", nor any other node"
    found = f"no node {name or DEFAULT_NAME!r} in this domain{others}"
    remedy = "start it (`flatrope up`), or look in its domain: ROS_DOMAIN_ID, and discovery as above"
    return Finding(CHECK, Mark.FAIL if name else Mark.OK, found, remedy, {"name": None, "nodes": nodes})


def _input(source: Mapping[str, Any]) -> Finding:
    topic, kind, publishers = source["topic"], source["type"], source["publishers"]
    check, facts = "input", dict(source)
    if not publishers:
        if kind not in REQUIRED:
            return Finding(check, Mark.OK, f"{topic}: no publisher, and none is needed", facts=facts)
        if source["elsewhere"]:
            other, _, remedy = source["elsewhere"].partition(": ")
            return Finding(check, Mark.FAIL, f"no publisher on {topic}, but {other}", remedy, facts)
        alike = f"; {kind} comes on {', '.join(source['alike'][:6])}" if source["alike"] else ""
        remedy = "start what publishes it, or remap the input (camera_topic:=, odometry_topic:=)"
        return Finding(check, Mark.FAIL, f"no publisher on {topic}{alike}", remedy, facts)
    others = sorted({each["type"] for each in publishers} - {kind})
    if others:
        remedy = "remap the input to another topic; for compressed pictures set the parameter compressed"
        found = f"type mismatch on {topic}: {', '.join(others)} is published, the planner wants {kind}"
        return Finding(check, Mark.FAIL, found, remedy, facts)
    misfits = [f"{each['node']}: {each['misfit']}" for each in publishers if each["misfit"]]
    if misfits:
        remedy = "let the publisher offer what the planner asks for, or change the planner's QoS"
        return Finding(check, Mark.FAIL, f"QoS mismatch on {topic}: {'; '.join(misfits)}", remedy, facts)
    if source["heard"] == 0 and kind in REQUIRED:
        nodes = ", ".join(sorted({each["node"] for each in publishers}))
        remedy = "is the source paused or out of order? Across containers: the same /dev/shm, or Fast DDS by UDP alone"
        if kind == "sensor_msgs/msg/Image":
            # Its own shared memory holds half a megabyte.
            profile = config_file("fastdds.xml")
            remedy += f"; pictures over 0.5 MB by Fast DDS: start what sends them with the profile {profile}"
        return Finding(check, Mark.FAIL, f"publisher but no data on {topic} (of {nodes})", remedy, facts)
    return Finding(check, Mark.OK, f"{topic} arrives", facts=facts)


def _clock(facts: Mapping[str, Any]) -> Finding:
    clock, simulated = facts["clock"], facts["use_sim_time"]
    told = {"use_sim_time": simulated, "publishers": len(clock["publishers"]), "heard": clock["heard"]}
    if simulated is None:
        words = "the planner does not say whether it uses simulated time"
        return Finding("time", Mark.WARN, words, "it may be busy or hang: ask again, look at its log", told)
    if simulated and not clock["publishers"]:
        remedy = "start the simulator, `ros2 bag play --clock`, or the planner with use_sim_time:=false"
        return Finding("time", Mark.FAIL, "use_sim_time is true, but nobody publishes /clock", remedy, told)
    if simulated and not clock["heard"]:
        return Finding("time", Mark.FAIL, "/clock has a publisher, but stands still", "is it paused?", told)
    if not simulated and clock["publishers"]:
        remedy = "start the planner with use_sim_time:=true"
        return Finding("time", Mark.WARN, "/clock is published, but use_sim_time is false", remedy, told)
    return Finding("time", Mark.OK, "simulated, from /clock" if simulated else "wall time", facts=told)
