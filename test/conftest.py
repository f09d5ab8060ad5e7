"""Set-up of all tests: their ROS traffic stays on this machine and in a domain of its own."""

import atexit
import fcntl
import os
import tempfile
from pathlib import Path
from typing import TextIO

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
