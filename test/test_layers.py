"""Which room may import what: read from the sources, imports inside functions included."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from sources import MESSAGE_PACKAGES, MODULES, PACKAGE, ROOT, foreign_imports, imports_in, imports_of, room_of

CORE = {"arguments", "dimensions", "domain", "errors", "folder_lock", "interruption", "progress", "workers"}
# Room -> rooms it may import; everything not listed is forbidden. Read from the bottom up, no arrow points back.
ROOMS = {
    "cli": {"commands", "doctor", "errors", "interruption", "_version"},
    "commands": {"bringup", "doctor", "evaluation", "training"} | CORE,
    "nodes": {"bringup", "conversion", "evaluation", "msg", "planning", "simulation", "speculation", "vla"} | CORE,
    "doctor": {"bringup", "planning", "speculation", "vla", "_version"} | CORE,
    "evaluation": {"bringup", "conversion", "planning", "simulation", "speculation", "training", "vla", "_version"}
    | CORE,
    "training": {"planning", "simulation", "speculation", "vla"} | CORE,
    "conversion": {"msg", "planning", "simulation"} | CORE,
    "bringup": {"arguments", "dimensions", "errors", "interruption"},
    "vla": {"planning", "speculation"} | CORE,
    "simulation": {"planning"} | CORE,
    "planning": {"speculation"} | CORE,
    "speculation": CORE,
    "arguments": set(),
    "domain": {"dimensions", "errors"},
    "dimensions": set(),
    "errors": set(),
    "folder_lock": {"errors"},
    "interruption": set(),
    "progress": set(),
    "workers": {"errors", "interruption"},
    "_version": set(),
    "__init__": set(),
}

ROS_ROOMS = {"nodes", "conversion"}
# Foreign module -> rooms that may import it.
RESTRICTED = {
    "rclpy": {"nodes"},
    "rcl_interfaces": {"nodes"},
    "launch": {"bringup"},
    "launch_ros": {"bringup"},
    "cv_bridge": {"conversion"},
    "highway_env": {"simulation"},
    "ray": {"evaluation"},
    "torch": {"vla", "speculation", "training", "evaluation", "doctor"},
    "transformers": {"vla", "speculation", "training", "evaluation"},
    "tokenizers": {"vla"},
    **dict.fromkeys(MESSAGE_PACKAGES, ROS_ROOMS),
}
# Importing these loads PyTorch; all others start without it. The doctor tries whether it can be loaded.
TORCH_ROOMS = RESTRICTED["torch"] - {"doctor"} | {"planning"}


def loaded_with(path: Path, seen: set[Path]) -> set[str]:
    """Foreign packages that are loaded when the module is imported: not those of functions and of the type checker."""
    if path in seen:
        return set()
    seen.add(path)
    tree = ast.parse(path.read_text())
    tree.body = [node for node in tree.body if not is_not_run(node)]
    foreign = set()
    for name in imports_in(tree):
        if name.split(".")[0] == PACKAGE:
            for file in files_of(name):
                foreign |= loaded_with(file, seen)
        else:
            foreign.add(name.split(".")[0])
    return foreign


def is_not_run(node: ast.stmt) -> bool:
    """Whether importing a module leaves the statement's own imports alone."""
    checker_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    return checker_only or isinstance(node, ast.FunctionDef | ast.ClassDef)


def files_of(name: str) -> Iterator[Path]:
    """The package files that importing a dotted name runs."""
    path = ROOT
    for part in name.split("."):
        path /= part
        yield from (file for file in (path.with_suffix(".py"), path / "__init__.py") if file.exists())


def test_every_room_has_its_place() -> None:
    assert {room_of(path) for path in MODULES} <= set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT / PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    ours = {name.split(".")[1] for name in imports_of(path) if name.startswith(f"{PACKAGE}.")}
    assert ours - {room_of(path)} <= ROOMS[room_of(path)]


def test_room_rules_have_no_circle() -> None:
    left = {room: allowed - {"msg"} for room, allowed in ROOMS.items()}
    while left:
        ground = {room for room, allowed in left.items() if not allowed & set(left)}
        assert ground, f"a circle among {sorted(left)}"
        left = {room: allowed for room, allowed in left.items() if room not in ground}


def test_foreign_modules_stay_in_their_rooms() -> None:
    for module, rooms in foreign_imports().items():
        assert rooms <= RESTRICTED.get(module, rooms), module


@pytest.mark.parametrize("room", sorted(set(ROOMS) - ROS_ROOMS))
def test_only_ros_rooms_load_ros(room: str) -> None:
    seen: set[Path] = set()
    loaded = set().union(*(loaded_with(path, seen) for path in MODULES if room_of(path) == room))
    assert not loaded & {"rclpy", *MESSAGE_PACKAGES}


@pytest.mark.parametrize("room", sorted(set(ROOMS) - TORCH_ROOMS))
def test_torch_loads_only_where_it_is_needed(room: str) -> None:
    seen: set[Path] = set()
    loaded = set().union(*(loaded_with(path, seen) for path in MODULES if room_of(path) == room))
    assert not loaded & {"torch", "transformers"}


def test_launch_is_imported_in_one_place() -> None:
    users = {path.name for path in MODULES if any(name.split(".")[0] == "launch" for name in imports_of(path))}
    assert users == {"launching.py"}
