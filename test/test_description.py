"""The one description, and that both front ends run all of it."""

import re
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from flatrope_planner.bringup.configuration import config_file
from flatrope_planner.bringup.description import (
    DEMO_ARGUMENTS,
    PLANNER_ARGUMENTS,
    REPLAY_ARGUMENTS,
    NodeProcess,
    demo_environment,
    demo_processes,
    planner_processes,
    replay_processes,
)
from flatrope_planner.bringup.processes import command_line
from flatrope_planner.bringup.recording import RECORD_ARGUMENTS, record_processes
from flatrope_planner.errors import FlatropeError, InputError

ROOT = Path(__file__).resolve().parent.parent


def by_name(processes: tuple[NodeProcess, ...]) -> dict[str, NodeProcess]:
    return {process.name: process for process in processes}


def test_the_planner_listens_to_its_cameras_and_the_diagnostics_to_the_planner() -> None:
    planner, diagnostics = planner_processes({"role": "hero"})
    assert dict(planner.remappings) == {
        "~/input/odometry": "/carla/hero/odometry",
        "~/input/camera/front_wide": "/carla/hero/front_wide/image",
        "~/input/camera/front_tele": "/carla/hero/front_tele/image",
    }
    assert planner.parameters == {"use_sim_time": False}
    assert dict(diagnostics.remappings) == {
        "~/input/speculation": "planner/output/speculation",
        "~/input/status": "planner/output/status",
    }


@pytest.mark.parametrize(
    ("chosen", "set_to"), [("", {}), ("true", {"autostart": True}), ("false", {"autostart": False})]
)
def test_who_starts_the_planner_is_what_its_file_says_unless_it_is_chosen(chosen: str, set_to: dict[str, bool]) -> None:
    planner, _ = planner_processes({"autostart": chosen})
    assert planner.parameters == {"use_sim_time": False, **set_to}


@pytest.mark.parametrize("start", [planner_processes, replay_processes, demo_processes])
def test_the_target_is_what_the_file_says_unless_it_is_chosen(
    start: Callable[[Mapping[str, str]], tuple[NodeProcess, ...]],
) -> None:
    assert "target" not in by_name(start({}))["planner"].parameters
    chosen = by_name(start({"target": "/models/Alpamayo-R1-10B"}))
    assert chosen["planner"].parameters["target"] == "/models/Alpamayo-R1-10B"
    assert "target" not in chosen["diagnostics"].parameters


