"""Finds, and removes, what ended processes have left of Fast DDS in shared memory.

Such leftovers fill the memory and, as ports, make nodes that start later come up late and lose messages. How Fast DDS
marks life (SharedMemGlobal, RobustExclusiveLock and RobustSharedLock in its sources): whoever owns the segment
`fastrtps_<16 hexadecimal digits>` or listens to the port `fastrtps_port<number>` holds a flock on `<name>_el`, or on
`<name>_sl` where several listen, for as long as it lives. A port has the semaphore `sem.<name>_mutex` beside it. Who
only sends to a port holds no lock, but has it mapped.

Processes in other containers that share the memory are known by their locks alone.
"""

import fcntl
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

SHARED_MEMORY, PROCESSES = Path("/dev/shm"), Path("/proc")  # noqa: S108 - where Fast DDS has it
# A file is made some moments before it is locked.
YOUNG_S = 10.0
_NAME = re.compile(r"(?:sem\.)?(fastrtps_(?:port\d{1,10}|[0-9a-f]{16}))(?:_el|_sl|_mutex)?")
_LOCKS = ("_el", "_sl")
# Inode of the first PID namespace, the same on every Linux: from there all processes are seen.
_FIRST_NAMESPACE = 0xEFFFFFFC


@dataclass(frozen=True)
class Leftover:
    """The files of one segment or port that nobody uses."""

    name: str
    files: tuple[Path, ...]
    size_bytes: int
    # Since something last happened to them.
    age_s: float

    @property
    def locks(self) -> tuple[Path, ...]:
        """Those files among them that an owner would hold."""
        return tuple(file for file in self.files if file.name.endswith(_LOCKS))


@dataclass(frozen=True)
class Survey:
    """What there is of Fast DDS in shared memory."""

    # How many segments and ports living processes use.
    used: int
    left: tuple[Leftover, ...]
    # Without a lock, and used by nobody whom we can see; others may be there whom we cannot.
    unclear: tuple[Leftover, ...]


def survey(folder: Path = SHARED_MEMORY, processes: Path = PROCESSES) -> Survey:
    """Tell what is used from what is left; a lock that nobody holds is taken for a moment to see that.

    Raises:
        OSError: when the folder cannot be read.
    """
    groups: dict[str, list[Path]] = {}
    for file in sorted(folder.iterdir()):
        found = _NAME.fullmatch(file.name)
        if found:
            groups.setdefault(found[1], []).append(file)
    if not groups:
        return Survey(0, (), ())
    opened, all_seen = _opened(processes)
    used = 0
    left: list[Leftover] = []
    unclear: list[Leftover] = []
    for name, files in groups.items():
        group = _group(name, files)
        if group is None:
            continue
        if group.age_s < YOUNG_S or opened & _inodes(files) or any(map(_is_held, group.locks)):
            used += 1
        else:
            (left if group.locks or all_seen else unclear).append(group)
    return Survey(used, tuple(left), tuple(unclear))


def remove(leftover: Leftover) -> bool:
    """Remove the files, holding their locks meanwhile; False when somebody has taken one up since.

    Raises:
        OSError: when they are another user's.
    """
    with ExitStack() as held:
        try:
            if not all(held.enter_context(_holding(lock)) for lock in leftover.locks):
                return False
        except FileNotFoundError:
            return False
        # The locks go last: as long as they are there, nobody else takes the rest for usable.
        for file in sorted(leftover.files, key=lambda file: file in leftover.locks):
            file.unlink(missing_ok=True)
    return True


def warn_of_leftovers(write: Callable[[str], None], folder: Path = SHARED_MEMORY) -> None:
    """One line if there are any, before nodes start that would suffer from them."""
    with suppress(OSError):
        left = survey(folder).left
        if left:
            write(f"{folder} holds {described(left)}: nodes may start late and lose messages; see `flatrope doctor`")


def described(leftovers: Iterable[Leftover]) -> str:
    """How many, how large, how old, and their names: `2 ports and 1 segment of ended processes (...)`."""
    found = list(leftovers)
    ports = sum("_port" in each.name for each in found)
    counts = [(ports, "port"), (len(found) - ports, "segment")]
    kinds = " and ".join(f"{count} {kind}{'s' * (count > 1)}" for count, kind in counts if count)
    names = ", ".join(each.name for each in found[:3]) + (", ..." if len(found) > 3 else "")
    megabytes = sum(each.size_bytes for each in found) / 1e6
    oldest_min = max(each.age_s for each in found) / 60.0
    return f"{kinds} of ended processes ({megabytes:.1f} MB, up to {oldest_min:.0f} min old: {names})"


def _group(name: str, files: list[Path]) -> Leftover | None:
    """The files as one; None when they have gone meanwhile."""
    states = []
    for file in files:
        with suppress(FileNotFoundError):
            states.append(file.lstat())
    if not states:
        return None
    age_s = time.time() - max(max(state.st_mtime, state.st_ctime) for state in states)
    return Leftover(name, tuple(files), sum(state.st_size for state in states), age_s)


def _inodes(files: Iterable[Path]) -> set[int]:
    found = set()
    for file in files:
        with suppress(OSError):
            found.add(file.lstat().st_ino)
    return found


def _opened(processes: Path) -> tuple[set[int], bool]:
    """Inodes of Fast DDS's files that processes have mapped or open, and whether all processes were seen."""
    inodes: set[int] = set()
    try:
        all_seen = (processes / "self/ns/pid").stat().st_ino == _FIRST_NAMESPACE
    except OSError:
        all_seen = False
    for process in processes.glob("[0-9]*"):
        try:
            inodes.update(_mapped(process / "maps"))
            inodes.update(_open_files(process / "fd"))
        except PermissionError:
            all_seen = False
        except OSError:
            # It has ended meanwhile.
            continue
    return inodes, all_seen


def _mapped(maps: Path) -> Iterator[int]:
    # Each line: addresses, rights, offset, device, inode, path.
    for line in maps.read_text(errors="replace").splitlines():
        if "fastrtps_" in line:
            yield int(line.split(maxsplit=5)[4])


def _open_files(folder: Path) -> Iterator[int]:
    for descriptor in folder.iterdir():
        with suppress(FileNotFoundError):
            if "fastrtps_" in str(descriptor.readlink()):
                yield descriptor.stat().st_ino


def _is_held(lock: Path) -> bool:
    """Whether a living process holds the lock; what may not be looked at counts as held."""
    try:
        with _holding(lock) as taken:
            return not taken
    except OSError:
        return True


@contextmanager
def _holding(lock: Path) -> Iterator[bool]:
    """Hold a lock, or say that it cannot be had."""
    descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        yield _take(descriptor, lock)
    finally:
        os.close(descriptor)


def _take(descriptor: int, lock: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # An owner that ends removes its lock, and the next one may have made its own by now.
        return os.fstat(descriptor).st_ino == lock.lstat().st_ino
    except (BlockingIOError, FileNotFoundError):
        return False
