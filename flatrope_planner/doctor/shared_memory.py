"""Shared memory: room for pictures, and what ended processes have left there."""

import os
from collections.abc import Iterator
from pathlib import Path

from flatrope_planner.bringup.leftovers import SHARED_MEMORY, described, remove, survey
from flatrope_planner.doctor.finding import Finding, Mark
from flatrope_planner.errors import SetupError

# What config/fastdds.xml asks for, and what two such processes and a few plain ones need.
SEGMENT_BYTES = 25_165_824
ROOM_BYTES = 64 * 2**20
SPACE, LEFTOVERS = "shared memory", "leftovers"
LARGER = "in a container: docker run --shm-size=512m, or --ipc=host; else remove files that nobody needs there"


def check_space(folder: Path = SHARED_MEMORY) -> Iterator[Finding]:
    """Whether pictures fit in."""
    try:
        state = os.statvfs(folder)
    except OSError as err:
        yield Finding(
            SPACE, Mark.WARN, f"{folder}: {err.strerror}: pictures go by UDP, and get lost", f"mount {folder}"
        )
        return
    size, free = state.f_frsize * state.f_blocks, state.f_frsize * state.f_bavail
    found = f"{folder}: {free / 2**20:.0f} of {size / 2**20:.0f} MiB free"
    facts = {"size_bytes": size, "free_bytes": free}
    if not os.access(folder, os.W_OK | os.X_OK):
        yield Finding(SPACE, Mark.FAIL, f"{folder} may not be written to", f"chmod 1777 {folder}", facts)
    elif free < SEGMENT_BYTES:
        yield Finding(SPACE, Mark.FAIL, f"{found}: not one process that sends pictures fits", LARGER, facts)
    elif free < ROOM_BYTES:
        yield Finding(SPACE, Mark.WARN, f"{found}: room for a single process that sends pictures", LARGER, facts)
    else:
        yield Finding(SPACE, Mark.OK, found, facts=facts)


def check_leftovers(folder: Path = SHARED_MEMORY) -> Iterator[Finding]:
    """Whether ended processes have left files that make nodes start late."""
    try:
        found = survey(folder)
    except OSError as err:
        yield Finding(LEFTOVERS, Mark.WARN, f"{folder} cannot be looked through: {err.strerror}", f"mount {folder}")
        return
    facts = {
        "used": found.used,
        "left": [{"name": each.name, "size_bytes": each.size_bytes, "age_s": each.age_s} for each in found.left],
        "unclear": [each.name for each in found.unclear],
    }
    if found.left:
        remedy = "`flatrope doctor --clean` removes what no process uses (or: fastdds shm clean)"
        words = f"{described(found.left)}: nodes may start late and lose messages"
        yield Finding(LEFTOVERS, Mark.WARN, words, remedy, facts)
        return
    unclear = f", {len(found.unclear)} without an owner that can be seen" if found.unclear else ""
    yield Finding(LEFTOVERS, Mark.OK, f"none; {found.used} segments and ports in use{unclear}", facts=facts)


def clean(folder: Path = SHARED_MEMORY) -> list[str]:
    """Remove what ended processes have left; the names of what is gone.

    Raises:
        SetupError: when some of it is another user's.
    """
    removed, refused = [], []
    for leftover in survey(folder).left:
        try:
            if remove(leftover):
                removed.append(leftover.name)
        except OSError:
            refused.append(leftover.name)
    if refused:
        msg = f"{folder}: {', '.join(refused)} may not be removed ({len(removed)} others were): they are another user's"
        raise SetupError(msg)
    return removed
