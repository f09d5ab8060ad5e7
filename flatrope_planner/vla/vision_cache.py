"""Features of pictures that were seen before: the newest picture of one tick is an older one of the next."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable

from flatrope_planner.domain import Image
from flatrope_planner.vla.vision import VisionFeatures


class VisionCache:
    """Remembers the features of the last few pictures.

    A picture is known by its content: camera and time stamp would not tell two drives apart.
    """

    def __init__(self, encode: Callable[[Image], VisionFeatures], capacity: int) -> None:
        """Room for `capacity` pictures; 0 encodes each anew."""
        self._encode = encode
        self._capacity = capacity
        self._known: OrderedDict[bytes, VisionFeatures] = OrderedDict()
        self.hits = self.misses = 0

    def __len__(self) -> int:
        return len(self._known)

    def features(self, picture: Image) -> VisionFeatures:
        """Features of a picture."""
        shape = repr(picture.shape).encode()
        key = hashlib.blake2b(picture.tobytes(), digest_size=16, key=shape).digest()
        found = self._known.pop(key, None)
        if found is None:
            self.misses += 1
            found = self._encode(picture)
        else:
            self.hits += 1
        self._known[key] = found
        while len(self._known) > self._capacity:
            self._known.popitem(last=False)
        return found
