"""Cameras by name: AutoVLA is shown three, in this order."""

import re
from collections.abc import Iterable
from itertools import pairwise

from flatrope_planner.errors import InputError

# As this package names them, and what AutoVLA's data sets call them. From nuPlan it was shown those that look sideways.
CAMERAS = ("front_wide", "cross_left", "cross_right")
ALIASES = {
    "front_wide": ("front", "f0"),
    "cross_left": ("front_left", "left", "l0", "l1"),
    "cross_right": ("front_right", "right", "r0", "r1"),
}
# What a prompt calls them.
VIEWS = ("front", "front-left", "front-right")
FRAMES_PER_CAMERA = 4
FRAME_PERIOD_S = 0.5

# front_left_camera, CAM_FRONT_LEFT, camera_cross_left_120fov.
_DECORATION = re.compile(r"^cam(era)?_|_camera$|_\d+(fov)?$")
_INDEX = {name: CAMERAS.index(camera) for camera, names in ALIASES.items() for name in (camera, *names)}


def camera_index(name: str) -> int | None:
    """The place of a camera in a prompt by its name, with or without a data set's decoration; None for no such one."""
    return _INDEX.get(_DECORATION.sub("", name.lower()))


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Cameras in the order of a prompt.

    Raises:
        InputError: for an unknown name, two names of one camera, or none at all.
    """
    places = list[tuple[int, str]]()
    for name in names:
        index = camera_index(name)
        if index is None:
            msg = f"cameras: AutoVLA knows no {name!r}, expected some of {', '.join(CAMERAS)}"
            raise InputError(msg)
        places.append((index, name))
    places.sort()
    if not places:
        msg = f"cameras: none, expected at least one of {', '.join(CAMERAS)}"
        raise InputError(msg)
    for (one_index, one), (other_index, other) in pairwise(places):
        if one_index == other_index:
            msg = f"cameras: {one} and {other} are the same one"
            raise InputError(msg)
    return tuple(name for _, name in places)
