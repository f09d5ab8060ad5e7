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


def test_a_bad_parameter_is_one_line_and_exit_code_1() -> None:
    with started("controller_node", "-p", "rate_hz:=-5.0") as child:
        output, _ = child.communicate(timeout=END_TIMEOUT_S)
    assert child.returncode == 1
    assert output == "parameter rate_hz is -5.0, expected a float of [1, 200]\n"
