"""What a process and its children hold of the machine, read from /proc."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Usage:
    """One process and all its descendants."""

    # Memory (KiB); what several processes share counts for each by its part.
    memory_kib: int
    # Part of it that is shared memory.
    shared_kib: int
    threads: int
    files: int


def usage_of(pid: int, proc: Path = PROC) -> Usage:
    """What a process holds now; zeros when there is no such process any more."""
    memory_kib = shared_kib = threads = files = 0
    for each in _family(pid, proc):
        folder = proc / str(each)
        # A process may end between two reads.
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = _fields((folder / "smaps_rollup").read_text(encoding="ascii"))
            threads += int(_fields((folder / "status").read_text(encoding="utf-8"))["Threads"])
            files += len(list((folder / "fd").iterdir()))
            memory_kib += int(fields["Pss"].split()[0])
            # Older kernels do not say it.
            shared_kib += int(fields.get("Pss_Shmem", "0 kB").split()[0])
    return Usage(memory_kib, shared_kib, threads, files)


def _family(pid: int, proc: Path) -> list[int]:
    """The process and its descendants."""
    family = [pid]
    for each in family:
        with suppress(FileNotFoundError, ProcessLookupError):
            for task in (proc / str(each) / "task").iterdir():
                family += [int(child) for child in (task / "children").read_text(encoding="ascii").split()]
    return family


def _fields(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs}
