"""How much memory the limits of a container and of a process leave: what the machine has free says nothing of them."""

import resource
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
# Limit and use, of version 2 and of version 1.
FILES = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))

STATM = Path("/proc/self/statm")


def left_in_container(folder: Path = CGROUP) -> int | None:
    """Bytes below the limit; None where there is none, or the system does not say."""
    for limit, used in FILES:
        try:
            return max(int((folder / limit).read_text()) - int((folder / used).read_text()), 0)
        except (OSError, ValueError):
            # Not there, or "max".
            continue
    return None


def left_in_process() -> int | None:
    """Bytes of addresses below the limit of `ulimit -v`; None where there is none, or the system does not say."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    taken = taken_by_process()
    return None if taken is None else max(limit - taken, 0)


def taken_by_process() -> int | None:
    """Bytes of addresses that this process has; None where the system does not say."""
    try:
        pages = int(STATM.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return None
    return pages * resource.getpagesize()
