"""Parameters as ROS sees them: described, checked when they are set, in force when they say so."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rcl_interfaces.srv import DescribeParameters, SetParameters, SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter
from ros import Listener, closing, ros, spin_until
from stand_ins import StraightCore

from flatrope_planner.bringup.configuration import config_file, default_parameters, parameter_meanings
from flatrope_planner.nodes.controller_node import ControllerNode
from flatrope_planner.nodes.declared import read_parameters, rules
from flatrope_planner.nodes.diagnostics_node import DiagnosticsNode
from flatrope_planner.nodes.parameters import (
    ControllerParameters,
    DiagnosticsParameters,
    PlannerParameters,
    SimulatorParameters,
)
from flatrope_planner.nodes.planner_node import PlannerNode

AT_CONFIGURE = "is read at configure: deactivate and clean up, set it, then configure and activate"
AT_START = "is read once, at start: start the node anew with it"
STATUS = "/planner/output/status"
KINDS: dict[type[Any], str] = {
    PlannerParameters: "planner.param.yaml",
    DiagnosticsParameters: "diagnostics.param.yaml",
    ControllerParameters: "controller.param.yaml",
    SimulatorParameters: "simulator.param.yaml",
}


def asked(executor: Any, test: Node, kind: type[Any], name: str, request: Any) -> Any:
    client = test.create_client(kind, name)
    spin_until(executor, client.service_is_ready)
    future = client.call_async(request)
    spin_until(executor, future.done)
    return future.result()


def set_over_ros(executor: Any, test: Node, node: str, **values: object) -> SetParametersResult:
    parameters = [Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
    request = SetParametersAtomically.Request(parameters=parameters)
    return asked(executor, test, SetParametersAtomically, f"/{node}/set_parameters_atomically", request).result


def test_descriptions_and_ranges_are_there_to_be_asked_for() -> None:
    names = list(rules(PlannerParameters))
    with ros():
        test = Node("test")
        with closing(PlannerNode(lambda _: StraightCore()), test) as executor:
            request = DescribeParameters.Request(names=names)
            answer = asked(executor, test, DescribeParameters, "/planner/describe_parameters", request)
    described: dict[str, ParameterDescriptor] = {each.name: each for each in answer.descriptors}
    assert {name: each.description for name, each in described.items()} == parameter_meanings("planner.param.yaml")
    period = described["period_s"]
    assert period.description.startswith("Shortest time between the observations of two plans")
    assert (period.floating_point_range[0].from_value, period.floating_point_range[0].to_value) == (0.05, 10.0)
    nodes = described["draft_nodes"]
    assert (nodes.integer_range[0].from_value, nodes.integer_range[0].to_value) == (1, 127)
    assert described["exactness"].additional_constraints.startswith("canonical | tolerant | audit; read at configure")


def wait_until_active(executor: Any, planner: PlannerNode) -> None:
    spin_until(executor, lambda: planner.state == "active")


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        # What rclpy says itself is worded differently in every distribution.
        ({"period_s": 99.0}, r"arameter period_s out of range.* 0\.05, .* 10\.0, .*99\.0"),
        ({"period_s": 99}, "parameter period_s is 99.0, expected a number of [0.05, 10]"),
        ({"period_s": float("nan")}, "arameter period_s .*nan"),
        ({"period_s": "fast"}, "parameter period_s is 'fast', expected a number of [0.05, 10]"),
        ({"period_s": True}, "parameter period_s is True, expected a number of [0.05, 10]"),
        ({"draft_nodes": 0}, r"arameter draft_nodes out of range.* 1, .* 127, .*0"),
        ({"twist_frame": "big"}, "parameter twist_frame is 'big', expected a text of auto | child | parent"),
        ({"target": "/elsewhere"}, f"parameter target {AT_CONFIGURE}"),
        ({"compressed": True}, f"parameter compressed {AT_CONFIGURE}"),
        ({"autostart": False}, f"parameter autostart {AT_START}"),
        # All of them or none.
        ({"period_s": 0.2, "cameras": ["roof"]}, f"parameter cameras {AT_CONFIGURE}"),
    ],
)
def test_what_cannot_be_set_now_is_refused_with_a_reason(values: dict[str, object], reason: str) -> None:
    with ros():
        test, planner = Node("test"), PlannerNode(lambda _: StraightCore())
        with closing(planner, test) as executor:
            wait_until_active(executor, planner)
            result = set_over_ros(executor, test, "planner", **values)
            assert not result.successful
            assert result.reason == reason or re.search(reason, result.reason)
            defaults = default_parameters("planner.param.yaml")
            assert {name: planner.get_parameter(name).value for name in values} == {
                name: defaults[name] for name in values
            }
            # What is so already may be set: that is what loading a file does.
            assert set_over_ros(executor, test, "planner", **{**defaults, "period_s": 1}).successful


def test_a_parameter_that_the_node_does_not_have_is_refused_by_its_name() -> None:
    with ros():
        test, planner = Node("test"), PlannerNode(lambda _: StraightCore())
        with closing(planner, test) as executor:
            result = set_over_ros(executor, test, "planner", period_s=1.0, perod_s=2.0)
            assert not result.successful
            assert "undeclared" in result.reason
            assert "perod_s (is period_s meant?)" in result.reason
            assert planner.get_parameter("period_s").value == default_parameters("planner.param.yaml")["period_s"]


def test_what_takes_effect_at_once_does() -> None:
    with ros("-p", "planner:status_period_s:=10.0"):
        test, planner = Node("test"), PlannerNode(lambda _: StraightCore())
        with closing(planner, test) as executor:
            listener = Listener(test, [(DiagnosticArray, STATUS)])
            wait_until_active(executor, planner)
            values = {"status_period_s": 0.1, "period_s": 2, "input_timeout_s": 0.7}
            assert set_over_ros(executor, test, "planner", **values).successful
            spin_until(executor, lambda: len(listener[STATUS]) >= 3)
            assert (planner._worker._period_ns, planner._records.timeout_s) == (2_000_000_000, 0.7)


def test_unconfigured_everything_valid_may_be_set_and_configure_reads_it() -> None:
    loaded: list[PlannerParameters] = []

    def load(parameters: PlannerParameters) -> StraightCore:
        loaded.append(parameters)
        return StraightCore()

    with ros("-p", "planner:autostart:=false"):
        test, planner = Node("test"), PlannerNode(load)
        with closing(planner, test) as executor:
            set_now: Callable[..., SetParametersResult] = lambda **new: set_over_ros(executor, test, "planner", **new)  # noqa: E731
            assert set_now(exactness="audit").reason.startswith("parameter audit_every is 0, expected at least 1")
            assert set_now(cameras=["a b"]).reason.startswith("parameter cameras is ['a b'], expected names")
            assert set_now(exactness="audit", audit_every=4, cameras=["front_tele", "front_wide"]).successful
            assert set_now(autostart=True).reason == f"parameter autostart {AT_START}"
            planner.trigger_configure()
            assert (loaded[0].exactness, loaded[0].audit_every) == ("audit", 4)
            assert list(planner._records.records) == ["camera front_tele", "camera front_wide", "odometry", "command"]


def test_a_refusal_by_a_node_that_has_no_configure_says_start() -> None:
    with ros():
        test = Node("test")
        with closing(ControllerNode(), test) as executor:
            assert set_over_ros(executor, test, "controller", odometry_timeout_s=1).successful
            result = set_over_ros(executor, test, "controller", rate_hz=5.0)
            assert (result.successful, result.reason) == (False, f"parameter rate_hz {AT_START}")


def test_thresholds_of_the_diagnostics_change_while_it_runs() -> None:
    with ros():
        test, node = Node("test"), DiagnosticsNode()
        with closing(node, test) as executor:
            listener = Listener(test, [(DiagnosticArray, "/diagnostics")])
            assert set_over_ros(executor, test, "diagnostics", publish_period_s=0.1, hardware_id="left").successful
            spin_until(executor, lambda: len(listener["/diagnostics"]) >= 3)
            assert listener["/diagnostics"][-1].status[0].hardware_id == "left"
            assert set_over_ros(executor, test, "diagnostics", latency_warn_ms=7.0).successful
            assert node._monitor._settings.latency_ms.warn == 7.0


def test_a_file_of_whole_numbers_is_taken(tmp_path: Path) -> None:
    values = {"rate_hz": 20, "max_plan_age_s": 1, "odometry_timeout_s": 2, "braking_mps2": 3}
    file = tmp_path / "whole.yaml"
    file.write_text(yaml.safe_dump({"/**": {"ros__parameters": values}}))
    with ros("--params-file", str(file)):
        node = Node("test")
        parameters = read_parameters(node, ControllerParameters, "controller.param.yaml")
        assert {name: getattr(parameters, name) for name in values} == values
        assert type(parameters.rate_hz) is type(node.get_parameter("rate_hz").value) is float
        node.destroy_node()


@pytest.mark.parametrize("kind", KINDS)
def test_the_files_of_config_may_be_given_as_they_are(kind: type[Any], capfd: pytest.CaptureFixture[str]) -> None:
    with ros("--params-file", str(config_file(KINDS[kind]))):
        node = Node("test")
        parameters = read_parameters(node, kind, KINDS[kind])
        defaults = default_parameters(KINDS[kind])
        given = {name: getattr(parameters, name) for name in defaults}
        node.destroy_node()
    assert {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()} == defaults
    assert "does not have" not in capfd.readouterr().err


def test_misspelt_parameters_are_named_once(capfd: pytest.CaptureFixture[str]) -> None:
    with ros("-p", "perod_s:=1.0", "-p", "colour:=blue", "-p", "use_sim_time:=true"):
        PlannerNode(lambda _: StraightCore()).close()
    said = [line for line in capfd.readouterr().err.splitlines() if "does not have" in line]
    assert len(said) == 1
    assert said[0].endswith(
        "parameters that this node does not have are ignored: colour, perod_s (is period_s meant?)"
    ) or said[0].endswith("parameters that this node does not have are ignored: perod_s (is period_s meant?), colour")


def test_a_parameter_that_does_not_exist_is_refused() -> None:
    with ros():
        test = Node("test")
        with closing(PlannerNode(lambda _: StraightCore()), test) as executor:
            request = SetParameters.Request(parameters=[Parameter("colour", value="blue").to_parameter_msg()])
            result = asked(executor, test, SetParameters, "/planner/set_parameters", request).results[0]
            assert not result.successful
