"""The executor of our nodes: callbacks one after another in one thread, lifecycle transitions apart from them.

A transition may take as long as a model takes to load, and pictures must not pile up meanwhile, nor the status fall
silent. rclpy's MultiThreadedExecutor would do too, but it hands every callback to a pool: with two cameras of 1600x900
at 10 Hz and odometry at 50 Hz that costs two to three times the processor time of one thread (0.31 s against 0.08 to
0.15 s a second), for the sake of a service that is called once a day.
"""

from collections.abc import Callable
from threading import Thread

from lifecycle_msgs.srv import ChangeState
from rclpy.exceptions import InvalidHandle
from rclpy.executors import ShutdownException, SingleThreadedExecutor, TimeoutException
from rclpy.service import Service


class NodeExecutor(SingleThreadedExecutor):
    """Runs callbacks in the thread that spins, but requests to change a node's state each in a thread of its own."""

    def __init__(self, on_error: Callable[[Exception], None] | None = None) -> None:
        """Give what a callback raises to `on_error`; None: raise it where the executor spins.

        Not only our own callbacks are meant: rclpy's services for parameters raise at a request of a type they do not
        know, and whoever sends one could end the node.
        """
        super().__init__()
        self._on_error = on_error

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Run one callback, if one gets ready in time (s); None waits for ever."""
        try:
            handler, entity, _node = self.wait_for_ready_callbacks(timeout_sec=timeout_sec)
        except (ShutdownException, TimeoutException, InvalidHandle):
            # The last: a transition has destroyed what was being waited for.
            return
        if isinstance(entity, Service) and entity.srv_type is ChangeState:
            Thread(target=handler, name="transition", daemon=True).start()
            return
        handler()
        try:
            # Raises what the callback has raised.
            handler.result()
        except Exception as err:
            if self._on_error is None:
                raise
            self._on_error(err)
