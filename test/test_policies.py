"""SROS 2 policies: each names exactly what its node publishes, subscribes to and serves when it runs."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import pytest
from policies import Policy, read_policy
from rclpy.node import Node
from ros import PATIENCE_S, closing, ros, spin_until
from sources import ROOT
from test_running import started

from flatrope_planner.bringup.description import NodeProcess, planner_processes
from flatrope_planner.bringup.processes import command_line
from flatrope_planner.nodes.planner_node import PlannerNode

FILES = {"planner": "planner.policy.xml", "diagnostics": "diagnostics.policy.xml"}
# What a managed node has beyond a plain one.
OF_LIFE = {
    *(f"/planner/{name}" for name in ("change_state", "get_state", "get_available_states")),
    *(f"/planner/{name}" for name in ("get_available_transitions", "get_transition_graph", "transition_event")),
}
IS_MANAGED = any(base.__name__.startswith("Lifecycle") for base in PlannerNode.__mro__)


def policy_of(name: str) -> Policy:
    return read_policy(ROOT / "security" / FILES[name])


def arguments(process: NodeProcess) -> list[str]:
    """Those after `--ros-args`, with which the launch files start the node."""
    command = command_line(process)
    return command[command.index("--ros-args") + 1 :]


@contextmanager
def running_as_launched() -> Iterator[Node]:
    """Planner, which watches the way, and diagnostics as `flatrope up use_sim_time:=true` starts them; who looks on."""
    planner, diagnostics = planner_processes({"use_sim_time": "true"})
    processes = (replace(planner, parameters={**planner.parameters, "corridor_check": True}), diagnostics)
    with ExitStack() as stack, ros():
        for process in processes:
            stack.enter_context(started(process.executable, *arguments(process)))
        watcher = Node("watcher")
        with closing(watcher) as executor:
            names = {process.name for process in processes}
            spin_until(executor, lambda: names <= set(watcher.get_node_names()))
            yield watcher


def graph_of(watcher: Node, name: str) -> dict[str, set[str]]:
    def names(found: list[tuple[str, Any]]) -> set[str]:
        return {topic for topic, _ in found}

    return {
        "publish": names(watcher.get_publisher_names_and_types_by_node(name, "/")),
        "subscribe": names(watcher.get_subscriber_names_and_types_by_node(name, "/")),
        "reply": names(watcher.get_service_names_and_types_by_node(name, "/")),
    }


def test_policies_name_what_the_nodes_do_and_nothing_else() -> None:
    with running_as_launched() as watcher:
        until_s = time.monotonic() + PATIENCE_S
        for name in FILES:
            policy = policy_of(name)
            allowed = policy.allowed
            if not IS_MANAGED:
                allowed = {action: names - OF_LIFE for action, names in allowed.items()}
            # The last of it is found some moments after the node.
            while graph_of(watcher, name) != allowed and time.monotonic() < until_s:
                time.sleep(0.1)
            assert graph_of(watcher, name) == allowed
            assert policy.node == f"/{name}"


@pytest.mark.parametrize("name", FILES)
def test_policies_are_of_the_schema_and_give_each_node_an_enclave_of_its_own(name: str) -> None:
    policy = policy_of(name)
    assert policy.enclave == f"/flatrope/{name}"
    assert set(policy.allowed) == {"publish", "subscribe", "reply"}
    assert {"/rosout", "/parameter_events"} <= policy.allowed["publish"]
    assert "/clock" in policy.allowed["subscribe"]
    assert not any("*" in each for names in policy.allowed.values() for each in names)


def test_the_guide_starts_the_nodes_as_the_launch_files_do() -> None:
    guide = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    for process in planner_processes({}):
        for source, target in (("__node", process.name), *process.remappings):
            assert f"-r {source}:={target}" in guide
