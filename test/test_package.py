"""The package as a whole: messages, executables, metadata."""

import ast
import os
import re
from itertools import pairwise
from pathlib import Path

import pytest
from catkin_pkg.package import parse_package
from sources import MESSAGE_PACKAGES, PACKAGE, ROOT, foreign_imports

from flatrope_planner._version import __version__

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
        "pending": "boolean",
        "consistency": "uint8",
        "consistency_reason": "string",
        "comfort_exceeded": "sequence<string>",
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
        **dict.fromkeys(
            ("rounds", "proposed", "accepted", "committed", "prefill_proposed", "prefill_accepted"), "uint32"
        ),
        **dict.fromkeys(("accepted_at", "acceptance_histogram"), "sequence<uint32>"),
        **dict.fromkeys(("mean_acceptance_length", "acceptance_rate"), "double"),
        "drafter": "string",
        **dict.fromkeys(("vision_ms", "prefill_ms", "reasoning_ms", "action_ms", "total_ms"), "double"),
        **dict.fromkeys(("draft_ms", "verify_ms"), "double"),
        "observation_age_ms": "double",
        **dict.fromkeys(("ticks", "dropped_ticks", "deadline_misses", "fallbacks"), "uint64"),
    },
}

# Foreign module -> where package.xml and requirements/runtime.txt name it, if not by its own name.
ROSDEP_KEYS = {
    "PIL": "python3-pil",
    "cv2": "python3-opencv",
    "lz4": "python3-lz4",
    "numpy": "python3-numpy",
    "rosbags": "python3-rosbags-pip",
    "torch": "python3-pytorch-pip",
    "transformers": "python3-transformers-pip",
    "yaml": "python3-yaml",
}
DISTRIBUTIONS = {
    "PIL": "pillow",
    "cv2": "opencv-python-headless",
    "yaml": "pyyaml",
    "highway_env": "highway-env",
}
# rosdep knows no key for these, requirements/ brings them; and rcl_interfaces comes with rclpy.
WITHOUT_KEY = {"highway_env", "safetensors", "tokenizers", "rcl_interfaces"}
# Imported when an option asks for it; an extra of setup.py.
EXTRAS = {"ray", "torchao"}


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
    for folder in ("config", "launch", "requirements", "security"):
        installed = {path.name for path in (prefix / "share" / PACKAGE / folder).iterdir()}
        assert installed >= {path.name for path in (ROOT / folder).iterdir() if path.is_file()}


def test_package_xml_is_valid_and_complete() -> None:
    warnings: list[str] = []
    package = parse_package(ROOT, warnings=warnings)
    assert warnings == []
    assert package.licenses == ["Apache-2.0"]
    declared = {depend.name for depend in (*package.exec_depends, *package.build_depends)}
    used = {ROSDEP_KEYS.get(module, module) for module in foreign_imports()}
    assert used - WITHOUT_KEY - EXTRAS <= declared


def test_requirements_name_what_is_imported() -> None:
    listed = {line.lower() for line in (ROOT / "requirements/runtime.txt").read_text().splitlines()}
    from_ros = {"ament_index_python", "cv_bridge", "launch", "launch_ros", "rclpy", "rcl_interfaces"} | MESSAGE_PACKAGES
    used = {DISTRIBUTIONS.get(module, module) for module in set(foreign_imports()) - from_ros}
    assert used - EXTRAS <= listed
    for extra in EXTRAS:
        assert f'["{extra}"]' in (ROOT / "setup.py").read_text()


def test_every_requirement_is_pinned() -> None:
    folder = ROOT / "requirements"
    pinned = {re.split("==", line)[0] for line in (folder / "constraints.txt").read_text().splitlines()}
    for file in folder.glob("*.txt"):
        names = {re.split("[=;# ]", line)[0].lower() for line in file.read_text().splitlines()} - {""}
        assert names <= pinned, file.name


def test_versions_agree() -> None:
    assert parse_package(ROOT).version == __version__
    assert 'run_path(f"{PACKAGE}/_version.py")["__version__"]' in (ROOT / "setup.py").read_text()


def test_the_documentation_names_every_node_and_topic() -> None:
    text = (ROOT / "docs" / "topics.md").read_text()
    sources = {path.stem: path.read_text() for path in (ROOT / PACKAGE / "nodes").glob("*.py")}
    nodes = {name for name in sources if name.endswith("_node")} | {"transport_probe"}
    assert nodes <= set(re.findall(r"^## (\w+)$", text, re.MULTILINE))
    topics = {topic for source in sources.values() for topic in re.findall(r'"(~?/[a-z_/]+[a-z])"', source)}
    assert {"~/scene", "~/camera_mounts", "/carla/markers"} <= topics
    assert {topic for topic in topics if f"`{topic}`" not in text} == set()
