"""The pictures of the last seconds as they lie in the bag: only those that an observation asks for are decoded."""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flatrope_planner.domain import CameraFrame, Image, ObservationSpec, seconds_to_ns
from flatrope_planner.evaluation.replay.bag_source import RawMessage
from flatrope_planner.planning.observation import IMAGE_SLACK_S
from flatrope_planner.planning.stream import RESTART_SAMPLES

Decode = Callable[[RawMessage], Image]


@dataclass
class RawPicture:
    """One picture, decoded once it was asked for."""

    camera: str
    stamp_ns: int
    message: RawMessage
    image: Image | None = None


class PictureStore:
    """Holds what an `ObservationBuffer` may ask for, in the size it has in the bag."""

    def __init__(self, spec: ObservationSpec, decode: Decode) -> None:
        """Nothing yet."""
        span_s = spec.frames_per_camera * spec.frame_period_s + IMAGE_SLACK_S
        self._decode, self._span_ns = decode, seconds_to_ns(span_s)
        self._kept: dict[tuple[str, int], RawPicture] = {}
        # Refused for stamps far behind the newest one; pictures all the same if it turns out that time began anew.
        self._held: deque[RawPicture] = deque(maxlen=RESTART_SAMPLES * len(spec.cameras))
        # Topic -> pictures that somebody asked for.
        self.looked_at: Counter[str] = Counter()

    def keep(self, picture: RawPicture) -> None:
        """Keep a picture, and of its camera no more than an observation may reach back."""
        self._kept[picture.camera, picture.stamp_ns] = picture
        for key in [key for key in self._kept if key[0] == picture.camera and self._is_too_old(key[1], picture)]:
            del self._kept[key]

    def hold(self, picture: RawPicture) -> None:
        """Remember a picture that the buffer has refused."""
        self._held.append(picture)

    def begin_anew(self) -> None:
        """Keep what was held."""
        for picture in self._held:
            self._kept[picture.camera, picture.stamp_ns] = picture
        self._held.clear()

    def remove(self, picture: RawPicture) -> None:
        """Forget one picture."""
        del self._kept[picture.camera, picture.stamp_ns]

    def pictures(self) -> list[RawPicture]:
        """All of them, as they came."""
        return list(self._kept.values())

    def find(self, camera: str, stamp_ns: int) -> RawPicture:
        """The picture of exactly that stamp.

        Raises:
            KeyError: if there is none.
        """
        return self._kept[camera, stamp_ns]

    def _is_too_old(self, stamp_ns: int, newest: RawPicture) -> bool:
        return abs(stamp_ns - newest.stamp_ns) > self._span_ns

    def decoded(self, pictures: Sequence[RawPicture]) -> tuple[CameraFrame, ...]:
        """The pictures as frames.

        Raises:
            InputError: if one cannot be decoded.
        """
        return tuple(CameraFrame(picture.stamp_ns, self._image(picture)) for picture in pictures)

    def _image(self, picture: RawPicture) -> Image:
        if picture.image is None:
            self.looked_at[picture.message.topic] += 1
            picture.image = self._decode(picture.message)
        return picture.image