def test_cameras_come_from_the_parameter_file(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(yaml.safe_dump({"/**": {"ros__parameters": {"cameras": ["roof"]}}}))
    planner, _ = planner_processes(
        {"params_file": str(own), "camera_topic": "/{camera}/raw", "odometry_topic": "/odom"}
    )
    assert planner.remappings == (("~/input/odometry", "/odom"), ("~/input/camera/roof", "/roof/raw"))
    assert planner.parameter_file == str(own)


def test_a_tilde_in_a_path_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    shutil.copy(config_file("planner.param.yaml"), tmp_path / "own.yaml")
    planner, _ = planner_processes({"params_file": "~/own.yaml"})
    assert planner.parameter_file == str(tmp_path / "own.yaml")
    player = replay_processes({"bag": "~/drive.mcap"})[-1]
    assert player.parameters["bag"] == str(tmp_path / "drive.mcap")
    (recorder,) = record_processes({"file": "~/drive.mcap"})
    assert recorder.parameters["file"] == str(tmp_path / "drive.mcap")


def test_a_car_of_ones_own_is_wired_by_arguments() -> None:
    planner, diagnostics = planner_processes(
        {
            "camera_topic": "front_wide=/left/image_raw, front_tele=/zoom/{role}/img",
            "odometry_topic": "/odom",
            "command_topic": "/route/hint",
            "points_topic": "/lidar",
            "node_name": "pilot",
            "namespace": "car/one",
        }
    )
    assert dict(planner.remappings) == {
        "~/input/odometry": "/odom",
        "~/input/camera/front_wide": "/left/image_raw",
        "~/input/camera/front_tele": "/zoom/ego_vehicle/img",
        "~/input/command": "/route/hint",
        "~/input/points": "/lidar",
    }
    assert (planner.name, diagnostics.name) == ("pilot", "pilot_diagnostics")
    assert planner.namespace == diagnostics.namespace == "/car/one"
    assert dict(diagnostics.remappings)["~/input/status"] == "pilot/output/status"
    assert diagnostics.parameters["planner_name"] == "car/one/pilot"
    assert command_line(planner)[4:9] == ["--ros-args", "-r", "__node:=pilot", "-r", "__ns:=/car/one"]


def test_a_replay_is_wired_like_a_planner() -> None:
    planner, _, player = replay_processes({"namespace": "/car", "camera_topic": "front_wide=/a,front_tele=/b"})
    assert planner.namespace == "/car"
    assert ("~/input/camera/front_tele", "/b") in planner.remappings
    assert player.namespace == ""


def with_cameras(folder: Path, *cameras: str) -> str:
    """A parameter file that sets them."""
    own = folder / "own.yaml"
    own.write_text(yaml.safe_dump({"/**": {"ros__parameters": {"cameras": list(cameras)}}}))
    return str(own)


def test_a_demo_with_cameras_that_the_simulator_has_not_is_refused(tmp_path: Path) -> None:
    chosen = {"params_file": with_cameras(tmp_path, "cross_left", "front_wide", "cross_right", "front_tele")}
    words = "own.yaml: cameras are cross_left, front_wide, cross_right, front_tele; the simulator shows "
    with pytest.raises(InputError, match=f"{words}front_wide, front_tele and no others$"):
        demo_processes(chosen)
    # Elsewhere they may well come from somewhere.
    assert len(by_name(planner_processes(chosen))["planner"].remappings) == 5
    demo_processes({"params_file": with_cameras(tmp_path, "front_tele")})


def test_cameras_are_those_of_the_nodes_own_section(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    sections = {"/planner": "left", "/car/pilot": "right"}
    content = {name: {"ros__parameters": {"cameras": [camera]}} for name, camera in sections.items()}
    own.write_text(yaml.safe_dump(content))
    here, _ = planner_processes({"params_file": str(own)})
    there, _ = planner_processes({"params_file": str(own), "node_name": "pilot", "namespace": "/car"})
    assert here.remappings[1][0] == "~/input/camera/left"
    assert there.remappings[1][0] == "~/input/camera/right"


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing\.yaml does not exist, expected a parameter file$"):
        planner_processes({"params_file": str(tmp_path / "missing.yaml")})


@pytest.mark.parametrize(
    ("driver", "topic"),
    [("nano", "/planner/output/trajectory"), ("reference", "/simulator/reference/trajectory")],
)
def test_who_drives_is_a_matter_of_one_topic(driver: str, topic: str) -> None:
    nodes = by_name(demo_processes({"planner": driver, "seed": "7", "family": "lead", "real_time_factor": "0"}))
    assert set(nodes) >= {"planner", "diagnostics", "controller", "simulator"}
    assert dict(nodes["controller"].remappings)["~/input/trajectory"] == topic
    assert nodes["controller"].parameters == {"use_sim_time": True, "simulator_waits": True}
    simulator = nodes["simulator"].parameters
    assert (simulator["family"], simulator["seed"], simulator["real_time_factor"]) == ("lead", 7, 0.0)


@pytest.mark.parametrize(
    ("chosen", "complaint"),
    [
        ({"planer": "nano"}, "there is no argument 'planer'; there are planner,"),
        ({"planner": "me"}, "planner is 'me', expected one of nano, reference"),
        ({"seed": "many"}, r"seed is 'many', expected a number of \[0, 999999\]"),
        ({"seed": "-5"}, r"seed is '-5', expected a number of \[0, 999999\]"),
        ({"seed": "1.5"}, "seed is '1.5', expected a whole number"),
        ({"real_time_factor": "nan"}, r"real_time_factor is 'nan', expected a number of \[0, 100\]"),
        ({"real_time_factor": "inf"}, r"real_time_factor is 'inf', expected a number of \[0, 100\]"),
        ({"role": "a b"}, "role is 'a b', expected a name such as ego_vehicle"),
    ],
)
def test_arguments_that_do_not_fit_are_named(chosen: dict[str, str], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        demo_processes(chosen)


@pytest.mark.parametrize(
    ("chosen", "complaint"),
    [
        ({"camera_topic": "a b"}, "camera_topic is 'a b', which makes 'a b': expected a topic"),
        ({"camera_topic": "/{role}/{name}"}, "camera_topic is '/{role}/{name}', which makes '/ego_vehicle/{name}'"),
        ({"camera_topic": ""}, "camera_topic is ''"),
        ({"camera_topic": "/a//b"}, "camera_topic is '/a//b'"),
        ({"camera_topic": "/cam"}, "makes /cam the topic of front_wide and front_tele; expected {camera} in it"),
        ({"camera_topic": "front_wide=/a,front_tele=/a"}, "each one's own: front_wide=TOPIC,front_tele=TOPIC"),
        ({"camera_topic": "front_wide=/a"}, "which has no topic for the camera front_tele: expected front_tele=TOPIC"),
        ({"camera_topic": "front_wide=/a,front_wide=/b"}, "which has several topics for the camera front_wide"),
        ({"camera_topic": "front_wide=,front_tele=/a"}, "which makes '': expected a topic"),
        ({"command_topic": "a b"}, "command_topic is 'a b'"),
        ({"points_topic": "/7"}, "points_topic is '/7'"),
        ({"node_name": "car/pilot"}, "node_name is 'car/pilot', expected one word such as planner"),
        ({"node_name": ""}, "node_name is ''"),
        ({"namespace": "/car/"}, "namespace is '/car/', expected words such as /car"),
        ({"odometry_topic": "/odom/"}, "odometry_topic is '/odom/'"),
        ({"role": "7"}, "camera_topic is '/carla/{role}/{camera}/image', which makes '/carla/7/front_wide/image'"),
    ],
)
def test_topics_that_ros_would_not_take_are_refused_before_the_start(chosen: dict[str, str], complaint: str) -> None:
    with pytest.raises(InputError, match=re.escape(complaint)):
        planner_processes(chosen)


@pytest.mark.parametrize(
    "content",
    [
        b"\x00\x01\xff\xfe",
        b"\xe9t\xe9",
        b"",
        b"7",
        b"a: [",
        b"/**: 7",
        b"/**: {ros__parameters: 7}",
        b"/**: {ros__parameters: [1, 2]}",
        b"/**: {ros__parameters: text}",
        b"/**: {ros__parameters: }",
        b"/**: {ros__parameters: {cameras: 7}}",
        b"/**: {ros__parameters: {cameras: front}}",
        b"/**: {ros__parameters: {cameras: []}}",
        b"/**: {ros__parameters: {cameras: [1, 2]}}",
        b"/**: {ros__parameters: {cameras: [front wide]}}",
    ],
)
def test_a_parameter_file_that_is_none_is_one_line_with_its_name(tmp_path: Path, content: bytes) -> None:
    own = tmp_path / "own.yaml"
    own.write_bytes(content)
    with pytest.raises(FlatropeError, match=r"own\.yaml") as caught:
        planner_processes({"params_file": str(own)})
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("distro", "variables"),
    [
        ("humble", {"ROS_LOCALHOST_ONLY": "1"}),
        ("jazzy", {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}),
        (None, {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}),
    ],
)
def test_traffic_stays_on_this_machine_in_every_distribution(
    monkeypatch: pytest.MonkeyPatch, distro: str | None, variables: dict[str, str]
) -> None:
    monkeypatch.delenv("ROS_DISTRO", raising=False)
    if distro is not None:
        monkeypatch.setenv("ROS_DISTRO", distro)
    assert demo_environment() == variables


def test_who_sends_pictures_has_shared_memory_for_them() -> None:
    nodes = by_name(demo_processes({}))
    for name in ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE"):
        assert nodes["simulator"].environment[name] == str(config_file("fastdds.xml"))


def test_command_line_keeps_the_type_of_every_value() -> None:
    process = NodeProcess(
        executable="controller_node",
        name="c",
        parameter_file="/p.yaml",
        parameters={"a": True, "b": 2, "c": 0.5, "d": "1", "e": "/Anna's: #1 {a}"},
        remappings=(("~/x", "/y"),),
    )
    assert command_line(process) == [
        *(sys.executable, "-m", "flatrope_planner.nodes", "controller_node", "--ros-args"),
        *("-r", "__node:=c", "--params-file", "/p.yaml"),
        *("-p", "a:=true", "-p", "b:=2", "-p", "c:=0.5", "-p", "d:='1'", "-p", "e:='/Anna''s: #1 {a}'"),
        *("-r", "~/x:=/y"),
    ]


@pytest.mark.parametrize(
    ("file_name", "processes", "arguments"),
    [
        ("planner.launch.py", planner_processes({}), PLANNER_ARGUMENTS),
        ("demo.launch.py", demo_processes({}), DEMO_ARGUMENTS),
        ("replay.launch.py", replay_processes({}), REPLAY_ARGUMENTS),
        ("record.launch.py", record_processes({}), RECORD_ARGUMENTS),
    ],
)
def test_launch_files_run_the_same(file_name: str, processes: tuple[NodeProcess, ...], arguments: tuple) -> None:  # type: ignore[type-arg]
    pytest.importorskip("launch_ros")
    from launch.actions import DeclareLaunchArgument, OpaqueFunction
    from launch.launch_description_sources import get_launch_description_from_python_launch_file

    from launch import LaunchContext

    description = get_launch_description_from_python_launch_file(str(ROOT / "launch" / file_name))
    context = LaunchContext()
    declared, nodes = [], []
    for entity in description.entities:
        made = entity.visit(context)
        if isinstance(entity, DeclareLaunchArgument):
            declared.append((entity.name, entity.choices))
        elif isinstance(entity, OpaqueFunction):
            nodes = made
    assert declared == [(argument.name, list(argument.choices) or None) for argument in arguments]
    assert [(node.node_package, node.node_executable) for node in nodes] == [
        ("flatrope_planner", process.executable) for process in processes
    ]
