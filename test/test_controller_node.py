"""The controller node over the real middleware."""

import pytest
from flatrope_planner.msg import PlannedTrajectory
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rclpy.node import Node
from ros import Listener, closing, ros, spin_for, spin_until
from stand_ins import SPEED_MPS, odometry, straight

from flatrope_planner.conversion.odometry import odometry_message
from flatrope_planner.conversion.plans import trajectory_message
from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.controller_node import ControllerNode
from flatrope_planner.planning.placement import PlacedTrajectory

TWIST = "/controller/output/twist"


class Sender:
    """Sends odometry and plans of the drive along x."""

    def __init__(self, node: Node) -> None:
        self._odometry = node.create_publisher(Odometry, "/controller/input/odometry", qos.BRIDGE_OUTPUT)
        self._plans = node.create_publisher(PlannedTrajectory, "/controller/input/trajectory", qos.NEWEST)

    def connected(self) -> bool:
        return all(publisher.get_subscription_count() == 1 for publisher in (self._odometry, self._plans))

    def pose(self, time_s: float) -> None:
        self._odometry.publish(odometry_message(odometry(time_s), "map", "ego_vehicle"))

    def plan(self, t0_s: float) -> None:
        placed = PlacedTrajectory(straight(), seconds_to_ns(t0_s), "map", odometry(t0_s).pose)
        self._plans.publish(trajectory_message(placed, "nano"))


def test_every_odometry_is_answered_and_in_a_simulator_that_waits_silence_is_the_brake() -> None:
    with ros("-p", "simulator_waits:=true"):
        test = Node("test")
        with closing(ControllerNode(), test) as executor:
            listener, sender = Listener(test, [(Twist, TWIST)]), Sender(test)
            spin_until(executor, lambda: sender.connected() and test.count_publishers(TWIST) == 1)
            sender.pose(10.0)
            spin_for(executor, 0.3)
            assert not listener[TWIST]
            sender.plan(10.0)
            spin_until(executor, lambda: len(listener[TWIST]) == 1)
            sender.pose(10.05)
            spin_until(executor, lambda: len(listener[TWIST]) == 2)
            # Faster odometry than the rate of commands is not answered.
            sender.pose(10.06)
            sender.pose(10.10)
            spin_until(executor, lambda: len(listener[TWIST]) == 3)
            assert listener[TWIST][-1].linear.x == pytest.approx(SPEED_MPS, abs=0.05)
            assert listener[TWIST][-1].angular.z == pytest.approx(0.0, abs=1e-6)
            # The plan is now too old; simulated time stands still until a new one comes.
            sender.pose(11.5)
            spin_for(executor, 0.8)
            assert len(listener[TWIST]) == 3
            sender.plan(11.4)
            spin_until(executor, lambda: len(listener[TWIST]) == 4)


def test_a_vehicle_is_braked_when_plans_end_and_when_odometry_ends() -> None:
    with ros("-p", "odometry_timeout_s:=0.2"):
        test = Node("test")
        with closing(ControllerNode(), test) as executor:
            listener, sender = Listener(test, [(Twist, TWIST)]), Sender(test)
            spin_until(executor, lambda: sender.connected() and test.count_publishers(TWIST) == 1)
            sender.pose(10.0)
            sender.plan(10.0)
            spin_until(executor, lambda: len(listener[TWIST]) >= 1)
            sender.pose(11.3)
            spin_until(executor, lambda: listener[TWIST][-1].linear.x < SPEED_MPS)
            # 2.5 m/s^2 for one period of 0.05 s.
            assert listener[TWIST][-1].linear.x == pytest.approx(SPEED_MPS - 0.125, abs=0.05)
            spin_until(executor, lambda: bool(listener[TWIST][-1].linear.x == 0.0))
    speeds = [twist.linear.x for twist in listener[TWIST]]
    assert speeds == sorted(speeds, reverse=True)


def test_a_trajectory_of_another_kind_is_ignored() -> None:
    with ros():
        test = Node("test")
        with closing(ControllerNode(), test) as executor:
            listener, sender = Listener(test, [(Twist, TWIST)]), Sender(test)
            spin_until(executor, lambda: sender.connected() and test.count_publishers(TWIST) == 1)
            sender._plans.publish(PlannedTrajectory())
            sender.pose(10.0)
            spin_for(executor, 0.3)
            assert not listener[TWIST]
            sender.plan(10.0)
            spin_until(executor, lambda: len(listener[TWIST]) == 1)
