"""Planner probe of `flatrope doctor`: asks the graph and a running planner how its inputs do. Changes nothing.

`python -m flatrope_planner.nodes.planner_probe NAME` prints its facts as a line of JSON.
"""

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.srv import GetParameters
from rclpy.node import Node
from rclpy.qos import QoSCompatibility, QoSProfile, QoSReliabilityPolicy, qos_check_compatible
from rosgraph_msgs.msg import Clock

from flatrope_planner.nodes import qos
from flatrope_planner.nodes.picture_forms import other_form

# Longest times to find the planner, and to hear its inputs, its status and the clock (s).
FIND_S, LISTEN_S = 4.0, 3.0
STATUS = "output/status"
ANY = QoSProfile(depth=1, reliability=QoSReliabilityPolicy.BEST_EFFORT)
# What rclpy opens each fault with.
_FAULT = "ERROR: "
# What ROS itself has nodes subscribe to.
OF_ROS = ("/clock", "/parameter_events", "/rosout")


class PlannerProbe(Node):
    """Looks for a planner and listens to what it listens to."""

    def __init__(self, name: str) -> None:
        """Look for the planner of that name, with or without its namespace."""
        super().__init__("flatrope_doctor")
        self._name = name
        self._heard: dict[str, int] = {}
        self._status: dict[str, dict[str, Any]] = {}

    def facts(self) -> dict[str, Any]:
        """All there is to say about the planner, or which nodes there are instead of it."""
        self._spin(lambda: self._planner() is not None, FIND_S)
        found = self._planner()
        nodes = sorted(f"{space.rstrip('/')}/{name}" for name, space in self._others())
        if found is None:
            return {"planner": None, "nodes": nodes}
        name, space = found
        # Who publishes may be found later than the planner.
        self._spin(lambda: False, 1.0)
        inputs = [
            (topic, kinds[0])
            for topic, kinds in self.get_subscriber_names_and_types_by_node(name, space)
            if topic not in OF_ROS
        ]
        full = f"{space.rstrip('/')}/{name}"
        self._listen(full, inputs)
        return {
            "planner": full,
            "nodes": nodes,
            "state": self._state(full),
            "use_sim_time": self._uses_sim_time(full),
            "clock": self._source("/clock", "rosgraph_msgs/msg/Clock", None),
            "inputs": [self._source(topic, kind, full) for topic, kind in inputs],
            "status": self._status,
        }

    def _others(self) -> list[tuple[str, str]]:
        return [each for each in self.get_node_names_and_namespaces() if each[0] != self.get_name()]

    def _planner(self) -> tuple[str, str] | None:
        wanted = self._name
        for name, space in self._others():
            if wanted in (name, f"{space.rstrip('/')}/{name}"):
                return name, space
        return None

    def _listen(self, planner: str, inputs: list[tuple[str, str]]) -> None:
        self.create_subscription(DiagnosticArray, f"{planner}/{STATUS}", self._take_status, qos.REPORT)
        topics = dict(inputs)
        for topic, kind in topics.items():
            self._count(topic, _message_type(kind))
        self._count("/clock", Clock)
        expected = [topic for topic in (*topics, "/clock") if self.count_publishers(topic)]
        speaks = self.count_publishers(f"{planner}/{STATUS}") > 0
        self._spin(lambda: all(map(self._heard.get, expected)) and bool(self._status or not speaks), LISTEN_S)

    def _count(self, topic: str, kind: Any) -> None:
        if kind is None:
            return
        self._heard[topic] = 0

        def take(_message: bytes) -> None:
            self._heard[topic] += 1

        # Nothing is unpacked: that something comes is all there is to know.
        self.create_subscription(kind, topic, take, ANY, raw=True)

    def _take_status(self, message: DiagnosticArray) -> None:
        for status in message.status:
            level = int.from_bytes(status.level, "little")
            self._status[status.name] = {"level": level, "message": status.message}

    def _source(self, topic: str, kind: str, reader: str | None) -> dict[str, Any]:
        """Who publishes a topic, and whether it fits what the reader asks for."""
        wanted = [
            info.qos_profile
            for info in self.get_subscriptions_info_by_topic(topic)
            if f"{info.node_namespace.rstrip('/')}/{info.node_name}" == reader
        ]
        publishers = []
        for info in self.get_publishers_info_by_topic(topic):
            misfits = [_misfit(info.qos_profile, each) for each in wanted]
            publishers.append(
                {
                    "node": f"{info.node_namespace.rstrip('/')}/{info.node_name}",
                    "type": info.topic_type,
                    "misfit": next(filter(None, misfits), ""),
                }
            )
        alike = [
            name
            for name, kinds in self.get_topic_names_and_types()
            if kind in kinds and name != topic and self.count_publishers(name)
        ]
        return {
            "topic": topic,
            "type": kind,
            "publishers": publishers,
            "heard": self._heard.get(topic),
            "alike": alike,
            "elsewhere": "" if publishers else other_form(self, topic, kind),
        }

    def _uses_sim_time(self, planner: str) -> bool | None:
        answer = self._ask(GetParameters, f"{planner}/get_parameters", GetParameters.Request(names=["use_sim_time"]))
        return bool(answer.values[0].bool_value) if answer is not None and answer.values else None

    def _state(self, planner: str) -> str | None:
        """Its state of life; None for a node that has none."""
        if f"{planner}/get_state" not in dict(self.get_service_names_and_types()):
            return None
        service = import_module("lifecycle_msgs.srv").GetState
        answer = self._ask(service, f"{planner}/get_state", service.Request())
        return None if answer is None else str(answer.current_state.label)

    def _ask(self, kind: Any, name: str, request: Any) -> Any:
        client = self.create_client(kind, name)
        self._spin(client.service_is_ready, 1.0)
        if not client.service_is_ready():
            return None
        answer = client.call_async(request)
        self._spin(answer.done, 2.0)
        return answer.result() if answer.done() else None

    def _spin(self, condition: Callable[[], bool], timeout_s: float) -> None:
        until_s = time.monotonic() + timeout_s
        while not condition() and time.monotonic() < until_s:
            rclpy.spin_once(self, timeout_sec=0.05)


def _misfit(offered: QoSProfile, wanted: QoSProfile) -> str:
    """Why no message comes of it; empty where one does."""
    fits, why = qos_check_compatible(offered, wanted)
    if fits != QoSCompatibility.ERROR:
        return ""
    faults = [part.strip().removeprefix(_FAULT) for part in str(why).split(";") if part.strip().startswith(_FAULT)]
    return ", ".join(faults) or str(why)


def _message_type(kind: str) -> Any:
    """The class of a type such as sensor_msgs/msg/Image; None where it is not installed."""
    package, _, name = kind.replace("/", ".").rpartition(".")
    try:
        return getattr(import_module(package), name, None)
    except ImportError:
        return None


def probe(name: str) -> dict[str, Any]:
    """Ask about the planner of that name."""
    rclpy.init()
    node = PlannerProbe(name)
    try:
        return node.facts()
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    print(json.dumps(probe(sys.argv[1])), flush=True)
