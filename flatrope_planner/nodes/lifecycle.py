"""What our managed nodes share: a life that a manager leads, or the node itself.

Transitions run apart from the thread that spins (`executor`), one at a time. What rclpy leaves to chance is settled
here: a request that does not fit the state is refused instead of ending the node, and an error in a transition is told.
"""

from collections.abc import Callable
from functools import partial
from threading import Lock, Thread
from typing import TypeVar

from lifecycle_msgs.srv import ChangeState
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNodeMixin, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node

from flatrope_planner.errors import reason
from flatrope_planner.nodes.monitoring import Level, TaskReport

# Longest wait for a transition to come to its end when the node is closed; those that wait are told to stop.
LAST_TRANSITION_S = 1.0
T = TypeVar("T")

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
# What a state that is none of planning means to a person.
MEANINGS = {
    "unconfigured": "no model is loaded: configure does that",
    "configuring": "the model is being loaded",
    "inactive": "nothing is planned: activate begins to",
    "finalized": "shut down for good",
}
UNREADY = "configure has failed, for the reason that model gives: mend that, then configure or start it again"


class ManagedNode(LifecycleNodeMixin, Node):
    """A node that is unconfigured, inactive, active or finalized."""

    finished = False

    def __init__(self, name: str) -> None:
        """Be there, unconfigured."""
        Node.__init__(self, name)
        # A group of their own: callbacks go on while a transition waits, and the state may be asked for.
        LifecycleNodeMixin.__init__(self, callback_group=ReentrantCallbackGroup())
        self._turn = Lock()
        self._closing = False
        self._trouble = self._mistakable = ""
        # Whether it could not be got ready when that was tried last.
        self._unready = False
        for service in self.services:
            if service.srv_type is ChangeState:
                service.callback = partial(self._answer, service.callback)

    def configure(self) -> bool:
        """Get ready, and say whether that was possible; runs in a thread of its own and may take its time."""
        raise NotImplementedError

    def rest(self) -> None:
        """Work no longer."""
        raise NotImplementedError

    def release(self) -> None:
        """Give back all that `configure` has taken."""
        raise NotImplementedError

    def close(self) -> None:
        """Wait for the transition that is under way and destroy the node."""
        self._closing = True
        self._turn.acquire(timeout=LAST_TRANSITION_S)
        self.destroy_node()
        # It holds the node, which others would go on seeing for as long as their middleware believes in the silent.
        self._state_machine.destroy_when_not_in_use()

    @property
    def state(self) -> str:
        """Name of the present state, or of the transition under way: "active", "configuring"."""
        _number, label = self._state_machine.current_state
        return str(label)

    def life_report(self) -> TaskReport:
        """The state in words, and whether the name is taken twice."""
        state = self.state
        values = {"state": state, "nodes_of_this_name": str(self._namesakes())}
        if self._trouble:
            return TaskReport("lifecycle", Level.ERROR, f"{state}: {self._trouble}", values)
        if self._mistakable:
            # Both may be planning, and who follows one follows now this, now that.
            return TaskReport("lifecycle", Level.ERROR, f"{state}: {self._mistakable}", values)
        if state == "active":
            return TaskReport("lifecycle", Level.OK, state, values)
        if self._unready and state == "unconfigured":
            return TaskReport("lifecycle", Level.WARN, f"{state}: {UNREADY}", values)
        return TaskReport("lifecycle", Level.WARN, f"{state}: {MEANINGS.get(state, 'in between')}", values)

    def _namesakes(self) -> int:
        """How many nodes have this node's name; more than one is told in the log, once each time it happens."""
        own = (self.get_name(), self.get_namespace())
        count = int(self.get_node_names_and_namespaces().count(own))
        name = self.get_fully_qualified_name()
        remedy = "end one, or start it with another name (node_name:=, namespace:=, or -r __node:=)"
        mistakable = "" if count < 2 else f"{count} nodes are called {name}; {remedy}"
        if mistakable and not self._mistakable:
            self.get_logger().error(mistakable)
        self._mistakable = mistakable
        return count

    def bring_up(self) -> None:
        """Configure and activate, without a manager, in a thread of its own."""
        Thread(target=self._bring_up, name="transition", daemon=True).start()

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Get ready."""
        self._trouble, self._unready = "", False
        ready = self._told(self.configure)
        self._unready = not ready
        return super().on_configure(state) if ready else FAILURE

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Begin, and say where to look."""
        begun = super().on_activate(state)
        plans, status = map(self.resolve_topic_name, ("~/output/trajectory", "~/output/status"))
        where = f"plans on {plans}, how it is on {status} and /diagnostics"
        self.get_logger().info(f"active in ROS domain {self.context.get_domain_id()}: {where}")
        return begun

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop."""
        self._told(self.rest)
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Give everything back."""
        self._told(self.release)
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop and give everything back, from whatever state."""
        self.on_deactivate(state)
        self._told(self.release)
        return super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Give everything back after an error in a transition: the node is as before it was configured."""
        return self.on_shutdown(state)

    def _told(self, step: Callable[[], T]) -> T:
        """Do a step of a transition; rclpy says nothing of an error in it."""
        try:
            return step()
        except Exception as err:
            self._trouble = f"{type(err).__name__}: {reason(err)}"
            self.get_logger().error(f"error while {self.state}: {self._trouble}")
            raise

    def _bring_up(self) -> None:
        if self._in_turn(self.trigger_configure):
            self._in_turn(self.trigger_activate)

    def _answer(
        self,
        change: Callable[[ChangeState.Request, ChangeState.Response], ChangeState.Response],
        request: ChangeState.Request,
        response: ChangeState.Response,
    ) -> ChangeState.Response:
        """Answer a manager's request; `change` is what rclpy would do at once."""

        def transition() -> TransitionCallbackReturn:
            return SUCCESS if change(request, response).success else FAILURE

        response.success = self._in_turn(transition)
        return response

    def _in_turn(self, transition: Callable[[], TransitionCallbackReturn]) -> bool:
        """Whether the transition was possible and succeeded."""
        if not self._turn.acquire(blocking=False):
            if not self._closing:
                self.get_logger().warning(f"another transition was asked for while {self.state}: refused")
            return False
        try:
            return bool(transition() == SUCCESS)
        except rclpy_implementation.RCLError:
            # rcl has logged which.
            self.get_logger().warning(f"a transition was asked for that there is none of from {self.state}: refused")
            return False
        finally:
            self._turn.release()
