"""Controller node: follows the planned trajectory with speed and yaw rate, for CARLA's carla_twist_to_control.

A command is sent for every odometry message and for every new plan, so that a simulator that stands still until it
hears from us is set going by the plan it waits for; no timer in simulated time could do that.
"""

import time
from typing import NoReturn

from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

from flatrope_planner.conversion.odometry import odometry_sample
from flatrope_planner.conversion.plans import placed_trajectory, twist_message
from flatrope_planner.domain import DriveCommand, seconds_to_ns
from flatrope_planner.errors import InputError
from flatrope_planner.msg import PlannedTrajectory
from flatrope_planner.nodes import qos
from flatrope_planner.nodes.declared import Changes, DeclaredParameters
from flatrope_planner.nodes.following import Follower, Following
from flatrope_planner.nodes.parameters import ControllerParameters
from flatrope_planner.nodes.running import run_node
from flatrope_planner.planning.ego_motion import EgoMotion

WARN_EVERY_S = 5.0
# Messages a little early still belong to their period.
EARLY_SHARE = 0.9


class ControllerNode(Node):
    """Subscribes to plan and odometry, publishes the command."""

    finished = False

    def __init__(self) -> None:
        """Read the parameters and wait for the first plan.

        Raises:
            InputError: on a parameter that is not valid.
        """
        super().__init__("controller")
        changes = Changes(self._adopt)
        self._settings = parameters = DeclaredParameters(
            self, ControllerParameters, "controller.param.yaml", changes
        ).values
        self._period_s = 1.0 / parameters.rate_hz
        self._follower = Follower(
            Following(parameters.max_plan_age_s, parameters.braking_mps2, parameters.simulator_waits)
        )
        self._motion = EgoMotion(parameters.rear_axle_offset_m, parameters.twist_frame)
        # Stamp of the odometry that was answered last (ns), and when odometry came last (s, steady).
        self._answered_ns = 0
        self._odometry_s = time.monotonic()
        self._publisher = self.create_publisher(Twist, "~/output/twist", qos.NEWEST)
        self.create_subscription(Odometry, "~/input/odometry", self._take_odometry, qos.ODOMETRY_INPUT)
        self.create_subscription(PlannedTrajectory, "~/input/trajectory", self._take_plan, qos.NEWEST)
        self.create_timer(self._period_s, self._watch, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def close(self) -> None:
        """End the node."""
        self.destroy_node()

    def _adopt(self, parameters: ControllerParameters) -> None:
        self._settings = parameters

    def _take_plan(self, message: PlannedTrajectory) -> None:
        try:
            plan = placed_trajectory(message)
        except InputError as err:
            self.get_logger().warning(str(err), throttle_duration_sec=WARN_EVERY_S)
            return
        is_fallback = message.status == PlannedTrajectory.FALLBACK
        self._follower.take_plan(plan, is_fallback=is_fallback, is_pending=bool(message.pending))
        self._send(self._follower.follow())

    def _take_odometry(self, message: Odometry) -> None:
        try:
            sample = self._motion.take(odometry_sample(message))
        except InputError as err:
            self.get_logger().warning(str(err), throttle_duration_sec=WARN_EVERY_S)
            return
        self._odometry_s = time.monotonic()
        self._follower.take_odometry(sample)
        since_ns = sample.stamp_ns - self._answered_ns
        if 0 <= since_ns < seconds_to_ns(EARLY_SHARE * self._period_s):
            return
        self._answered_ns = sample.stamp_ns
        self._send(self._follower.follow() or self._follower.brake(self._period_s))

    def _watch(self) -> None:
        """Stop the vehicle when odometry is lost, as no message is left to answer."""
        if time.monotonic() - self._odometry_s > self._settings.odometry_timeout_s:
            self._send(self._follower.brake(self._period_s))

    def _send(self, command: DriveCommand | None) -> None:
        if command is not None:
            self._publisher.publish(twist_message(command))


def main() -> NoReturn:
    """Run the node until it is asked to end."""
    run_node(ControllerNode, lasting=True)
