"""How every node runs: from its start to a quiet end, whoever asks for it and however often.

A node that is asked to end is gone within `LONGEST_END_S`, with exit code 0, whatever its threads are doing: sleeping,
computing, loading. One thing can keep it: a call into C that holds Python's lock for longer. PyTorch, NumPy and hashlib
let go of it.
"""

import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from threading import Event, Thread
from types import FrameType
from typing import NoReturn, Protocol

import rclpy
from rclpy.exceptions import NameValidationException
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.signals import SignalHandlerOptions

from flatrope_planner.errors import FlatropeError, reason
from flatrope_planner.nodes.executor import NodeExecutor

# Longest time until a request to end is noticed.
POLL_S = 0.05
# Longest time from the request to the end of the process (s).
LONGEST_END_S = 2.5
# How often errors that are survived are told at the most.
TOLD_EVERY_S = 5.0
# How rcl's complaint begins when it can make no log file.
NO_LOGGING = "failed to initialize logging"
# What ROS raises when a remapping, a parameter, a name or its environment does not fit.
ROS_ERRORS = (rclpy_implementation.RCLError, rclpy_implementation.UnknownROSArgsError, NameValidationException)


class RunningNode(Protocol):
    """A node that can be asked whether it has finished its work, and closed."""

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do; a node that serves on and on never is."""
        ...

    def close(self) -> None:
        """End threads and destroy the node.

        Raises:
            FlatropeError: if the node has not done what it was there for.
        """
        ...

    def get_logger(self) -> RcutilsLogger:
        """What the node logs with."""
        ...


def run_node(make_node: Callable[[], RunningNode], *, lasting: bool = False) -> NoReturn:
    """Run a node until it is finished or SIGINT or SIGTERM asks for the end, then end the process with an exit code.

    The signals only set a flag: nothing is interrupted half way, and a second signal changes nothing.

    Args:
        make_node: makes it, once ROS is there.
        lasting: an error in a callback is told and survived, as befits a node that runs on a car; else it is the end.
    """
    stop = Event()

    def ask_to_end(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    _watch_the_end()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask_to_end)
    try:
        _begin()
        exit_code = _spin(make_node, stop, lasting=lasting)
    except ROS_ERRORS as err:
        print(_complaint(err), file=sys.stderr)
        exit_code = 1
    finally:
        rclpy.try_shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    # Nothing is left to clean up. Python's own end takes seconds with PyTorch loaded, gives signals their first,
    # violent meaning back, and a thread that is loading a library at the time does not survive it unharmed.
    os._exit(exit_code)


def _watch_the_end() -> None:
    """See to it that a request to end is the end, even if the main thread is held up somewhere."""
    asked, wake = os.pipe()
    os.set_blocking(wake, False)
    # Written to as soon as a signal comes; what `signal.signal` sets has to wait for the main thread.
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def end() -> None:
        os.read(asked, 1)
        time.sleep(LONGEST_END_S)
        os._exit(0)

    Thread(target=end, name="end", daemon=True).start()


def _begin() -> None:
    """Begin with ROS; where no log file can be written, as on a car whose disk is read-only, without one."""
    try:
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    except rclpy_implementation.RCLError as err:
        if NO_LOGGING not in str(err):
            raise
        print(f"no log file is written: {_complaint(err)}", file=sys.stderr)
        # rclpy takes it for begun all the same.
        rclpy.shutdown()
        arguments = [*sys.argv, "--ros-args", "--disable-external-lib-logs"]
        rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)


def _tell(node: RunningNode, err: Exception) -> None:
    place = traceback.extract_tb(err.__traceback__)[-1]
    words = f"{type(err).__name__}: {reason(err)} ({place.name}, line {place.lineno})"
    node.get_logger().error(f"an error in a callback was survived: {words}", throttle_duration_sec=TOLD_EVERY_S)


def _complaint(err: Exception) -> str:
    """What ROS says in one line, without the places in its sources."""
    if isinstance(err, rclpy_implementation.UnknownROSArgsError):
        return f"unknown ROS arguments: {err}"
    return re.sub(r", at /\S+:\d+", "", reason(err))


def _spin(make_node: Callable[[], RunningNode], stop: Event, *, lasting: bool) -> int:
    try:
        node = make_node()
    except FlatropeError as err:
        print(err, file=sys.stderr)
        return 1
    executor = NodeExecutor(partial(_tell, node) if lasting else None)
    executor.add_node(node)
    exit_code = 0
    try:
        while not stop.is_set() and not node.finished:
            executor.spin_once(timeout_sec=POLL_S)
    except FlatropeError as err:
        print(err, file=sys.stderr)
        exit_code = 1
    finally:
        # In this order: a transition that is under way uses the executor until it has ended.
        exit_code = max(exit_code, _closed(node))
        executor.shutdown()
    return exit_code


def _closed(node: RunningNode) -> int:
    try:
        node.close()
    except FlatropeError as err:
        print(err, file=sys.stderr)
        return 1
    return 0
