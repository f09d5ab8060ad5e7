"""The clock of a drive: /clock in real time, which can be stopped and made to leap."""

from rclpy.node import Node
from rosgraph_msgs.msg import Clock

from flatrope_planner.conversion.stamps import to_time
from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.drive import STEP_S
from flatrope_planner.nodes import qos

# Far enough from zero for every leap back.
EPOCH_S = 100.0
STOP, GO, LEAP = "stop", "none", "leap"


class PlayedClock:
    """Publishes the time; `tick` is to be called every step of wall time."""

    def __init__(self, node: Node) -> None:
        """Publish on behalf of the node."""
        self._publisher = node.create_publisher(Clock, "/clock", qos.BRIDGE_OUTPUT)
        self._now_ns = seconds_to_ns(EPOCH_S)
        self._runs = True

    def obey(self, order: str) -> None:
        """Take an order: `stop`, `none` to go on, `leap` and by how many seconds, which is whole steps.

        Raises:
            InputError: when it is none.
        """
        word, _, amount = order.partition(" ")
        if word == LEAP:
            self._now_ns += seconds_to_ns(round(float(amount) / STEP_S) * STEP_S)
        elif word in (STOP, GO):
            self._runs = word == GO
        else:
            msg = f"the clock knows no order {order!r}; it knows {STOP}, {GO} and {LEAP} <seconds>"
            raise InputError(msg)

    def tick(self) -> None:
        """Move on by a step."""
        if self._runs:
            self._now_ns += seconds_to_ns(STEP_S)
            self._publisher.publish(Clock(clock=to_time(self._now_ns)))
