"""Whether pictures are lost on their way, as the gaps between their stamps tell, and the likely cause."""

from collections import deque
from itertools import pairwise

from flatrope_planner.bringup.configuration import config_file

# In the name of a middleware that is Fast DDS's.
FAST_DDS = "fastrtps"
# Fast DDS's own segment of shared memory is this large; a picture that does not fit seldom arrives (bytes).
LARGE_BYTES = 500_000
# Stamps that are remembered, gaps that are enough to judge by, and the share that is a fault.
STAMPS, GAPS_ENOUGH, SHARE_LOST = 32, 16, 0.5
# As enough are so few that span so long: where nearly all is lost, little comes (ns).
FEW_GAPS, LONG_NS = 6, 8_000_000_000
# The gap that this share of all is shorter than is one period: the odd burst of a driver is none.
PERIOD_SHARE = 0.1
# Odometry that is silent for longer has been paused: between two scenes, or two drives of a bag.
PAUSE_NS = 1_000_000_000


class SourcePauses:
    """Stretches of time in which not even odometry was sent, so that no picture of them can be lost."""

    def __init__(self) -> None:
        """Know of none yet."""
        self._last_ns: int | None = None
        self._pauses: deque[tuple[int, int]] = deque(maxlen=STAMPS)

    def take(self, stamp_ns: int) -> None:
        """Note odometry that came."""
        if self._last_ns is not None and stamp_ns - self._last_ns > PAUSE_NS:
            self._pauses.append((self._last_ns, stamp_ns))
        self._last_ns = stamp_ns

    def within(self, begin_ns: int, end_ns: int) -> int:
        """How much of a stretch they make up (ns)."""
        return sum(max(0, min(end_ns, until_ns) - max(begin_ns, from_ns)) for from_ns, until_ns in self._pauses)


class PictureLosses:
    """The newest pictures of one camera."""

    def __init__(
        self, *, raw: bool, fast_dds: bool, share_lost: float = SHARE_LOST, pauses: SourcePauses | None = None
    ) -> None:
        """Know nothing yet.

        Args:
            raw: whether the pictures come raw, not compressed.
            fast_dds: whether they come by Fast DDS, not another middleware.
            share_lost: from which share on there is a warning of what is lost (0 to 1).
            pauses: of what sends them; None for none.
        """
        self._raw, self._fast_dds, self._share_lost = raw, fast_dds, share_lost
        self._pauses = pauses or SourcePauses()
        self._stamps_ns: deque[int] = deque(maxlen=STAMPS)
        self._size_bytes: int | None = None

    def take(self, stamp_ns: int, size_bytes: int) -> None:
        """Note a picture that came."""
        if self._stamps_ns and stamp_ns <= self._stamps_ns[-1]:
            self._stamps_ns.clear()
        self._stamps_ns.append(stamp_ns)
        self._size_bytes = size_bytes

    def share(self) -> float | None:
        """How many of the pictures did not come, 0 to 1; None where too few came to tell."""
        stretches_ns = pairwise(self._stamps_ns)
        gaps_ns = sorted(later - earlier - self._pauses.within(earlier, later) for earlier, later in stretches_ns)
        if len(gaps_ns) < (FEW_GAPS if sum(gaps_ns) >= LONG_NS else GAPS_ENOUGH):
            return None
        period_ns = gaps_ns[max(1, int(PERIOD_SHARE * len(gaps_ns)))]
        return max(0.0, 1.0 - period_ns * len(gaps_ns) / max(sum(gaps_ns), 1))

    def warning(self) -> str:
        """What is lost and why, in words; "" for large pictures that arrive, and for all small ones."""
        share = self.share()
        if share is None or share < self._share_lost or self._size_bytes is None or self._size_bytes < LARGE_BYTES:
            return ""
        return f"about {share:.0%} of the pictures are lost, by their stamps, {self._likely(self._size_bytes)}"

    def silence(self) -> str:
        """What may keep large pictures of a camera that publishes from coming, in words; "" for nothing."""
        share = self.share()
        if share is not None and share < self._share_lost:
            return ""
        if self._size_bytes is None:
            return f"perhaps as {self._cause('they')}" if self._raw else ""
        return self._likely(self._size_bytes) if self._size_bytes >= LARGE_BYTES else ""

    def _likely(self, size_bytes: int) -> str:
        return f"likely as {self._cause(f'pictures of {size_bytes / 1e6:.1f} MB')}"

    def _cause(self, pictures: str) -> str:
        """What keeps `pictures` from coming, and what lets them through."""
        if not self._fast_dds:
            return f"{pictures} are large: send them compressed"
        profile = f"FASTRTPS_DEFAULT_PROFILES_FILE={config_file('fastdds.xml')}"
        return (
            f"{pictures} do not fit into Fast DDS's own shared memory (0.5 MB): start what sends them with {profile} "
            "(FASTDDS_... from Kilted on), or send them compressed"
        )
