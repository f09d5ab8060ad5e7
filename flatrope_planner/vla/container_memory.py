"""How much memory a container has left: what the machine has free says nothing of its limit."""

from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
# Limit and use, of version 2 and of version 1.
FILES = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))


def left_in_container(folder: Path = CGROUP) -> int | None:
    """Bytes below the limit; None where there is none, or the system does not say."""
    for limit, used in FILES:
        try:
            return max(int((folder / limit).read_text()) - int((folder / used).read_text()), 0)
        except (OSError, ValueError):
            # Not there, or "max".
            continue
    return None
