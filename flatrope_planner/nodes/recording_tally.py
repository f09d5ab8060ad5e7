"""What has been recorded of each topic, in numbers, and how many pictures of a camera were lost on their way."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from flatrope_planner.nodes.picture_losses import STAMPS, PictureLosses

PICTURE_TYPES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
ODOMETRY_TYPE = "nav_msgs/msg/Odometry"
# Of a recording less may be lost than of what is planned from; where a driver's stamps jitter, this is no loss yet.
SHARE_LOST = 0.25


@dataclass
class PictureTally:
    """The pictures of one camera; lost ones are told by the gaps between stamps."""

    newest: PictureLosses
    _came: int = 0
    # How many would have come without losses, of those that are judged: of every window of stamps.
    _judged: int = 0
    _sent: float = 0.0

    def take(self, stamp_ns: int, size_bytes: int) -> None:
        """Note a picture."""
        self.newest.take(stamp_ns, size_bytes)
        self._came += 1
        if self._came % STAMPS == 0:
            self._judge()

    def share_lost(self) -> float:
        """Of all pictures, 0 to 1; 0 where too few came to tell."""
        if self._came % STAMPS:
            self._judge()
        return 1.0 - self._judged / self._sent if self._sent else 0.0

    def _judge(self) -> None:
        share = self.newest.share()
        if share is not None:
            self._judged += STAMPS
            self._sent += STAMPS / (1.0 - share)


@dataclass
class TopicTally:
    """One topic. Times are of the steady clock (s)."""

    message_type: str
    # Of a camera.
    pictures: PictureTally | None = None
    messages: int = 0
    # Why the last message that was not written could not be, in words.
    rejection: str = ""
    first_s: float = field(default=0.0, init=False)
    last_s: float = field(default=0.0, init=False)

    def take(self, now_s: float) -> None:
        """Note a message that was written."""
        self.first_s = self.first_s if self.messages else now_s
        self.last_s = now_s
        self.messages += 1

    def comes_steadily(self, now_s: float, timeout_s: float) -> bool:
        """Whether messages have come for so long at the least, and come still."""
        return self.messages > 0 and now_s - self.first_s >= timeout_s >= now_s - self.last_s


@dataclass
class RecordingTally:
    """All topics that are listened to, by name."""

    topics: dict[str, TopicTally] = field(default_factory=dict)

    @property
    def messages(self) -> int:
        """All that were written."""
        return sum(tally.messages for tally in self.topics.values())

    def count(self, types: Collection[str], names: Iterable[str] | None = None) -> int:
        """The messages of these types, of all topics or of those that are named."""
        found = [self.topics[name] for name in (self.topics if names is None else names) if name in self.topics]
        return sum(tally.messages for tally in found if tally.message_type in types)

    def __str__(self) -> str:
        """For example `12.0 s, 240 pictures (/left 120, /right 120), 600 of odometry, 3 other messages`."""
        filled = [tally for tally in self.topics.values() if tally.messages]
        span_s = max((t.last_s for t in filled), default=0.0) - min((t.first_s for t in filled), default=0.0)
        cameras = {name: tally.messages for name, tally in self.topics.items() if tally.message_type in PICTURE_TYPES}
        each = ", ".join(f"{name} {count}" for name, count in sorted(cameras.items()))
        pictures, odometry = sum(cameras.values()), self.count((ODOMETRY_TYPE,))
        others = self.messages - pictures - odometry
        of_each = f" ({each})" if len(cameras) > 1 else ""
        return f"{span_s:.1f} s, {pictures} pictures{of_each}, {odometry} of odometry, {others} other messages"

    def losses(self) -> list[str]:
        """The cameras of which many pictures were lost, a phrase each."""
        cameras = {name: tally.pictures for name, tally in self.topics.items() if tally.pictures is not None}
        lost = {name: pictures.share_lost() for name, pictures in cameras.items()}
        return [f"about {share:.0%} of the pictures on {name}" for name, share in lost.items() if share >= SHARE_LOST]
