"""Opens what a bag is stored in: rosbag2 folders, folders that lost their metadata, single files, packed files."""

import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, Protocol, cast

from rosbags.interfaces import Connection
from rosbags.rosbag2 import Reader

from flatrope_planner.errors import InputError, reason
from flatrope_planner.evaluation.replay.cut_off_mcap import CutOffMcap
from flatrope_planner.evaluation.replay.cut_off_sqlite import CutOffSqlite, has_log
from flatrope_planner.evaluation.replay.storage_files import (
    MOST_NAMED,
    PACKED,
    files_of,
    is_storage,
    loose_bags,
    missing_parts,
    several_bags,
)
from flatrope_planner.evaluation.replay.unpacking import open_unpacked
from flatrope_planner.evaluation.report.bounds import check_metadata

METADATA = "metadata.yaml"
# What rosbags calls the type of a channel that has none in the index of an .mcap file.
NO_SCHEMA = "__schemaless__"
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


@dataclass(frozen=True)
class Part:
    """A bag or one of its files, opened."""

    # As the user knows it, not where it may have been unpacked to.
    path: Path
    reader: StorageReader


def open_parts(path: Path, stack: ExitStack, notes: list[str]) -> list[Part]:
    """Open everything in the bag that can be read; what cannot is noted.

    Args:
        path: folder or file of the bag.
        stack: closes the readers, and removes what was unpacked.
        notes: takes a line for each part that is missing or damaged.

    Raises:
        InputError: if nothing can be read.
    """
    if not path.exists() and not files_of(path):
        msg = f"{path} does not exist; {EXPECTED}"
        raise InputError(msg)
    if path.is_file():
        return [Part(path, _open_file(path, stack, notes))]
    if (path / METADATA).exists():
        check_metadata(path)
        try:
            reader = _opened(path, stack)
        except InputError as err:
            # Its files may be sound, or some of them.
            notes.append(str(err))
        else:
            told = _is_as_told(reader)
            if told and is_read_in_whole(reader) and not any(has_log(file) for file in path.iterdir()):
                return [Part(path, reader)]
            if not told:
                notes.append(
                    f"{path / METADATA} tells of other topics, or of more or fewer messages, than its files hold"
                )
    return _open_files(path, stack, notes)


def _is_as_told(bag: Any) -> bool:
    """Whether the files of a folder hold what its metadata says."""
    parts = bag.storage.storages
    held = _counts(connection for part in parts for connection in part.connections)
    return _counts(bag.connections) == held and bag.message_count == held.total()


def is_read_in_whole(bag: Any) -> bool:
    """Whether rosbags finds all topics of the files again in the metadata.

    It does not where these tell differently by which quality of service they were offered, as rosbag2 often does.
    """
    return all(
        any(
            (told.topic, told.msgtype, told.ext) == (held.topic, held.msgtype, held.ext)
            and (not told.digest or not held.digest or told.digest == held.digest)
            for told in bag.connections
        )
        for part in bag.storage.storages
        for held in part.connections
    )


def _counts(connections: Iterable[Connection]) -> Counter[tuple[str, str]]:
    """Topic and type -> messages."""
    counts = Counter[tuple[str, str]]()
    for connection in connections:
        counts[connection.topic, connection.msgtype] += connection.msgcount
    return +counts


def _open_files(folder: Path, stack: ExitStack, notes: list[str]) -> list[Part]:
    """The folder's files, in the order of their numbers."""
    files = files_of(folder)
    if folder.is_dir() and not (folder / METADATA).exists() and len(bags := loose_bags(folder)) > 1:
        raise several_bags(folder, list(bags))
    if not files:
        msg = notes.pop() if notes else f"{folder} is no bag: no {METADATA}, no .mcap and no .db3 in it; {EXPECTED}"
        raise InputError(msg)
    if not (folder / METADATA).exists():
        notes.append(f"{folder} has no {METADATA}: what was recorded and never closed may be missing")
        if missing := missing_parts(files):
            notes.append(f"of the files of {folder} there is no {', '.join(missing[:MOST_NAMED])}")
    parts: list[Part] = []
    complaints: list[str] = []
    for file in files:
        try:
            parts.append(Part(file, _open_file(file, stack, complaints)))
        except InputError as err:
            complaints.append(str(err))
    if not parts:
        raise InputError(complaints[0])
    notes += complaints
    return parts


def _open_file(file: Path, stack: ExitStack, notes: list[str]) -> StorageReader:
    if not is_storage(file):
        is_ros1 = " (bags of ROS 1 have to be converted: rosbags-convert)" if file.suffix == ".bag" else ""
        msg = f"{file} is no bag{is_ros1}; {EXPECTED}"
        raise InputError(msg)
    if file.suffix not in PACKED:
        return _opened_or_rescued(file, stack, notes)
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="flatrope-replay-")))
    content, complaints = folder / file.stem, list[str]()
    try:
        with open_unpacked(file) as source, content.open("wb") as target:
            shutil.copyfileobj(source, target)
    except Exception as err:  # each library of compression has errors of its own
        complaints.append(f"{file} cannot be unpacked to its end: {reason(err)}")
    try:
        reader = _opened_or_rescued(content, stack, complaints)
    except InputError as err:
        raise InputError(complaints[0] if complaints else _called(str(err), content, file)) from err
    notes += [_called(complaint, content, file) for complaint in complaints]
    return reader


def _called(complaint: str, content: Path, file: Path) -> str:
    """The complaint about what was unpacked, as one about the packed file."""
    return complaint.replace(str(content), str(file))


def _opened_or_rescued(file: Path, stack: ExitStack, notes: list[str]) -> StorageReader:
    try:
        if has_log(file):
            msg = f"{file} was never completed"
            raise InputError(msg)
        reader = _opened(file, stack)
        if all(connection.msgtype != NO_SCHEMA for connection in reader.connections):
            return reader
        error = InputError(f"{file} does not say of what type its messages are")
    except InputError as err:
        error = err
    cut_off = CUT_OFF[file.suffix](file)
    if not cut_off.message_count:
        msg = f"{error}; no message could be rescued"
        raise InputError(msg) from error
    if not cut_off.complete:
        notes.append(f"{file} is damaged or ends in the middle: {cut_off.message_count} messages could be rescued")
    return cut_off


def _opened(path: Path, stack: ExitStack) -> StorageReader:
    try:
        return cast("StorageReader", stack.enter_context(Reader(path)))
    except Exception as err:  # damage shows in the container, its compression or its YAML, each with errors of its own
        # What rosbags unpacks lies in a folder that is called differently each time.
        why = re.sub(re.escape(str(Path(gettempdir(), "tmp"))) + "[^/]+/", "", reason(err))
        msg = f"{path} cannot be read as a bag: {why}"
        raise InputError(msg) from err
