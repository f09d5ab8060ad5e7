"""Features of pictures that were seen before: the newest picture of one tick is an older one of a later tick."""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass

from flatrope_planner.dimensions import SHORTEST_PLAN_PERIOD_S
from flatrope_planner.domain import Image, Observation, ObservationSpec
from flatrope_planner.vla.vision import VisionFeatures


@dataclass(frozen=True)
class _Known:
    stamp_ns: int
    features: VisionFeatures


class VisionCache:
    """Remembers the features of pictures that a later tick may ask for again.

    A picture is known by its content: camera and time stamp would not tell two drives apart.
    """

    def __init__(self, encode: Callable[[Image], VisionFeatures], capacity: int) -> None:
        """Room for `capacity` pictures, whatever their stamps; 0 encodes each anew."""
        self._encode = encode
        self._capacity = capacity
        self._known: dict[bytes, _Known] = {}
        self.hits = self.misses = 0

    def __len__(self) -> int:
        return len(self._known)

    def features(self, picture: Image, stamp_ns: int) -> VisionFeatures:
        """Features of a picture taken at `stamp_ns`."""
        shape = repr(picture.shape).encode()
        key = hashlib.blake2b(picture.tobytes(), digest_size=16, key=shape).digest()
        known = self._known.pop(key, None)
        if known is None:
            self.misses += 1
            features = self._encode(picture)
        else:
            self.hits += 1
            features = known.features
        self._known[key] = _Known(stamp_ns, features)
        while len(self._known) > self._capacity:
            self._known.pop(next(iter(self._known)))
        return features

    def forget_unlike(self, observation: Observation) -> None:
        """Forget what is older than all pictures of this tick, or, as after a leap back in time, newer."""
        stamps = [frame.stamp_ns for frames in observation.frames.values() for frame in frames]
        self._known = {key: each for key, each in self._known.items() if min(stamps) <= each.stamp_ns <= max(stamps)}


def capacity_for(spec: ObservationSpec) -> int:
    """Pictures that ticks can bring, at the most, until the newest one of a tick is the oldest one of another."""
    span_s = (spec.frames_per_camera - 1) * spec.frame_period_s
    ticks = math.ceil(span_s / SHORTEST_PLAN_PERIOD_S) + 1
    return ticks * len(spec.cameras) * spec.frames_per_camera
