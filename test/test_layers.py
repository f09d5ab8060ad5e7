"""Dependencies point one way: read from the sources, lazy imports included."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "flatrope_planner"
MIDDLEWARE = {"rclpy", "launch", "launch_ros"}
MESSAGES = {"builtin_interfaces", "diagnostic_msgs", "geometry_msgs", "nav_msgs", "sensor_msgs", "std_msgs"}
LEARNING = {"torch", "transformers"}
OWN = "flatrope_planner"

# Room -> what it may not import. `OWN.x` stands for another room, `OWN.msg` for our messages.
FORBIDDEN = {
    "nodes": {"torch", "transformers", "launch", "launch_ros"},
    "conversion": MIDDLEWARE | LEARNING | {f"{OWN}.nodes", f"{OWN}.bringup", f"{OWN}.vla", f"{OWN}.speculation"},
    "bringup": {"rclpy"} | LEARNING | {f"{OWN}.nodes", f"{OWN}.vla"},
    "planning": MIDDLEWARE | MESSAGES | {f"{OWN}.msg", f"{OWN}.nodes", f"{OWN}.conversion", f"{OWN}.bringup"},
    "simulation": MIDDLEWARE | MESSAGES | LEARNING | {f"{OWN}.msg", f"{OWN}.nodes", f"{OWN}.conversion", f"{OWN}.vla"},
    "speculation": MIDDLEWARE
    | MESSAGES
    | {f"{OWN}.{room}" for room in ("msg", "nodes", "conversion", "vla", "simulation")},
    "vla": MIDDLEWARE | MESSAGES | {f"{OWN}.msg", f"{OWN}.nodes", f"{OWN}.conversion", f"{OWN}.simulation"},
    "training": MIDDLEWARE | MESSAGES | {f"{OWN}.msg", f"{OWN}.nodes", f"{OWN}.conversion"},
}


def imported(path: Path) -> Iterator[str]:
    """Dotted names of everything a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("room", FORBIDDEN)
def test_a_room_imports_nothing_from_above(room: str) -> None:
    offences = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted((ROOT / room).rglob("*.py"))
        for name in imported(path)
        if any(f"{name}.".startswith(f"{forbidden}.") for forbidden in FORBIDDEN[room])
    ]
    assert not offences


def test_only_the_nodes_import_rclpy_and_only_one_file_imports_launch() -> None:
    users: dict[str, set[str]] = {"rclpy": set(), "launch": set()}
    for path in ROOT.rglob("*.py"):
        roots = {name.partition(".")[0] for name in imported(path)}
        for library in users.keys() & roots:
            users[library].add(str(path.relative_to(ROOT)))
    assert {user.partition("/")[0] for user in users["rclpy"]} == {"nodes"}
    assert users["launch"] == {"bringup/launching.py"}
