"""Writes serialized messages to one .mcap file that explains itself: every message definition is in it."""

import shutil
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from rosbags.interfaces import (
    Connection,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from flatrope_planner.errors import SetupError

PACKAGE = "flatrope_planner"
_FOR_EVER = QosTime(2_147_483_647, 999_999_999)
# Only reliability and durability are of interest; the rest is what DDS has where nobody says anything.
LATCHED = Qos(
    history=QosHistory.KEEP_LAST,
    depth=32,
    reliability=QosReliability.RELIABLE,
    durability=QosDurability.TRANSIENT_LOCAL,
    deadline=_FOR_EVER,
    lifespan=_FOR_EVER,
    liveliness=QosLiveliness.AUTOMATIC,
    liveliness_lease_duration=_FOR_EVER,
    avoid_ros_namespace_conventions=False,
)


def typestore_with(definitions: Path) -> Typestore:
    """Jazzy's message types and those of the package, from its folder of .msg files.

    Raises:
        SetupError: if there are no .msg files.
    """
    store = get_typestore(Stores.ROS2_JAZZY)
    store.register(types_in(definitions))
    return store


def types_in(definitions: Path) -> dict[str, Any]:
    """The types of the package, as rosbags has them, from its folder of .msg files.

    Raises:
        SetupError: if there are no .msg files.
    """
    files = sorted(definitions.glob("*.msg"))
    if not files:
        msg = f"no message definitions in {definitions}: build the package (make setup, or colcon build)"
        raise SetupError(msg)
    types: dict[str, Any] = {}
    for file in files:
        types.update(get_types_from_msg(file.read_text(encoding="utf-8"), f"{PACKAGE}/msg/{file.stem}"))
    return types


class BagWriter:
    """Open, write, close, or use as a context manager; an existing file is replaced when the new one is complete."""

    def __init__(self, file: Path, definitions: Path) -> None:
        """Write to `file`; `definitions` is the folder of the package's .msg files."""
        self._file = file
        self._store = typestore_with(definitions)
        # The writer makes a folder with the storage file in it, named alike.
        self._folder = file.with_suffix(".recording")
        self._writer: Writer | None = None
        # Whether the disk did not take what came.
        self.failed = False
        self._connections: dict[str, Connection] = {}
        # Topics that are kept for those who come later, which is told to who plays them; to be filled by the user.
        self.latched: set[str] = set()

    def open(self) -> None:
        """Begin the recording.

        Raises:
            SetupError: if there is no writing beside the file.
        """
        shutil.rmtree(self._folder, ignore_errors=True)
        try:
            self._folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as err:
            msg = f"{self._folder} cannot be written: {err.strerror}"
            raise SetupError(msg) from err
        self._writer = Writer(self._folder, version=9, storage_plugin=StoragePlugin.MCAP)
        self._writer.open()

    def write(self, topic: str, message_type: str, stamp_ns: int, cdr: bytes) -> None:
        """Append one message, CDR-serialized, of a type like `std_msgs/msg/String`."""
        if self._writer is None:
            msg = f"{self._file} is not open for writing"
            raise SetupError(msg)
        if topic not in self._connections:
            offered = (LATCHED,) if topic in self.latched else ()
            self._connections[topic] = self._writer.add_connection(
                topic, message_type, typestore=self._store, offered_qos_profiles=offered
            )
        try:
            self._writer.write(self._connections[topic], stamp_ns, cdr)
        except OSError:
            self._fail(self._writer)
            raise

    def _fail(self, writer: Writer) -> None:
        """What was written stays where it is: nothing completes it any more."""
        self.failed, self._writer = True, None
        # What is on its way may find no room either.
        with suppress(OSError):
            writer.abort()

    def close(self) -> None:
        """Complete the file and put it in its place."""
        if self._writer is not None:
            try:
                self._writer.close()
            except OSError:
                self._fail(self._writer)
                raise
            (self._folder / f"{self._folder.name}.mcap").replace(self._file)
            shutil.rmtree(self._folder)
            self._writer = None

    def discard(self) -> None:
        """Forget what was written; an existing file stays as it is."""
        if self._writer is not None:
            self._writer.close()
            shutil.rmtree(self._folder)
            self._writer = None

    def __enter__(self) -> "BagWriter":
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
