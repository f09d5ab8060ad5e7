"""Replays many bags on a Ray cluster that is there already; one bag is one task, so results do not depend on its size.

Bags, results and the current folder have to be under the same paths on all nodes, where flatrope_planner is installed.
"""

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from logging import ERROR
from pathlib import Path
from typing import Any

from flatrope_planner._version import __version__
from flatrope_planner.errors import SetupError, reason
from flatrope_planner.evaluation.replay.crew import LOOK_S, Result, Work, died, replay_in_process
from flatrope_planner.evaluation.replay.task import ReplayTask

# The cluster that runs on this machine.
AUTO = "auto"
CLIENT = "ray://"
# How long a connection may take.
PATIENCE_S = 10.0
# A frame of HTTP/2 that sets nothing: its length (3 bytes), its type, flags, stream (4).
SETTINGS, FRAME_TYPE = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00", 3


def replay_on_ray(
    tasks: Sequence[ReplayTask], address: str, told: Callable[[float], None], work: Work = replay_in_process
) -> Iterator[Result]:
    """The results as they come, in any order.

    Args:
        tasks: what to replay.
        address: the cluster's, `host:port`, `ray://host:port` or `auto`.
        told: hears from time to time how much of all bags has been replayed (0 to 1, by size).
        work: replays one of them.

    Raises:
        SetupError: if Ray is not installed, the cluster cannot be reached, or has another flatrope_planner.
    """
    with _cluster(address) as ray:
        _require_same_version(ray)
        remote = ray.remote(max_retries=0, **_resources(ray, tasks))(_work)
        # Paths are as they were given, so that results are those of one machine.
        here = Path.cwd()
        waiting = {remote.remote(work, task, here): task for task in tasks}
        sizes, done = sum(max(task.size, 1) for task in tasks), 0
        while waiting:
            ready, _ = ray.wait(list(waiting), num_returns=1, timeout=LOOK_S)
            for reference in ready:
                task = waiting.pop(reference)
                done += max(task.size, 1)
                yield _result(ray, reference, task)
            told(done / sizes)


def _work(work: Work, task: ReplayTask, folder: Path) -> Result:
    try:
        os.chdir(folder)
    except OSError as err:
        msg = f"{folder} is not there on node {socket.gethostname()} of the cluster: {err.strerror}"
        raise SetupError(msg) from err
    return work(task, lambda _share: None)


def _result(ray: Any, reference: Any, task: ReplayTask) -> Result:
    try:
        result: Result = ray.get(reference)
    except ray.exceptions.RayTaskError as err:
        # As without a cluster: what is raised on purpose ends everything.
        cause = getattr(err, "cause", None)
        raise (cause if isinstance(cause, SetupError) else _problem(err)) from err
    except ray.exceptions.RayError:
        return died(task)
    return result


@contextmanager
def _cluster(address: str) -> Iterator[Any]:
    """Ray, connected to the cluster; whatever of ours is still at work there ends with the connection."""
    try:
        import ray
    except ModuleNotFoundError as err:
        msg = "--ray needs the package ray, which is not installed: .venv/bin/python -m pip install ray"
        raise SetupError(msg) from err
    _require_listener(address)
    try:
        ray.init(address, logging_level=ERROR, log_to_driver=False)
    except Exception as err:  # Ray has many ways to say that it is not there
        msg = f"no Ray cluster could be reached at {address}: {reason(err)}"
        raise SetupError(msg) from err
    try:
        yield ray
    finally:
        ray.shutdown()


def _require_listener(address: str) -> None:
    """Ray itself would try for minutes."""
    if address == AUTO:
        return
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if not host or not port.isdecimal():
        msg = f"--ray is {address!r}, expected host:port, {CLIENT}host:port or {AUTO}"
        raise SetupError(msg)
    try:
        with socket.create_connection((host.strip("[]"), int(port)), PATIENCE_S) as connection:
            is_ray = os.environ.get("RAY_USE_TLS") == "1" or _speaks_http2(connection)
    except (OSError, OverflowError) as err:
        msg = f"no Ray cluster could be reached at {address}: {reason(err)}"
        raise SetupError(msg) from err
    if not is_ray:
        msg = f"no Ray cluster could be reached at {address}: somebody else listens there"
        raise SetupError(msg)


def _speaks_http2(connection: socket.socket) -> bool:
    """Whether the other side opens as a server of gRPC, which Ray is: with a frame of settings (RFC 9113, 3.4)."""
    connection.settimeout(PATIENCE_S)
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS)
    answer = connection.recv(len(SETTINGS))
    return len(answer) == len(SETTINGS) and answer[FRAME_TYPE] == SETTINGS[FRAME_TYPE]


def _require_same_version(ray: Any) -> None:
    try:
        theirs = ray.get(ray.remote(max_retries=0)(version).remote())
    except ray.exceptions.RayError as err:
        raise _problem(err) from err
    if theirs != __version__:
        msg = f"the cluster has flatrope_planner {theirs}, expected {__version__} as here"
        raise SetupError(msg)


def version() -> str:
    """What is installed where this runs."""
    return __version__


def _problem(err: Exception) -> SetupError:
    """What a worker complains about: the last line of its traceback."""
    lines = [line.strip() for line in str(err).splitlines() if line.strip()]
    return SetupError(f"the cluster's workers cannot work: {lines[-1] if lines else type(err).__name__}")


def _resources(ray: Any, tasks: Sequence[ReplayTask]) -> Mapping[str, int]:
    """A GPU for each task that is to run on one."""
    devices = {task.lineup.settings.device for task in tasks}
    there = ray.cluster_resources().get("GPU", 0) > 0
    on_gpu = any(device.startswith("cuda") or (device == "auto" and there) for device in devices)
    return {"num_cpus": 1, "num_gpus": int(on_gpu)}
