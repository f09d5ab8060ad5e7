"""Each node as a process: up, asked to end, gone without a trace."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from ros import Listener, closing, ros, spin_for, spin_until
from stand_ins import StraightCore
from test_planner_node import Sensors

from flatrope_planner.nodes.monitoring import Level
from flatrope_planner.nodes.planner_node import PlannerNode

NODES = ("planner", "diagnostics", "controller", "simulator")
STUCK = str(Path(__file__).with_name("stuck_planner.py"))
END_TIMEOUT_S = 15.0
# Odometry at 50 Hz for two seconds.
MESSAGES, PERIOD_S, SETTLE_S = 100, 0.02, 0.2
# What a node promises, whatever it is at.
LONGEST_END_S = 3.0


@contextmanager
def started(executable: str, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
    with running("-m", "flatrope_planner.nodes", executable, "--ros-args", *arguments) as child:
        yield child


@contextmanager
def running(*arguments: str) -> "Iterator[subprocess.Popen[str]]":
    child = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
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
        f"there is no node {name!r}; there are bag_player_node, controller_node, diagnostics_node, faulty_planner, "
        "plan_witness, planner_node, recorder_node, sensor_player, simulator_node, transport_probe\n"
    )


def test_a_bad_parameter_is_one_line_and_exit_code_1() -> None:
    with started("controller_node", "-p", "rate_hz:=-5.0") as child:
        output, _ = child.communicate(timeout=END_TIMEOUT_S)
    assert child.returncode == 1
    assert output == "parameter rate_hz is -5.0, expected a number of [1, 200]\n"


@pytest.mark.parametrize(
    ("busy", "number"),
    [
        *((busy, signal.SIGTERM) for busy in ("sleep", "hash", "product", "loop", "load", "closing")),
        *((busy, signal.SIGINT) for busy in ("sleep", "load")),
    ],
)
def test_a_planner_in_the_midst_of_something_is_gone_in_time(busy: str, number: signal.Signals) -> None:
    with running(STUCK, busy) as child, ros():
        test = Node("test")
        with closing(test) as executor:
            begun = Thread(target=_read_until, args=(child, "stuck"))
            begun.start()
            spin_until(executor, lambda: not begun.is_alive(), Sensors(test).publish)
        asked_s = time.monotonic()
        os.kill(child.pid, number)
        time.sleep(0.1)
        if child.poll() is None:
            os.kill(child.pid, number)
        output, _ = child.communicate(timeout=END_TIMEOUT_S)
        assert time.monotonic() - asked_s < LONGEST_END_S
    assert (child.returncode, output) == (0, "")


def _read_until(child: "subprocess.Popen[str]", words: str) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        if line.strip() == words:
            return


def test_asked_to_end_while_a_manager_waits_for_configure() -> None:
    with running(STUCK, "load", "-p", "autostart:=false") as child, ros():
        test = Node("test")
        with closing(test) as executor:
            client = test.create_client(ChangeState, "/planner/change_state")
            spin_until(executor, client.service_is_ready)
            client.call_async(ChangeState.Request(transition=Transition(id=Transition.TRANSITION_CONFIGURE)))
            begun = Thread(target=_read_until, args=(child, "stuck"))
            begun.start()
            spin_until(executor, lambda: not begun.is_alive())
        asked_s = time.monotonic()
        os.kill(child.pid, signal.SIGTERM)
        output, _ = child.communicate(timeout=END_TIMEOUT_S)
        assert time.monotonic() - asked_s < LONGEST_END_S
    assert (child.returncode, output) == (0, "")


def test_a_node_runs_where_no_log_file_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path / "file" / "log"))
    with started("controller_node", "-p", "rate_hz:=7") as child, ros("--disable-external-lib-logs"):
        test = Node("test")
        with closing(test) as executor:
            spin_until(executor, lambda: "controller" in test.get_node_names())
            asked = test.create_client(GetParameters, "/controller/get_parameters")
            spin_until(executor, asked.service_is_ready)
            answer = asked.call_async(GetParameters.Request(names=["rate_hz"]))
            spin_until(executor, answer.done)
        child.send_signal(signal.SIGTERM)
        said, _ = child.communicate(timeout=END_TIMEOUT_S)
    assert child.returncode == 0
    # What it was started with still holds.
    assert answer.result().values[0].double_value == 7.0
    assert said.startswith("no log file is written: failed to initialize logging: Failed to create log directory")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_end_while_importing(number: signal.Signals, tmp_path: Path) -> None:
    # As dataclasses and named tuples are made.
    (tmp_path / "rclpy.py").write_text("print('importing', flush=True)\nexec('import time; time.sleep(20.0)')\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "flatrope_planner.nodes", "controller_node"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
        _read_until(child, "importing")
        os.kill(child.pid, number)
        assert child.wait(END_TIMEOUT_S) == 0


@pytest.mark.parametrize("missing", ["rclpy", "torch", "transformers"])
def test_a_missing_library_is_one_line_that_says_for_which_python(missing: str) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None; sys.argv = ['nodes', 'planner_node'];"
        "from flatrope_planner.nodes.__main__ import main; main()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    line = ended.stderr.splitlines()[-1]
    assert line.startswith(f"{sys.executable}: ")
    assert missing in line
    assert "README" in line
    assert "Traceback" not in ended.stderr


def test_a_name_that_is_taken_twice_is_told_by_both() -> None:
    with (
        running(STUCK, "sleep") as child,
        ros("-p", "status_period_s:=0.1"),
    ):
        node = PlannerNode(lambda _: StraightCore())
        with closing(node) as executor:
            spin_until(executor, lambda: "2 nodes are called /planner" in node.life_report().message)
            assert node.life_report().level is Level.ERROR
            _read_until_part(child, "2 nodes are called /planner; end one, or start it with another name (node_name:=")
            os.kill(child.pid, signal.SIGTERM)
            child.communicate(timeout=END_TIMEOUT_S)
            spin_until(executor, lambda: node.life_report().message == "active")


def _read_until_part(child: "subprocess.Popen[str]", words: str) -> None:
    assert child.stdout is not None
    assert any(words in line for line in child.stdout)


@pytest.mark.parametrize("busy", ["sleep", "loop"])
def test_a_plan_that_takes_long_starves_no_subscription(busy: str) -> None:
    with running(STUCK, busy, "-p", "status_period_s:=0.1") as child, ros():
        test = Node("test")
        with closing(test) as executor:
            listener = Listener(test, [(DiagnosticArray, "/planner/output/status")])
            sensors = Sensors(test)
            begun = Thread(target=_read_until, args=(child, "stuck"))
            begun.start()
            spin_until(executor, lambda: not begun.is_alive(), sensors.publish)
            before, sent = _received(executor, listener), 0
            while sent < MESSAGES:
                sensors.publish()
                sent += 1
                spin_for(executor, PERIOD_S)
            after = _received(executor, listener)
    # A planner that planned where it listens took in five.
    assert after["odometry"] - before["odometry"] >= 0.95 * MESSAGES
    assert after["camera front_wide"] - before["camera front_wide"] >= 0.95 * MESSAGES / 2


def _received(executor: SingleThreadedExecutor, listener: Listener) -> dict[str, int]:
    """How much of each input the planner says to have received, once it says so of all that was sent before."""
    spin_for(executor, SETTLE_S)
    heard = listener["/planner/output/status"]
    seen = len(heard)
    spin_until(executor, lambda: len(heard) > seen + 1)
    inputs = {status.name: status for status in heard[-1].status}["planner: inputs"]
    received = [value for value in inputs.values if value.key.endswith(".received")]
    return {value.key.removesuffix(".received"): int(value.value) for value in received}


@pytest.mark.parametrize("name", ["diagnostics", "controller"])
def test_a_request_that_rclpy_itself_stumbles_over_is_survived(name: str) -> None:
    with started(f"{name}_node") as child, ros():
        test = Node("test")
        with closing(test) as executor:
            client = test.create_client(SetParameters, f"/{name}/set_parameters")
            spin_until(executor, client.service_is_ready)
            # There is no such type.
            client.call_async(SetParameters.Request(parameters=[Parameter(name="x", value=ParameterValue(type=99))]))
            asked = test.create_client(GetParameters, f"/{name}/get_parameters")
            spin_until(executor, asked.service_is_ready)
            answer = asked.call_async(GetParameters.Request(names=["use_sim_time"]))
            spin_until(executor, answer.done)
        child.send_signal(signal.SIGTERM)
        said, _ = child.communicate(timeout=END_TIMEOUT_S)
    assert child.returncode == 0
    assert "an error in a callback was survived: ValueError: 99 is not a valid Parameter.Type" in said
