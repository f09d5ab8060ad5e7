"""The pictures of the last seconds as they lie in the bag: only those that an observation asks for are decoded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flatrope_planner.domain import CameraFrame, Image, ObservationSpec
from flatrope_planner.evaluation.replay.bag_source import RawMessage
from flatrope_planner.planning.observation import IMAGE_SLACK_S, MAX_FRAMES_PER_CAMERA
from flatrope_planner.planning.stream import Stream

Decode = Callable[[RawMessage], Image]


@dataclass
class RawPicture:
    """One picture, decoded once it was asked for."""

    camera: str
    stamp_ns: int
    message: RawMessage
    image: Image | None = None


class PictureStore:
    """Holds what an `ObservationBuffer` holds, in the size it has in the bag."""

    def __init__(self, spec: ObservationSpec, decode: Decode) -> None:
        """Nothing yet."""
        self._spec, self._decode = spec, decode
        self.clear()

    def clear(self) -> None:
        """Forget all pictures."""
        span_s = self._spec.frames_per_camera * self._spec.frame_period_s + IMAGE_SLACK_S
        self._streams = {camera: Stream[RawPicture](span_s, MAX_FRAMES_PER_CAMERA) for camera in self._spec.cameras}

    def add(self, picture: RawPicture) -> None:
        """Keep a picture; one that can only come from a restarted source ends all before it."""
        if self._streams[picture.camera].began_anew(picture.stamp_ns):
            self.clear()
        self._streams[picture.camera].add(picture)

    def remove(self, picture: RawPicture) -> None:
        """Forget one picture."""
        stream = self._streams[picture.camera]
        at = stream.samples.index(picture)
        del stream.samples[at], stream.stamps_ns[at]

    def pictures(self) -> list[RawPicture]:
        """All of them."""
        return [picture for stream in self._streams.values() for picture in stream.samples]

    def find(self, camera: str, stamp_ns: int) -> RawPicture:
        """The picture of exactly that stamp.

        Raises:
            KeyError: if there is none.
        """
        picture = self._streams[camera].nearest(stamp_ns)
        if picture is None or picture.stamp_ns != stamp_ns:
            raise KeyError(camera, stamp_ns)
        return picture

    def decoded(self, pictures: Sequence[RawPicture]) -> tuple[CameraFrame, ...]:
        """The pictures as frames.

        Raises:
            BrokenPictureError: naming the first that cannot be decoded.
        """
        return tuple(CameraFrame(picture.stamp_ns, self._image(picture)) for picture in pictures)

    def _image(self, picture: RawPicture) -> Image:
        if picture.image is None:
            picture.image = self._decode(picture.message)
        return picture.image
