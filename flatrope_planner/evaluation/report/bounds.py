"""What reading a bag may take. A few kilobytes can unpack to anything, and a length in a damaged file can be any."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

from flatrope_planner.vla.memory_limits import taken_by_process

# A picture of 8K (7680 x 4320) in bgra8 fits twice.
MOST_MESSAGE_BYTES = 2**28
# A chunk of an .mcap file is in memory as a whole; recorders write some megabytes.
MOST_CHUNK_BYTES = 2**30
# All that is read of a bag stays in memory until the report is written.
MOST_MEMORY_BYTES = 4 * 2**30
# A bag that is compressed as a whole is unpacked into a file.
MOST_FILE_BYTES = 16 * 2**30


@contextmanager
def bounded(memory_bytes: int = MOST_MEMORY_BYTES) -> Iterator[None]:
    """Within, this process gets so much memory beyond what it has, and writes no larger file than allowed.

    Where the system does not say how much it has, only the files are bounded.
    More raises a MemoryError or an OSError, whichever library asks for it.
    """
    kinds = {resource.RLIMIT_FSIZE: MOST_FILE_BYTES}
    has_bytes = taken_by_process()
    if has_bytes is not None:
        kinds[resource.RLIMIT_AS] = has_bytes + memory_bytes
    before = {kind: resource.getrlimit(kind) for kind in kinds}
    try:
        for kind, most in kinds.items():
            soft, hard = before[kind]
            resource.setrlimit(kind, (most if soft == resource.RLIM_INFINITY else min(most, soft), hard))
        yield
    finally:
        for kind, limits in before.items():
            resource.setrlimit(kind, limits)
