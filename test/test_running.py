"""Each node as a process: up, asked to end, gone without a trace."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from rclpy.node import Node
from ros import closing, ros, spin_until

NODES = ("planner", "diagnostics", "controller", "simulator")
END_TIMEOUT_S = 15.0


@contextmanager
def started(executable: str, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
    child = subprocess.Popen(
        [sys.executable, "-m", "flatrope_planner.nodes", executable, "--ros-args", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nodes_end_well_however_often_they_are_asked(number: signal.Signals) -> None:
    with ExitStack() as stack, ros():
        children = {name: stack.enter_context(started(f"{name}_node")) for name in NODES}
        test = Node("test")
        with closing(test) as executor:
            spin_until(executor, lambda: set(test.get_node_names()) >= set(NODES))
        for child in children.values():
            os.kill(child.pid, number)
        time.sleep(0.1)
        for child in children.values():
            if child.poll() is None:
                os.kill(child.pid, number)
        for name, child in children.items():
            output, _ = child.communicate(timeout=END_TIMEOUT_S)
            assert (name, child.returncode, "Traceback" in output) == (name, 0, False), output


@pytest.mark.parametrize(
    ("node", "arguments", "words"),
    [
        ("controller_node", ("-r", "~/input/odometry:=/a b"), "Couldn't parse remap rule: '-r ~/input/odometry:=/a b'"),
        ("controller_node", ("--params-file", "none.yaml"), "Couldn't parse params file: '--params-file none.yaml'"),
        ("controller_node", ("--nonsense",), "unknown ROS arguments: ['--nonsense']"),
        ("simulator_node", ("-p", "role:=a b"), "Invalid topic name"),
        ("recorder_node", ("-p", "file:=/proc/self/nowhere/run.mcap"), "/proc/self/nowhere/run.recording cannot be"),
    ],
)
def test_what_ros_refuses_is_told_without_a_traceback(node: str, arguments: tuple[str, ...], words: str) -> None:
    with started(node, *arguments) as child:
        output, _ = child.communicate(timeout=END_TIMEOUT_S)
    assert child.returncode == 1
    *of_ros, line = output.splitlines()
    assert words in line
    assert ".c:" not in line
    assert all("[rcl]" in each for each in of_ros), output


@pytest.mark.parametrize("name", ["", "running", "plannernode"])
def test_a_node_that_does_not_exist_is_one_line_with_those_that_do(name: str) -> None:
    command = [sys.executable, "-m", "flatrope_planner.nodes", *([name] if name else [])]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr == (
        f"there is no node {name!r}; there are controller_node, diagnostics_node, planner_node, recorder_node, "
        "simulator_node, transport_probe\n"
    )


def test_a_bad_parameter_is_one_line_and_exit_code_1() -> None:
    with started("controller_node", "-p", "rate_hz:=-5.0") as child:
        output, _ = child.communicate(timeout=END_TIMEOUT_S)
    assert child.returncode == 1
    assert output == "parameter rate_hz is -5.0, expected a float of [1, 200]\n"
