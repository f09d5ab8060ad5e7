"""cv_bridge where the ROS installation has it and it is right.

It may be built for another NumPy (`_ARRAY_API not found`), be the one of ROS 1, lack its compiled half, misread padded
rows (vision_opencv #115), or crash. So a process of its own reads small pictures with it (`bridge_probe`), and only
what it read there as our own codec does is handed to it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from sensor_msgs.msg import Image as ImageMessage

from flatrope_planner.domain import Image

PROBE_TIMEOUT_S = 30.0

# Encoding, and whether its rows are padded.
Case = tuple[str, bool]


class Bridge:
    """A CvBridge, asked only for what it is known to read rightly."""

    def __init__(self, cv_bridge: Any, cases: Iterable[Case]) -> None:
        """Use this CvBridge for these cases."""
        self._cv_bridge = cv_bridge
        self.cases = frozenset(cases)

    def to_rgb(self, message: ImageMessage, *, padded: bool) -> Image | None:
        """uint8 (H, W, 3); None if the case is not one it reads rightly, or it fails."""
        if (message.encoding, padded) not in self.cases:
            return None
        image = read_with(self._cv_bridge, message)
        # What needs no conversion may still be the message's own memory.
        shared = image is not None and np.may_share_memory(image, np.frombuffer(message.data, np.uint8))
        return image.copy() if image is not None and shared else image


def read_with(cv_bridge: Any, message: ImageMessage) -> Image | None:
    """The picture as a CvBridge reads it; None if it fails or answers with anything but a picture of this size."""
    try:
        image = cv_bridge.imgmsg_to_cv2(message, desired_encoding="rgb8")
    except Exception:  # What a foreign library raises is not known; our own codec reads the picture then.
        return None
    fits = isinstance(image, np.ndarray) and image.dtype == np.uint8
    return image if fits and image.shape == (message.height, message.width, 3) else None


@cache
def find_bridge() -> Bridge | None:
    """The installed cv_bridge, or None if there is none or it reads nothing rightly; takes a second the first time."""
    if find_spec("cv_bridge") is None:
        return None
    cases = _probe()
    if not cases:
        return None
    try:
        return Bridge(import_module("cv_bridge").CvBridge(), cases)
    except Exception:  # As above: it worked a moment ago, and is not needed.
        return None


def _probe() -> tuple[Case, ...]:
    """The cases that cv_bridge reads rightly in a process of its own; none if that process ends badly."""
    command = [sys.executable, "-m", "flatrope_planner.conversion.bridge_probe"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        probe = subprocess.run(command, env=environment, capture_output=True, timeout=PROBE_TIMEOUT_S, check=True)
        # The last line: a broken library may print before it.
        cases = json.loads(probe.stdout.splitlines()[-1])
    except (subprocess.SubprocessError, OSError, ValueError, IndexError):
        return ()
    return tuple((str(encoding), bool(padded)) for encoding, padded in cases)
