"""The diagnostics node over the real middleware."""

import time

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from flatrope_planner.msg import SpeculationStats
from rclpy.node import Node
from ros import Listener, closing, ros, spin_until

from flatrope_planner.conversion.stamps import to_header
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.diagnostics_node import DiagnosticsNode

DIAGNOSTICS = "/diagnostics"
ARGUMENTS = (
    *("-p", "publish_period_s:=0.1", "-p", "stale_after_s:=0.5", "-p", "latency_warn_ms:=100.0"),
    *("-p", "latency_error_ms:=200", "-p", "hardware_id:=car 7", "-p", "planner_name:=front_planner"),
)


def statuses(listener: Listener) -> dict[str, DiagnosticStatus]:
    return {status.name: status for status in listener[DIAGNOSTICS][-1].status} if listener[DIAGNOSTICS] else {}


def level(listener: Listener, task: str) -> bytes | None:
    status = statuses(listener).get(f"front_planner: {task}")
    return None if status is None else status.level


def statistics(tick: int, total_ms: float) -> SpeculationStats:
    return SpeculationStats(
        header=to_header(tick * 500_000_000, "map"),
        vision_ms=1.0,
        total_ms=total_ms,
        observation_age_ms=40.0,
        ticks=tick,
        rounds=4,
        proposed=8,
        accepted=4,
        committed=8,
        drafter="toy",
    )


@pytest.mark.parametrize(
    ("total_ms", "expected"),
    [(50.0, DiagnosticStatus.OK), (150.0, DiagnosticStatus.WARN), (250.0, DiagnosticStatus.ERROR)],
)
def test_figures_and_levels_and_staleness(total_ms: float, expected: bytes) -> None:
    with ros(*ARGUMENTS):
        test = Node("test")
        with closing(DiagnosticsNode(), test) as executor:
            listener = Listener(test, [(DiagnosticArray, DIAGNOSTICS)])
            publisher = test.create_publisher(SpeculationStats, "/diagnostics/input/speculation", qos.REPORT)
            spin_until(executor, lambda: level(listener, "latency") == DiagnosticStatus.STALE)
            liveness = statuses(listener)["front_planner: liveness"].message
            assert liveness == "the planner has not been heard of: no publisher on /diagnostics/input/status"
            sent: list[SpeculationStats] = []

            def publish() -> None:
                sent.append(statistics(len(sent) + 1, total_ms))
                publisher.publish(sent[-1])

            spin_until(executor, lambda: level(listener, "latency") == expected, publish)
            status = statuses(listener)["front_planner: latency"]
            assert status.hardware_id == "car 7"
            values = {item.key: item.value for item in status.values}
            assert values["total_p50_ms"] == f"{total_ms:.1f}"
            assert values["vision_p99_ms"] == "1.0"
            speculation = {i.key: i.value for i in statuses(listener)["front_planner: speculation"].values}
            assert (speculation["mean_acceptance_length"], speculation["acceptance_rate"]) == ("2.00", "0.500")
            spin_until(executor, lambda: level(listener, "liveness") == DiagnosticStatus.STALE)
            assert level(listener, "latency") == DiagnosticStatus.STALE


def test_the_planners_own_words_are_passed_on_and_go_stale() -> None:
    with ros(*ARGUMENTS):
        test = Node("test")
        with closing(DiagnosticsNode(), test) as executor:
            listener = Listener(test, [(DiagnosticArray, DIAGNOSTICS)])
            publisher = test.create_publisher(DiagnosticArray, "/diagnostics/input/status", qos.REPORT)
            own = DiagnosticStatus(level=DiagnosticStatus.WARN, name="front_planner: model", message="loading")

            def passed_on(wanted: bytes) -> bool:
                return level(listener, "model") == wanted

            def publish() -> None:
                publisher.publish(DiagnosticArray(status=[own]))

            spin_until(executor, lambda: passed_on(DiagnosticStatus.WARN), publish)
            assert statuses(listener)["front_planner: model"].message == "loading"
            assert statuses(listener)["front_planner: model"].hardware_id == "car 7"
            assert level(listener, "liveness") == DiagnosticStatus.OK
            assert level(listener, "drops") == DiagnosticStatus.STALE
            # Nothing is published, and yet ticks are dropped.
            counts = iter(range(10**6))

            def publish_drops() -> None:
                values = [KeyValue(key="ticks", value="1"), KeyValue(key="dropped_ticks", value=str(next(counts)))]
                publisher.publish(DiagnosticArray(status=[DiagnosticStatus(name="x: planning", values=values), own]))

            spin_until(executor, lambda: level(listener, "drops") == DiagnosticStatus.ERROR, publish_drops)
            assert statuses(listener)["front_planner: drops"].message.startswith("100% of ticks dropped")
            spin_until(executor, lambda: passed_on(DiagnosticStatus.STALE))


def test_a_planner_that_cannot_be_heard_is_named() -> None:
    with ros(*ARGUMENTS):
        test = Node("test")
        with closing(DiagnosticsNode(), test) as executor:
            listener = Listener(test, [(DiagnosticArray, DIAGNOSTICS)])
            test.create_publisher(DiagnosticArray, "/diagnostics/input/status", qos.IMAGE_INPUT)
            words = "/test (QoS mismatch: offers best_effort, asked for is reliable)"

            def named() -> bool:
                return words in statuses(listener)["front_planner: liveness"].message if statuses(listener) else False

            spin_until(executor, named)
            assert level(listener, "liveness") == DiagnosticStatus.STALE


def test_time_does_not_stop_with_the_simulated_clock() -> None:
    # Nobody publishes /clock: ROS time stands still at zero.
    with ros(*ARGUMENTS, "-p", "use_sim_time:=true"):
        test = Node("test")
        with closing(DiagnosticsNode(), test) as executor:
            listener = Listener(test, [(DiagnosticArray, DIAGNOSTICS)])
            begun_s = time.monotonic()
            spin_until(executor, lambda: len(listener[DIAGNOSTICS]) >= 3)
            assert time.monotonic() - begun_s < 15.0
