"""The package as a whole: messages, executables, metadata, and which room may import what."""

import ast
import os
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from catkin_pkg.package import parse_package

from flatrope_planner._version import __version__

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "flatrope_planner"
MODULES = sorted((ROOT / PACKAGE).rglob("*.py"))
MESSAGE_FILES = sorted((ROOT / "msg").iterdir())

HEADER = {"header": "std_msgs/Header"}
# Written down here once more on purpose: a change of a message is a change for everyone who recorded one.
MESSAGES = {
    "PlannedPoint": {
        "time_from_start": "builtin_interfaces/Duration",
        "pose": "geometry_msgs/Pose",
        **dict.fromkeys(("speed", "acceleration", "curvature", "yaw_rate"), "double"),
    },
    "PlannedTrajectory": {
        **HEADER,
        "ego_pose": "geometry_msgs/Pose",
        "points": "sequence<flatrope_planner/PlannedPoint>",
        "status": "uint8",
        **dict.fromkeys(("status_reason", "target"), "string"),
    },
    "Rationale": {
        **HEADER,
        "text": "string",
        "tokens": "sequence<flatrope_planner/RationaleToken>",
        "complete": "boolean",
    },
    "RationaleToken": {"text": "string", "source": "string", "round": "uint32", "margin": "double"},
    "SpeculationStats": {
        **HEADER,
        **dict.fromkeys(("rounds", "proposed", "accepted", "committed"), "uint32"),
        **dict.fromkeys(("accepted_at", "acceptance_histogram"), "sequence<uint32>"),
        **dict.fromkeys(("mean_acceptance_length", "acceptance_rate"), "double"),
        "drafter": "string",
        **dict.fromkeys(("vision_ms", "prefill_ms", "reasoning_ms", "action_ms", "total_ms"), "double"),
        "observation_age_ms": "double",
        **dict.fromkeys(("ticks", "dropped_ticks"), "uint64"),
    },
}

CORE = {"dimensions", "domain", "errors", "progress"}
# Room -> rooms it may import; everything not listed is forbidden. Read from the bottom up, no arrow points back.
ROOMS = {
    "cli": {"bringup", "evaluation", "planning", "simulation", "speculation", "training", "vla", "_version"} | CORE,
    "nodes": {"bringup", "conversion", "evaluation", "msg", "planning", "simulation", "speculation", "vla"} | CORE,
    "evaluation": {"bringup", "planning", "simulation", "speculation", "training", "vla"} | CORE,
    "training": {"planning", "simulation", "speculation", "vla"} | CORE,
    "conversion": {"msg", "planning", "simulation"} | CORE,
    "bringup": {"dimensions", "errors"},
    "vla": {"planning", "speculation"} | CORE,
    "simulation": {"planning"} | CORE,
    "planning": {"speculation"} | CORE,
    "speculation": CORE,
    "domain": {"dimensions", "errors"},
    "dimensions": set(),
    "errors": set(),
    "progress": set(),
    "_version": set(),
    "__init__": set(),
}

MESSAGE_PACKAGES = {
    *("builtin_interfaces", "diagnostic_msgs", "geometry_msgs", "nav_msgs", "rosgraph_msgs", "sensor_msgs"),
    *("std_msgs", "visualization_msgs"),
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
    "torch": {"vla", "speculation", "training", "evaluation"},
    "transformers": {"vla", "speculation", "training", "evaluation"},
    "tokenizers": {"vla"},
    **dict.fromkeys(MESSAGE_PACKAGES, ROS_ROOMS),
}
TORCH_ROOMS = RESTRICTED["torch"]

# Foreign module -> where package.xml and requirements/runtime.txt name it, if not by its own name.
ROSDEP_KEYS = {
    "cv2": "python3-opencv",
    "matplotlib": "python3-matplotlib",
    "numpy": "python3-numpy",
    "pydantic": "python3-pydantic",
    "rosbags": "python3-rosbags-pip",
    "torch": "python3-pytorch-pip",
    "tqdm": "python3-tqdm",
    "transformers": "python3-transformers-pip",
    "yaml": "python3-yaml",
}
DISTRIBUTIONS = {"cv2": "opencv-python-headless", "yaml": "pyyaml", "highway_env": "highway-env"}
# rosdep knows no key for these, requirements/ brings them; and rcl_interfaces comes with rclpy.
WITHOUT_KEY = {"highway_env", "safetensors", "tokenizers", "rcl_interfaces"}


def room_of(path: Path) -> str:
    return path.relative_to(ROOT / PACKAGE).parts[0].removesuffix(".py")


