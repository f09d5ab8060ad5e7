"""Real nodes over the real middleware, for tests: contexts, spinning with an end, listening."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from flatrope_planner.nodes import qos
from flatrope_planner.nodes.executor import NodeExecutor

PATIENCE_S = 20.0
PACE_S = 0.015
# Drives of the tests are played faster than any clock runs; tests of the clock set the limit and publish one.
ANY_AGE = (
    *("-p", "planner:max_input_age_s:=0.0"),
    *("-p", "planner:max_plan_age_s:=0.0", "-p", "planner:deadline_s:=0.0"),
)


@contextmanager
def ros(*arguments: str) -> Iterator[None]:
    """A context in which nodes take these ROS arguments."""
    rclpy.init(args=["--ros-args", *ANY_AGE, *arguments])
    try:
        yield
    finally:
        rclpy.shutdown()


@contextmanager
def closing(*nodes: Any) -> Iterator[SingleThreadedExecutor]:
    """An executor that spins these nodes; they are closed in the end."""
    executor = NodeExecutor()
    for node in nodes:
        executor.add_node(node)
    try:
        yield executor
    finally:
        for node in nodes:
            close = getattr(node, "close", node.destroy_node)
            close()
        executor.shutdown()


def spin_until(
    executor: SingleThreadedExecutor, condition: Callable[[], bool], meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Spin until the condition holds or fail; `meanwhile` is called at a pace that can be followed."""
    until_s = time.monotonic() + PATIENCE_S
    next_s = 0.0
    while not condition():
        now_s = time.monotonic()
        assert now_s < until_s, "waited in vain"
        if now_s >= next_s:
            meanwhile()
            next_s = now_s + PACE_S
        executor.spin_once(timeout_sec=PACE_S)


def spin_for(executor: SingleThreadedExecutor, duration_s: float) -> None:
    """Spin for a while, to see that nothing happens."""
    until_s = time.monotonic() + duration_s
    while time.monotonic() < until_s:
        executor.spin_once(timeout_sec=0.01)


class Listener:
    """Keeps what comes on topics, in order."""

    def __init__(self, node: Node, topics: Sequence[tuple[type, str]]) -> None:
        self.heard: dict[str, list[Any]] = {topic: [] for _, topic in topics}
        for kind, topic in topics:
            node.create_subscription(kind, topic, self.heard[topic].append, qos.REPORT)

    def __getitem__(self, topic: str) -> list[Any]:
        return self.heard[topic]
