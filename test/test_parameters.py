"""Parameter files and classes agree, ranges hold, comments tell them, and nothing of rclpy's is overwritten."""

import inspect
import re
from dataclasses import fields
from typing import Any

import pytest
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from ros import ros

from flatrope_planner.bringup.configuration import config_file, default_parameters, parameter_meanings
from flatrope_planner.errors import InputError
from flatrope_planner.nodes.controller_node import ControllerNode
from flatrope_planner.nodes.declared import read_parameters, rules
from flatrope_planner.nodes.diagnostics_node import DiagnosticsNode
from flatrope_planner.nodes.lifecycle import ManagedNode
from flatrope_planner.nodes.parameters import (
    AT_ONCE,
    AT_START,
    ControllerParameters,
    DiagnosticsParameters,
    OneOf,
    PlannerParameters,
    Range,
    SimulatorParameters,
    checked,
)
from flatrope_planner.nodes.planner_node import PlannerNode
from flatrope_planner.nodes.simulator_node import SimulatorNode

KINDS = {
    "planner.param.yaml": PlannerParameters,
    "diagnostics.param.yaml": DiagnosticsParameters,
    "controller.param.yaml": ControllerParameters,
    "simulator.param.yaml": SimulatorParameters,
}


def test_an_audit_that_never_comes_is_refused_at_start() -> None:
    parameters: dict[str, Any] = {**default_parameters("planner.param.yaml"), "exactness": "audit"}
    with pytest.raises(InputError, match="parameter audit_every is 0, expected at least 1 where exactness is 'audit'"):
        PlannerParameters(**parameters)
    assert PlannerParameters(**{**parameters, "audit_every": 1}).audit_every == 1


@pytest.mark.parametrize("file_name", KINDS)
def test_files_set_every_parameter_to_a_valid_value(file_name: str) -> None:
    with ros():
        node = Node("test")
        parameters: Any = read_parameters(node, KINDS[file_name], file_name)
        assert {field.name for field in fields(parameters)} == set(default_parameters(file_name))
        node.destroy_node()


@pytest.mark.parametrize("file_name", KINDS)
def test_the_comment_over_a_parameter_tells_range_and_effect(file_name: str) -> None:
    text = config_file(file_name).read_text(encoding="utf-8")
    all_at_once = "Every parameter takes effect at once" in text
    for name, rule in rules(KINDS[file_name]).items():
        position = re.search(rf"^    {name}:", text, re.MULTILINE)
        assert position, name
        # Several parameters may share one comment above the first of them.
        comment = re.findall(r"((?:^    #.*\n)+)", text[: position.start()], re.MULTILINE)[-1].replace("\n    #", "")
        assert str(rule.limits or "") in comment, name
        assert parameter_meanings(file_name)[name] == comment.removeprefix("    # ").removesuffix("\n"), name
        assert (rule.effect is AT_ONCE) == (all_at_once or re.search(r"[,;] at once$", comment.strip()) is not None), (
            name
        )
        assert (rule.effect is AT_START) == comment.strip().endswith("; at start"), name


def test_files_are_found_wherever_the_package_lies() -> None:
    assert config_file("fastdds.xml").is_file()


def test_a_file_passed_to_the_node_wins_over_the_defaults() -> None:
    with ros("-p", "rate_hz:=40", "-p", "simulator_waits:=true"):
        node = Node("test")
        parameters = read_parameters(node, ControllerParameters, "controller.param.yaml")
        # A whole number is as good as a float.
        assert (parameters.rate_hz, parameters.simulator_waits) == (40.0, True)
        assert node.get_parameter("max_plan_age_s").value == 1.2
        node.destroy_node()


@pytest.mark.parametrize(
    ("value", "base", "limits", "complaint"),
    [
        (0.01, float, Range(0.05, 10.0), r"expected a number of \[0.05, 10\]"),
        (float("nan"), float, Range(0.05, 10.0), "is nan"),
        ("fast", float, Range(0.05, 10.0), "is 'fast'"),
        (True, float, Range(0.05, 10.0), "is True"),
        (True, int, None, "expected a whole number"),
        (1.5, int, Range(0, 9), "is 1.5"),
        ("big", str, OneOf(("nano",)), "expected a text of nano"),
        ([], tuple[str, ...], None, "a list of names"),
        ("left", tuple[str, ...], None, "a list of names"),
        ([1], tuple[str, ...], None, "a list of names"),
    ],
)
def test_values_outside_their_limits_are_named(value: object, base: Any, limits: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        checked("p", value, base, limits)


@pytest.mark.parametrize("kind", [PlannerNode, DiagnosticsNode, ControllerNode, SimulatorNode])
def test_nodes_overwrite_nothing_of_rclpys_node(kind: type) -> None:
    with ros():
        bare = LifecycleNode("test") if kind is PlannerNode else Node("test")
        inherited = set(vars(bare)) | set(dir(Node))
        bare.destroy_node()
    source = inspect.getsource(kind) + inspect.getsource(ManagedNode)
    assigned = set(re.findall(r"self\.(\w+)(?:: [^=\n]+)? = ", source)) | (set(vars(kind)) - set(dir(object)))
    assert not assigned & inherited - {"__module__", "__doc__"}
