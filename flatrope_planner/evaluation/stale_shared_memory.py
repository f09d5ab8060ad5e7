"""Damaged files where Fast DDS keeps its shared memory, as a full disk or a crash half way leaves them."""

from pathlib import Path
from types import TracebackType

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108
# Named as Fast DDS names segments, by numbers that it is not likely to draw.
FILES = {
    "fastrtps_00000000feedface": b"",
    "fastrtps_00000000feedface_el": b"",
    "fastrtps_00000000deadbeef": b"\xff" * 4096,
    "fastdds_00000000deadbeef": b"no segment",
}


class StaleSharedMemory:
    """The files lie there until the context is left."""

    def __init__(self) -> None:
        """Prepare."""
        self._written: list[Path] = []

    def __enter__(self) -> "StaleSharedMemory":
        for name, content in FILES.items():
            path = SHARED_MEMORY / name
            if not path.exists():
                path.write_bytes(content)
                self._written.append(path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for path in self._written:
            path.unlink(missing_ok=True)