def imports_in(tree: ast.AST) -> Iterator[str]:
    """Dotted names of everything imported in the tree, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = str(node.module)
            yield from (f"{module}.{alias.name}" for alias in node.names)


def imports_of(path: Path) -> set[str]:
    return set(imports_in(ast.parse(path.read_text())))


def loaded_with(path: Path, seen: set[Path]) -> set[str]:
    """Foreign packages that are loaded when the module is imported: not those of functions and of the type checker."""
    if path in seen:
        return set()
    seen.add(path)
    tree = ast.parse(path.read_text())
    tree.body = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
    tree.body = [
        node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
    ]
    foreign = set()
    for name in imports_in(tree):
        if name.split(".")[0] == PACKAGE:
            for file in files_of(name):
                foreign |= loaded_with(file, seen)
        else:
            foreign.add(name.split(".")[0])
    return foreign


def files_of(name: str) -> Iterator[Path]:
    """The package files that importing a dotted name runs."""
    path = ROOT
    for part in name.split("."):
        path /= part
        yield from (file for file in (path.with_suffix(".py"), path / "__init__.py") if file.exists())


def foreign_imports() -> dict[str, set[str]]:
    """Foreign top-level module -> rooms that import it."""
    found: dict[str, set[str]] = {}
    for path in MODULES:
        for name in imports_of(path):
            top = name.split(".")[0]
            if top != PACKAGE and top not in sys.stdlib_module_names:
                found.setdefault(top, set()).add(room_of(path))
    return found


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


def test_msg_folder_holds_messages_only() -> None:
    assert {path.name for path in MESSAGE_FILES} == {f"{name}.msg" for name in MESSAGES}
    assert not (ROOT / PACKAGE / "msg").exists(), "generated messages must not meet a folder of that name"


def test_cmake_generates_every_message() -> None:
    listed = re.findall(r"^\s*msg/(\w+)\.msg$", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(MESSAGES)


@pytest.mark.parametrize("path", MESSAGE_FILES, ids=lambda path: str(path.stem))
def test_every_field_is_explained(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert lines[0].startswith("# ")
    for above, line in pairwise(lines):
        if line and not line.startswith("#"):
            assert re.fullmatch(r"# \S.{10,}", above), f"no comment over {line!r}"


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_messages_have_their_fields(name: str) -> None:
    messages = pytest.importorskip("flatrope_planner.msg", reason="the package is not built")
    assert getattr(messages, name).get_fields_and_field_types() == MESSAGES[name]


def test_messages_survive_the_wire() -> None:
    messages = pytest.importorskip("flatrope_planner.msg", reason="the package is not built")
    serialization = pytest.importorskip("rclpy.serialization")
    trajectory = messages.PlannedTrajectory(
        points=[messages.PlannedPoint(speed=3.25, curvature=-0.125)],
        status=messages.PlannedTrajectory.FALLBACK,
        status_reason="leaves the road",
    )
    data = serialization.serialize_message(trajectory)
    assert serialization.deserialize_message(data, messages.PlannedTrajectory) == trajectory


def executables() -> dict[str, Path]:
    """Name of each executable -> file of the module that has its main()."""
    nodes = (path for path in (ROOT / PACKAGE / "nodes").glob("[!_]*.py") if has_main(path))
    return {"flatrope": ROOT / PACKAGE / "cli.py", **{path.stem: path for path in nodes}}


def has_main(path: Path) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in ast.parse(path.read_text()).body)


def test_executables_have_a_main() -> None:
    assert all(map(has_main, executables().values()))


def test_both_builds_install_the_same_executables() -> None:
    cmake = (ROOT / "CMakeLists.txt").read_text()
    nodes = re.findall(r"foreach\(node ([\w ]+)\)", cmake)[0].split()
    assert {*nodes, *re.findall(r"install_executable\((\w+) cli ", cmake)} == set(executables())
    constants = [node.value for node in ast.parse((ROOT / "setup.py").read_text()).body if isinstance(node, ast.Assign)]
    assert ast.literal_eval(constants[-1]) == tuple(nodes)


def test_executables_are_installed() -> None:
    messages = pytest.importorskip("flatrope_planner.msg", reason="the package is not built")
    prefix = next(path for path in Path(messages.__file__).parents if (path / "share/ament_index").is_dir())
    for name in executables():
        assert os.access(prefix / "lib" / PACKAGE / name, os.X_OK), name
    for folder in ("config", "launch"):
        installed = {path.name for path in (prefix / "share" / PACKAGE / folder).iterdir()}
        assert installed >= {path.name for path in (ROOT / folder).iterdir() if path.is_file()}


def test_package_xml_is_valid_and_complete() -> None:
    warnings: list[str] = []
    package = parse_package(ROOT, warnings=warnings)
    assert warnings == []
    assert package.licenses == ["Apache-2.0"]
    declared = {depend.name for depend in (*package.exec_depends, *package.build_depends)}
    used = {ROSDEP_KEYS.get(module, module) for module in foreign_imports()}
    assert used - WITHOUT_KEY <= declared


def test_requirements_name_what_is_imported() -> None:
    listed = {line.lower() for line in (ROOT / "requirements/runtime.txt").read_text().splitlines()}
    from_ros = {"ament_index_python", "cv_bridge", "launch", "launch_ros", "rclpy", "rcl_interfaces"} | MESSAGE_PACKAGES
    used = {DISTRIBUTIONS.get(module, module) for module in set(foreign_imports()) - from_ros}
    assert used <= listed


def test_every_requirement_is_pinned() -> None:
    folder = ROOT / "requirements"
    pinned = {re.split("==", line)[0] for line in (folder / "constraints.txt").read_text().splitlines()}
    for file in folder.glob("*.txt"):
        names = {re.split("[=;# ]", line)[0].lower() for line in file.read_text().splitlines()} - {""}
        assert names <= pinned, file.name


def test_versions_agree() -> None:
    assert parse_package(ROOT).version == __version__
    assert 'run_path(f"{PACKAGE}/_version.py")["__version__"]' in (ROOT / "setup.py").read_text()
