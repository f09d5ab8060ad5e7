"""Signs that what comes in as one camera is another one's: names that say so, one picture under two names.

Which way a camera looks cannot be seen in its pictures. So this can only tell of contradictions, and no sign of one
proves that all cameras are the right ones.
"""

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np

from flatrope_planner.dimensions import CAMERA_NAMES
from flatrope_planner.domain import Image

# What words of a name say of its camera.
SIDES = {"left": "left", "right": "right", "fl": "left", "fr": "right", "rl": "left", "rr": "right"}
ENDS = {"front": "front", "forward": "front", "cross": "front", "fl": "front", "fr": "front"}
ENDS |= {"rear": "rear", "back": "rear", "backward": "rear", "rl": "rear", "rr": "rear"}
LENSES = {"wide": "wide", "tele": "tele", "telephoto": "tele", "narrow": "tele"}
WORD = re.compile(r"[a-z0-9]+")
# Of Alpamayo's data set: camera_front_wide_120fov.
DECORATION = re.compile(r"^camera_|_\d+(fov)?$")
# A picture is compared on so many rows and columns first; whole where these are alike.
GRID = 32
# Pictures of a camera that are remembered, and how many in a row must have come in under another name, too.
REMEMBERED = 4
ENOUGH = 3


def plain_name(camera: str) -> str:
    """A camera's name in small letters, without what Alpamayo's data set puts around it."""
    return DECORATION.sub("", DECORATION.sub("", camera.lower()))


@dataclass(frozen=True)
class _Claims:
    """What a name says of its camera; None: nothing, or two things."""

    side: str | None
    end: str | None
    lens: str | None

    @classmethod
    def of(cls, name: str) -> "_Claims":
        words = re.findall(r"[a-z]+", name.lower())
        said = ({kind[word] for word in words if word in kind} for kind in (SIDES, ENDS, LENSES))
        return cls(*(found.pop() if len(found) == 1 else None for found in said))


def contradiction(camera: str, name: str, cameras: Iterable[str] = ()) -> str | None:
    """What a topic or a frame says that `camera` is not, in a word; None if nothing.

    `cameras` are what others are called.
    """
    mine, other = _Claims.of(camera), _Claims.of(name)
    pairs = ((mine.side, other.side), (mine.end, other.end), (mine.lens, other.lens))
    for own, said in pairs:
        if own and said and own != said:
            return said
    # A stereo pair has sides, and looks straight ahead; a camera that is named for a corner does not.
    if other.side and other.end and mine.end and not mine.side:
        return other.side
    return _other_camera(camera, name, cameras)


def _other_camera(camera: str, name: str, cameras: Iterable[str]) -> str | None:
    """Another camera whose full name stands in a topic or a frame, which do not bear the camera's own; None if none."""
    own = {camera, *_standing_in(camera, CAMERA_NAMES)}
    # Of a camera with a name of its user's own it is not known which of ours it is.
    known = CAMERA_NAMES if own & set(CAMERA_NAMES) else ()
    said = _standing_in(name, {*own, *known, *cameras})
    return None if own & said else max(said, key=len, default=None)


def _standing_in(name: str, cameras: Iterable[str]) -> set[str]:
    """Those of the cameras whose name stands in another one, in whole words."""
    words = f"_{'_'.join(WORD.findall(name.lower()))}_"
    return {camera for camera in cameras if f"_{'_'.join(WORD.findall(camera.lower()))}_" in words}


@dataclass
class _Seen:
    """The newest pictures of a camera, and what was odd about the last."""

    pictures: deque[tuple[bytes, Image]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    frame_id: str = ""
    upright: tuple[int, int] | None = None


class CameraIdentity:
    """Watches the pictures of all cameras; each camera may be looked at in a thread of its own."""

    def __init__(self, topics: dict[str, str]) -> None:
        """Watch cameras that come in on these topics."""
        self._topics = topics
        self._seen = {camera: _Seen() for camera in topics}
        # (camera, other) -> how many of the camera's pictures in a row had come in as the other's.
        self._alike = dict.fromkeys(permutations(topics, 2), 0)

    def look(self, camera: str, image: Image, frame_id: str) -> None:
        """Take in a picture, uint8 (H, W, 3)."""
        seen = self._seen[camera]
        height, width, _ = image.shape
        seen.frame_id, seen.upright = frame_id, (width, height) if height > width else None
        sample = image[:: max(1, height // GRID), :: max(1, width // GRID)]
        # A dark camera looks like any other one.
        coarse = sample.tobytes() if sample.size and sample.min() < sample.max() else b""
        for other, theirs in self._seen.items():
            if other != camera:
                is_there = bool(coarse) and any(
                    _are_same(coarse, image, *picture) for picture in tuple(theirs.pictures)
                )
                self._alike[camera, other] = self._alike[camera, other] + 1 if is_there else 0
        seen.pictures.append((coarse, image))

    def forget(self, camera: str) -> None:
        """Pictures to come under this name are of another camera."""
        self._seen[camera] = _Seen()

    def signs(self) -> list[str]:
        """What speaks against the cameras being who they are called, in words."""
        signs = []
        for camera, seen in self._seen.items():
            for what, name in (("comes in on", self._topics[camera]), ("has the frame_id", seen.frame_id)):
                said = contradiction(camera, name, self._topics)
                if said:
                    signs.append(f"camera {camera} {what} {name!r}, which names a {said} one")
            if seen.upright:
                width, height = seen.upright
                signs.append(f"camera {camera} has pictures of {width}x{height} that stand upright")
        alike = sorted({tuple(sorted(pair)) for pair, count in self._alike.items() if count >= ENOUGH})
        return signs + [f"cameras {one} and {other} show the same pictures" for one, other in alike]


def _are_same(coarse: bytes, image: Image, other_coarse: bytes, other: Image) -> bool:
    return coarse == other_coarse and np.array_equal(image, other)
