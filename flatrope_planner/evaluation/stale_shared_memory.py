"""What crashes leave where Fast DDS keeps its shared memory: made on purpose, and cleared away."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108
PROC = Path("/proc")
# A process's own segment; ports, which are small, are shared and healed by whoever uses them next.
SEGMENT = re.compile(r"fast(rtps|dds)_[0-9a-f]{16}")
# Goes with each segment.
LOCK_SUFFIX = "_el"
# Named as Fast DDS names segments, by numbers that it is not likely to draw.
FILES = {
    "fastrtps_00000000feedface": b"",
    "fastrtps_00000000feedface_el": b"",
    "fastrtps_00000000deadbeef": b"\xff" * 4096,
    "fastdds_00000000deadbeef": b"no segment",
}


class StaleSharedMemory:
    """Damaged segments lie there until the context is left."""

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


class CrashRemains:
    """The segments of processes that are killed: nobody but us will ever remove them."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._mapped: set[Path] = set()

    def note(self, pid: int) -> None:
        """Note what a process uses, before it is killed."""
        self._mapped |= set(_segments_of(pid))

    def remove(self) -> None:
        """Remove what has been noted and no process uses any more."""
        in_use = {path for folder in PROC.glob("[0-9]*") for path in _segments_of(int(folder.name))}
        for path in self._mapped - in_use:
            path.unlink(missing_ok=True)
            path.with_name(path.name + LOCK_SUFFIX).unlink(missing_ok=True)


def _segments_of(pid: int) -> Iterator[Path]:
    """Files of Fast DDS that a process has mapped; none of one that is gone or not ours to look at."""
    with suppress(OSError):
        for line in (PROC / str(pid) / "maps").read_text(encoding="utf-8", errors="replace").splitlines():
            path = Path(line.split(maxsplit=5)[-1].removesuffix(" (deleted)"))
            if path.parent == SHARED_MEMORY and SEGMENT.fullmatch(path.name):
                yield path
