"""A bag as a stream of messages in the order of their recording. Nothing is kept: a bag may be larger than memory."""

from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from pathlib import Path
from types import TracebackType

from rosbags.interfaces import Connection

from flatrope_planner.errors import InputError, reason
from flatrope_planner.evaluation.replay.bag_files import StorageReader, open_readers
from flatrope_planner.evaluation.replay.unpacking import unpacked
from flatrope_planner.evaluation.report.bounds import check_message

CDR = "cdr"


@dataclass(frozen=True)
class Topic:
    """One topic of a bag."""

    name: str
    # Such as "nav_msgs/msg/Odometry".
    message_type: str
    messages: int


@dataclass(frozen=True)
class RawMessage:
    """One message as it lies in the bag."""

    topic: str
    message_type: str
    # When it was recorded (ns).
    log_ns: int
    cdr: bytes


class BagSource:
    """Open it with `with`; needs no ROS."""

    def __init__(self, path: Path) -> None:
        """Read the rosbag2 folder, .mcap or .db3 at `path`."""
        self.path = path
        # What is missing or damaged, a line each; grows while messages are read.
        self.notes: list[str] = []
        self._stack = ExitStack()
        self._readers: list[StorageReader] = []

    def __enter__(self) -> "BagSource":
        """Open the bag.

        Raises:
            InputError: if nothing in it can be read.
        """
        with ExitStack() as stack:
            self._readers = open_readers(self.path, stack, self.notes)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def connections(self) -> list[Connection]:
        """The connections of all parts whose messages are CDR."""
        return [c for reader in self._readers for c in reader.connections if _is_cdr(c)]

    @property
    def topics(self) -> tuple[Topic, ...]:
        """The topics that have messages, by name."""
        counts: dict[tuple[str, str], int] = {}
        for connection in self.connections:
            key = (connection.topic, connection.msgtype)
            counts[key] = counts.get(key, 0) + connection.msgcount
        return tuple(Topic(*key, count) for key, count in sorted(counts.items()) if count)

    @property
    def span_ns(self) -> tuple[int, int]:
        """When the first and the last message were recorded.

        Raises:
            InputError: if there are no messages.
        """
        filled = [reader for reader in self._readers if reader.message_count]
        if not filled:
            msg = f"{self.path} has no messages in it"
            raise InputError(msg)
        return min(reader.start_time for reader in filled), max(reader.end_time for reader in filled) - 1

    def moments(self, topics: Collection[str]) -> Iterator[list[RawMessage]]:
        """The messages of these topics; those recorded at the same time together, in an order of their content.

        Which of them a storage gives first is chance, and must not matter.
        """
        streams = [self._messages(reader, frozenset(topics)) for reader in self._readers]
        for _, together in groupby(merge(*streams, key=_log_ns), key=_log_ns):
            yield sorted(together, key=lambda message: (message.topic, message.cdr[:16]))

    def _messages(self, reader: StorageReader, topics: frozenset[str]) -> Iterator[RawMessage]:
        wanted = [c for c in reader.connections if c.topic in topics and _is_cdr(c)]
        if not wanted:
            return
        begun_ns = last_ns = reader.start_time
        try:
            for connection, log_ns, data in reader.messages(wanted):
                last_ns = max(last_ns, log_ns)
                check_message(connection.topic, data)
                yield RawMessage(connection.topic, connection.msgtype, log_ns, unpacked(bytes(data)))
        except Exception as err:  # damage shows in the container or its compression, each with errors of its own
            read_s = (last_ns - begun_ns) * 1e-9
            self.notes.append(f"{reader.path} cannot be read beyond {read_s:.1f} s of it: {reason(err)}")


def _is_cdr(connection: Connection) -> bool:
    return getattr(connection.ext, "serialization_format", "") == CDR


def _log_ns(message: RawMessage) -> int:
    return message.log_ns
