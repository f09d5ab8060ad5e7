"""Opens what a bag is stored in: rosbag2 folders, folders that lost their metadata, single files, packed files."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from rosbags.interfaces import Connection

from flatrope_planner.errors import InputError, reason
from flatrope_planner.evaluation.replay.bag_metadata import METADATA, read_metadata
from flatrope_planner.evaluation.replay.mcap_file import McapFile
from flatrope_planner.evaluation.replay.mcap_records import MAGIC as MCAP_MAGIC
from flatrope_planner.evaluation.replay.sqlite_file import SqliteFile
from flatrope_planner.evaluation.replay.storage_files import (
    files_of,
    is_storage,
    loose_bags,
    missing_parts,
    named,
    several_bags,
)
from flatrope_planner.evaluation.replay.unpacking import MAGIC as ZSTD_MAGIC
from flatrope_planner.evaluation.replay.unpacking import unpacked_pieces
from flatrope_planner.evaluation.report.bounds import MOST_FILE_BYTES

STORAGE: dict[str, type[McapFile] | type[SqliteFile]] = {".mcap": McapFile, ".db3": SqliteFile}
SQLITE_MAGIC = b"SQLite format 3\0"
EXPECTED = "expected the folder of a rosbag2 bag, or an .mcap or .db3 file, which may be packed with zstd"


class StorageReader(Protocol):
    """What reads one file of a bag."""

    @property
    def complaints(self) -> list[str]:
        """What is missing of the file, a line each; grows while it is read."""
        ...

    message_count: int
    start_time: int
    end_time: int
    connections: list[Connection]

    def messages(self, connections: Collection[Connection]) -> Iterator[tuple[Connection, int, bytes]]:
        """Connection, time of recording (ns) and content, in the order of time."""
        ...


@dataclass(frozen=True)
class Part:
    """A file of a bag, opened."""

    # As the user knows it, not where it may have been unpacked to.
    path: Path
    reader: StorageReader


def open_parts(path: Path, stack: ExitStack, notes: list[str]) -> list[Part]:
    """Open everything in the bag that can be read; what cannot is noted.

    Args:
        path: folder or file of the bag.
        stack: removes what was unpacked.
        notes: takes a line for each part that is missing or damaged.

    Raises:
        InputError: if nothing can be read.
    """
    if not path.exists() and not files_of(path):
        msg = f"{path} does not exist; {EXPECTED}"
        raise InputError(msg)
    if path.is_file():
        return _open_files([path], stack, notes)
    files, counts = _described(path, notes)
    parts = _open_files(files, stack, notes)
    if not notes and _counts(parts) != counts:
        notes.append(f"{path / METADATA} tells of other topics, or of more or fewer messages, than its files hold")
    return parts


def _described(folder: Path, notes: list[str]) -> tuple[list[Path], Counter[tuple[str, str]]]:
    """The files of the bag at a path, and what they hold; where that is not told, a note, and all files there are."""
    try:
        metadata = read_metadata(folder)
    except InputError as err:
        notes.append(str(err))
    else:
        files = [folder / name for name in metadata.files]
        missing = [file.name for file in files if not file.is_file()]
        if files and not missing:
            return files, metadata.counts
        notes.append(f"{folder / METADATA} names {', '.join(missing) or 'no file'}, which is not there")
    files = files_of(folder)
    if not (folder / METADATA).exists():
        if folder.is_dir() and len(bags := list(loose_bags(folder))) > 1:
            raise several_bags(folder, bags)
        if len(files) > 1:
            notes.append(f"{folder}: by their names alone these are one bag: {named([file.name for file in files])}")
        if missing := missing_parts(files):
            notes.append(f"of the files of {folder} there is no {named(missing)}")
    elif not files:
        raise InputError(notes.pop())
    if not files:
        hint = _ros1_hint(*folder.iterdir())
        msg = f"{folder} is no bag: no {METADATA}, no .mcap and no .db3 in it{hint}; {EXPECTED}"
        raise InputError(msg)
    return files, Counter()


def _counts(parts: Sequence[Part]) -> Counter[tuple[str, str]]:
    """Topic and type -> messages."""
    counts = Counter[tuple[str, str]]()
    for part in parts:
        for connection in part.reader.connections:
            counts[connection.topic, connection.msgtype] += connection.msgcount
    return +counts


def _open_files(files: Sequence[Path], stack: ExitStack, notes: list[str]) -> list[Part]:
    parts: list[Part] = []
    errors: list[str] = []
    for file in files:
        try:
            reader = _open_file(file, stack, notes)
        except InputError as err:
            errors.append(str(err))
        else:
            parts.append(Part(file, reader))
            notes += reader.complaints
    if not parts:
        raise InputError(errors[0])
    notes += errors
    return parts


def _open_file(file: Path, stack: ExitStack, notes: list[str]) -> StorageReader:
    if not is_storage(file):
        msg = f"{file} is no bag{_ros1_hint(file)}; {EXPECTED}"
        raise InputError(msg)
    content = file
    try:
        kind = _kind(file)
        if kind is None:
            content = Path(stack.enter_context(TemporaryDirectory(prefix="flatrope-replay-")), file.name)
            _unpack(file, content, notes)
            kind = _kind(content) or STORAGE[file.with_suffix("").suffix]
        return kind(content, file)
    except Exception as err:  # damage shows in the container or in its compression, each with errors of its own
        msg = f"{file} cannot be read: {reason(err)}; no message could be rescued"
        raise InputError(msg) from err


def _ros1_hint(*files: Path) -> str:
    """What to do with bags of ROS 1, if there are any."""
    is_ros1 = any(file.suffix == ".bag" for file in files)
    return " (bags of ROS 1 have to be converted: rosbags-convert)" if is_ros1 else ""


def _kind(file: Path) -> type[McapFile] | type[SqliteFile] | None:
    """What reads the file, by how it begins, else by its name; None if it is packed."""
    with file.open("rb") as stream:
        beginning = stream.read(len(SQLITE_MAGIC))
    if beginning.startswith(SQLITE_MAGIC):
        return SqliteFile
    if beginning.startswith(MCAP_MAGIC):
        return McapFile
    return None if beginning.startswith(ZSTD_MAGIC) else STORAGE.get(file.suffix)


def _unpack(file: Path, content: Path, notes: list[str]) -> None:
    """Unpack as much of the file as there is."""
    try:
        with content.open("wb") as target:
            for piece in unpacked_pieces(file):
                if target.tell() > MOST_FILE_BYTES:
                    msg = f"it has more than {MOST_FILE_BYTES >> 30} GiB"
                    raise InputError(msg)
                target.write(piece)
    except Exception as err:  # each library of compression has errors of its own
        notes.append(f"{file} cannot be unpacked to its end: {reason(err)}")
