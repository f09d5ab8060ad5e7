"""The watch on a node's clock: what counts as a leap, and what is told, over the real middleware."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import rclpy
from rclpy.node import Node
from rclpy.parameter import Parameter
from ros import closing, ros, spin_until
from rosgraph_msgs.msg import Clock

from flatrope_planner.conversion.stamps import to_time
from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.nodes.clock import ClockWatch
from flatrope_planner.nodes.monitoring import Level

Tell = Callable[[float], None]


@contextmanager
def watched(sim_time: bool = True) -> Iterator[tuple[Node, ClockWatch, list[str], Tell]]:
    """A node, the watch on its clock, the leaps it has told, and what sets the time and waits until it has come."""
    with ros("-p", f"watched:use_sim_time:={str(sim_time).lower()}"):
        node, world = Node("watched"), Node("world")
        publisher = world.create_publisher(Clock, "/clock", 10)
        leaps: list[str] = []
        watch = ClockWatch(node, leaps.append)
        with closing(node, world) as executor:
            spin_until(executor, lambda: not sim_time or publisher.get_subscription_count() > 0)

            def tell(time_s: float) -> None:
                publisher.publish(Clock(clock=to_time(seconds_to_ns(time_s))))
                spin_until(executor, lambda: watch.now_ns() == seconds_to_ns(time_s))

            yield node, watch, leaps, tell


def test_leaps_are_steps_back_and_long_ones_ahead_but_not_the_first() -> None:
    with watched() as (_, watch, leaps, tell):
        for time_s in (100.0, 101.9, 101.9, 101.85, 104.0, 104.1, 3.0, 3.05):
            tell(time_s)
        assert leaps == ["time went back by 0.05 s", "time leapt ahead by 2.15 s", "time went back by 101.10 s"]
        values = watch.report(60.0).values
        assert (values["leaps_back"], values["leaps_ahead"], values["time_s"]) == ("2", "1", "3.050")


def test_another_clock_is_a_leap() -> None:
    with watched(sim_time=False) as (node, watch, leaps, _):
        assert watch.report(60.0).message == "wall time"
        node.set_parameters([Parameter("use_sim_time", value=True)])
        assert leaps == ["time is taken from another clock"]
        report = watch.report(60.0)
        words = "use_sim_time is set and nothing comes on /clock, though world publishes it"
        assert (report.level, report.message) == (Level.ERROR, words)


def test_time_that_stands_still_is_a_warning_until_it_moves() -> None:
    with watched() as (_, watch, _leaps, tell):
        tell(1.0)
        assert watch.report(0.05).level is Level.OK
        time.sleep(0.1)
        report = watch.report(0.05)
        assert report.level is Level.WARN
        assert report.message.startswith("simulated time has stood still for 0.")
        assert "nobody" not in report.message
        tell(1.1)
        assert watch.report(0.05).level is Level.OK


def test_a_clock_that_is_gone_is_told_apart_from_one_that_pauses() -> None:
    with watched() as (_, watch, _leaps, tell):
        tell(1.0)
        world = watch._node.executor.get_nodes()
        for node in world:
            for publisher in list(node.publishers):
                if publisher.topic_name == "/clock":
                    node.destroy_publisher(publisher)
        until_s = time.monotonic() + 10.0
        while "nobody" not in watch.report(0.05).message and time.monotonic() < until_s:
            time.sleep(0.01)
        report = watch.report(0.05)
    assert report.level is Level.WARN
    assert report.message.startswith("simulated time has stood still for ")
    assert report.message.endswith(" s: nobody publishes /clock")


def test_two_clocks_are_named() -> None:
    with watched() as (_, watch, _leaps, tell):
        tell(1.0)
        context = rclpy.Context()
        rclpy.init(context=context)
        other = Node("bag", context=context, use_global_arguments=False)
        other.create_publisher(Clock, "/clock", 10)
        try:
            # A publisher may be known before the name of its node is.
            until_s = time.monotonic() + 10.0
            while "bag" not in watch.report(60.0).message and time.monotonic() < until_s:
                time.sleep(0.01)
            report = watch.report(60.0)
        finally:
            other.destroy_node()
            rclpy.shutdown(context=context)
    assert report.level is Level.WARN
    assert sorted(report.message.removeprefix("several nodes publish /clock: ").split(", ")) == ["bag", "world"]


@pytest.mark.parametrize("sim_time", [True, False])
def test_the_present(sim_time: bool) -> None:
    with watched(sim_time) as (_, watch, _leaps, _tell):
        assert (watch.now_ns() == 0) is sim_time
