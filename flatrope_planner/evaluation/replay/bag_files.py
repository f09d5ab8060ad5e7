"""Opens what a bag is stored in: rosbag2 folders, folders that lost their metadata, single files, packed files."""

import re
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, cast

from rosbags.interfaces import Connection
from rosbags.rosbag2 import Reader

from flatrope_planner.errors import InputError, reason
from flatrope_planner.evaluation.replay.cut_off_mcap import CutOffMcap
from flatrope_planner.evaluation.replay.cut_off_sqlite import CutOffSqlite
from flatrope_planner.evaluation.replay.unpacking import open_unpacked
from flatrope_planner.evaluation.report.bounds import check_metadata

METADATA = "metadata.yaml"
STORAGE = (".mcap", ".db3")
PACKED = (".zstd", ".zst")
EXPECTED = "expected the folder of a rosbag2 bag, or an .mcap or .db3 file, which may be packed with zstd"


class StorageReader(Protocol):
    """What reads a bag or a part of it: a reader of rosbags, or one for what rosbags refuses."""

    path: Any
    message_count: Any
    start_time: Any
    end_time: Any
    connections: Any

    def messages(self, connections: Collection[Connection]) -> Iterator[tuple[Connection, int, bytes]]:
        """Connection, time of recording (ns) and content."""
        ...


CUT_OFF: dict[str, Callable[[Path], CutOffMcap | CutOffSqlite]] = {".mcap": CutOffMcap, ".db3": CutOffSqlite}


def is_storage(path: Path) -> bool:
    """Whether the file holds messages, by its name."""
    name = path.with_suffix("") if path.suffix in PACKED else path
    return path.is_file() and name.suffix in STORAGE


def open_readers(path: Path, stack: ExitStack, notes: list[str]) -> list[StorageReader]:
    """Open readers of everything in the bag that can be read; what cannot is noted.

    Args:
        path: folder or file of the bag.
        stack: closes the readers, and removes what was unpacked.
        notes: takes a line for each part that is missing or damaged.

    Raises:
        InputError: if nothing can be read.
    """
    if not path.exists():
        msg = f"{path} does not exist; {EXPECTED}"
        raise InputError(msg)
    if not path.is_dir():
        return [_open_file(path, stack, notes)]
    if (path / METADATA).exists():
        check_metadata(path)
        try:
            return [_opened(path, stack)]
        except InputError as err:
            # Its files may be sound, or some of them.
            notes.append(str(err))
    return _open_files(path, stack, notes)


def _open_files(folder: Path, stack: ExitStack, notes: list[str]) -> list[StorageReader]:
    """Readers of the folder's files, in the order of their numbers."""
    files = sorted((path for path in folder.iterdir() if is_storage(path)), key=_natural)
    if not files:
        msg = notes.pop() if notes else f"{folder} is no bag: no {METADATA}, no .mcap and no .db3 in it; {EXPECTED}"
        raise InputError(msg)
    if not (folder / METADATA).exists():
        notes.append(f"{folder} has no {METADATA}: what was recorded and never closed may be missing")
    readers: list[StorageReader] = []
    complaints: list[str] = []
    for file in files:
        try:
            readers.append(_open_file(file, stack, complaints))
        except InputError as err:
            complaints.append(str(err))
    if not readers:
        raise InputError(complaints[0])
    notes += complaints
    return readers


def _open_file(file: Path, stack: ExitStack, notes: list[str]) -> StorageReader:
    if not is_storage(file):
        is_ros1 = " (bags of ROS 1 have to be converted: rosbags-convert)" if file.suffix == ".bag" else ""
        msg = f"{file} is no bag{is_ros1}; {EXPECTED}"
        raise InputError(msg)
    if file.suffix not in PACKED:
        return _opened_or_rescued(file, stack, notes)
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="flatrope-replay-")))
    unpacked = folder / file.stem
    try:
        with open_unpacked(file) as source, unpacked.open("wb") as target:
            shutil.copyfileobj(source, target)
    except Exception as err:  # each library of compression has errors of its own
        msg = f"{file} cannot be unpacked: {reason(err)}"
        raise InputError(msg) from err
    return _opened_or_rescued(unpacked, stack, notes)


def _opened_or_rescued(file: Path, stack: ExitStack, notes: list[str]) -> StorageReader:
    try:
        return _opened(file, stack)
    except InputError:
        cut_off = CUT_OFF[file.suffix](file)
        if not cut_off.message_count:
            raise
        if not cut_off.complete:
            notes.append(f"{file} ends in the middle: {cut_off.message_count} messages could be rescued")
        return cut_off


def _opened(path: Path, stack: ExitStack) -> StorageReader:
    try:
        return cast("StorageReader", stack.enter_context(Reader(path)))
    except Exception as err:  # damage shows in the container, its compression or its YAML, each with errors of its own
        msg = f"{path} cannot be read as a bag: {reason(err)}"
        raise InputError(msg) from err


def _natural(path: Path) -> list[int | str]:
    """Sorts drive_2 before drive_10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", path.name)]
