"""Set-up of all tests: ROS traffic on this machine alone, in a domain of its own; arithmetic on one core."""

import atexit
import fcntl
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

# Domains whose ports lie below the ephemeral ones.
DOMAINS = range(1, 101)


def reserve_domain() -> tuple[int, TextIO]:
    """A domain that no other run of the tests on this machine has, and what keeps it reserved while it is open."""
    for offset in range(len(DOMAINS)):
        domain = DOMAINS[(os.getpid() + offset) % len(DOMAINS)]
        file = (Path(tempfile.gettempdir()) / f"flatrope_planner_test_domain_{domain}").open("w", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
        else:
            return domain, file
    msg = "other runs of the tests have taken all ROS domains"
    raise RuntimeError(msg)


# Before anything imports rclpy.
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
_domain, _reservation = reserve_domain()
atexit.register(_reservation.close)
os.environ["ROS_DOMAIN_ID"] = str(_domain)

# Before anything imports torch. Networks here are too small for more, and as many tests run at once as there are cores.
os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Commands set the threads of their process; the tests that follow in it are to have one again."""
    yield
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
