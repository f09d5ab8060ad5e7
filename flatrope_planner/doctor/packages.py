"""Python and the packages the planner stands on, against the versions it was tested with."""

import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from flatrope_planner.doctor.finding import Finding, Mark
from flatrope_planner.doctor.places import shared_folder

OLDEST, NEWEST_TESTED = (3, 10), (3, 14)
INSTALL = "pip install -r {0}/runtime.txt -c {0}/constraints.txt, or `make setup` in a checkout"
CHECK = "packages"


def check_python() -> Iterator[Finding]:
    """Whether this Python is one of those that ROS 2 comes with."""
    version = platform.python_version()
    found = f"Python {version}, {sys.executable}"
    if not OLDEST <= sys.version_info[:2] <= NEWEST_TESTED:
        yield Finding("python", Mark.WARN, found, "use Python 3.10 to 3.14", {"version": version})
    else:
        yield Finding("python", Mark.OK, found, facts={"version": version})


def check_packages() -> Iterator[Finding]:
    """Whether every package is there, at the version it was tested at."""
    folder = shared_folder("requirements")
    if folder is None:
        yield Finding(CHECK, Mark.WARN, "requirements/ was not found", "build the package anew: `make setup`, colcon")
        return
    pins, names = pinned(folder / "constraints.txt"), required(folder / "runtime.txt")
    installed = {name: _version(name) for name in names}
    missing = [name for name, version in installed.items() if version is None]
    other = {
        name: f"{version} (tested: {pins[name]})"
        for name, version in installed.items()
        if version is not None and name in pins and version.partition("+")[0] != pins[name]
    }
    facts = {"installed": installed, "tested": {name: pins.get(name) for name in names}}
    remedy = INSTALL.format(folder)
    if missing:
        yield Finding(CHECK, Mark.FAIL, f"not installed: {', '.join(missing)}", remedy, facts)
    if other:
        words = ", ".join(f"{name} {versions}" for name, versions in other.items())
        yield Finding(CHECK, Mark.WARN, f"another version than tested: {words}", remedy, facts)
    if not missing and not other:
        yield Finding(CHECK, Mark.OK, f"all {len(names)} at the versions they were tested at", facts=facts)


def required(file: Path) -> list[str]:
    """Names in a file of requirements, in small letters."""
    return [line.strip().lower() for line in file.read_text().splitlines() if line.strip() and line[0] != "#"]


def pinned(file: Path, python: tuple[int, int] = sys.version_info[:2]) -> dict[str, str]:
    """Version of each package that the constraints give for a Python: `name==1.2; python_version < "3.11"`."""
    pins = {}
    for line in file.read_text().splitlines():
        found = re.fullmatch(r"([\w.-]+)==([^;\s]+)\s*(?:;\s*python_version\s*(<|>=)\s*\"3\.(\d+)\")?", line.strip())
        if not found:
            continue
        name, version, sign, minor = found.groups()
        holds = sign is None or (python < (3, int(minor))) == (sign == "<")
        if holds:
            pins[name.lower()] = version
    return pins


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
