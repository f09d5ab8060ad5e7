"""What makes this machine train faster, without changing what is learnt."""

import ctypes
import sys
from pathlib import Path

# glibc's mallopt: how much freed memory to keep, how much to ask for at once, how many blocks to map singly.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4
KEPT_BYTES, STEP_BYTES = 2**31 - 1, 2**28


def keep_freed_memory() -> None:
    """Let the allocator reuse large blocks; returning each to the kernel costs a third of a training step."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        libc.mallopt(M_TOP_PAD, STEP_BYTES)


def bfloat16_is_fast() -> bool:
    """Whether this processor multiplies bfloat16 matrices faster than float32 ones."""
    cpu = Path("/proc/cpuinfo")
    flags = cpu.read_text(encoding="utf-8") if cpu.is_file() else ""
    return "avx512_bf16" in flags or "amx_bf16" in flags
