"""Cameras by name: what Alpamayo calls them, their order in a prompt, and their labels."""

from collections.abc import Iterable
from itertools import pairwise

from flatrope_planner.dimensions import CAMERA_NAMES
from flatrope_planner.errors import InputError
from flatrope_planner.planning.camera_identity import plain_name

# What a prompt with labels calls them (Alpamayo 1.5), in the order of `CAMERA_NAMES`, which is that of its pictures.
LABELS = (
    "Front left camera",
    "Front camera",
    "Front right camera",
    "Rear left camera",
    "Rear camera",
    "Rear right camera",
    "Front telephoto camera",
)
# The four cameras that the released models are shown.
USUAL = ("cross_left", "front_wide", "cross_right", "front_tele")
FRAMES_PER_CAMERA = 4
FRAME_PERIOD_S = 0.1


def camera_index(name: str) -> int:
    """The index of a camera by its name, with or without the data set's decoration.

    Raises:
        InputError: for a name that is none.
    """
    plain = plain_name(name)
    if plain not in CAMERA_NAMES:
        msg = f"cameras: Alpamayo knows no {name!r}, expected some of {', '.join(CAMERA_NAMES)}"
        raise InputError(msg)
    return CAMERA_NAMES.index(plain)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Cameras in the order of a prompt.

    Raises:
        InputError: for an unknown name, two names of one camera, or none at all.
    """
    ordered = sorted(names, key=camera_index)
    if not ordered:
        msg = "cameras: none, expected at least one"
        raise InputError(msg)
    for one, other in pairwise(ordered):
        if camera_index(one) == camera_index(other):
            msg = f"cameras: {one} and {other} are the same one"
            raise InputError(msg)
    return tuple(ordered)


def labels(name: str, frames: int) -> list[str]:
    """The text before each picture of a camera, oldest first (Alpamayo 1.5)."""
    texts = [f"frame {number} " for number in range(frames)]
    return [f"{LABELS[camera_index(name)]}: {texts[0]}", *texts[1:]]
