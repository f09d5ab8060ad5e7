"""Real messages between two processes of this machine, through the middleware, in a domain of their own."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from flatrope_planner.bringup.description import demo_environment, image_environment
from flatrope_planner.doctor.finding import Finding, Mark
from flatrope_planner.doctor.probe import Probe
from flatrope_planner.errors import SetupError

MODULE, CHECK = "flatrope_planner.nodes.loopback", "loop-back"
TIMEOUT_S = 30.0
# Ports of these lie below those that Linux hands out by itself.
FIRST_DOMAIN, DOMAINS = 50, 50
# Later than this, something holds the middleware up; it takes well below a second.
LATE_S = 5.0
# Some are lost while two processes find each other.
FEW_LOST = 0.1


def start_loopback() -> Probe:
    """Two processes that send to each other, as the launch files would start them."""
    taken = os.environ.get("ROS_DOMAIN_ID", "")
    domain = next(
        str(number)
        for number in (FIRST_DOMAIN + (os.getpid() + step) % DOMAINS for step in range(2))
        if str(number) != taken
    )
    return Probe(MODULE, environment={**demo_environment(), **image_environment(), "ROS_DOMAIN_ID": domain})


def check_loopback(probe: Probe) -> Iterator[Finding]:
    """What has come through."""
    try:
        facts = probe.facts(TIMEOUT_S)
    except SetupError as err:
        remedy = "source ROS 2, or `make setup`; if it is, look at the lines on middleware and shared memory above"
        yield Finding(CHECK, Mark.FAIL, f"the middleware does not run: {err}", remedy)
        return
    yield verdict(facts)


def verdict(facts: Mapping[str, Any]) -> Finding:
    """The finding that the probe's facts make."""
    if "trouble" in facts and not facts.get("small"):
        return Finding(CHECK, Mark.FAIL, str(facts["trouble"]), "see the lines on middleware above", facts)
    if not facts["small"]:
        remedy = "`flatrope doctor --clean`; let 127.0.0.1 pass in the firewall; try another RMW_IMPLEMENTATION"
        return Finding(CHECK, Mark.FAIL, "no message from one process reaches another", remedy, facts)
    first = f"the first message after {facts['first_s']:.1f} s"
    pictures = f"{facts['pictures']} of {facts['pictures_sent']} pictures of 1600x900"
    remedy = "more room in /dev/shm (see above), `flatrope doctor --clean`, config/fastdds.xml for the sender"
    if not facts["pictures"]:
        return Finding(CHECK, Mark.FAIL, f"small messages come, but no picture of 1600x900 ({first})", remedy, facts)
    if facts["pictures"] < (1.0 - FEW_LOST) * facts["pictures_sent"]:
        return Finding(CHECK, Mark.WARN, f"{pictures}, {first}", remedy, facts)
    if facts["first_s"] > LATE_S:
        remedy = "`flatrope doctor --clean`; end what keeps the machine busy"
        return Finding(CHECK, Mark.WARN, f"{first}, {pictures}", remedy, facts)
    return Finding(CHECK, Mark.OK, f"{facts['small']} messages and {pictures}, {first}, {facts['rmw']}", facts=facts)
