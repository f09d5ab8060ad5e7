"""A bag as a stream of messages in the order of their recording. Nothing is kept: a bag may be larger than memory."""

import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from heapq import merge
from itertools import groupby, pairwise
from pathlib import Path
from types import TracebackType

from rosbags.interfaces import Connection

from flatrope_planner.dimensions import NANOSECONDS_PER_SECOND
from flatrope_planner.domain import ns_to_seconds
from flatrope_planner.errors import InputError, reason
from flatrope_planner.evaluation.replay.bag_files import Part, open_parts
from flatrope_planner.evaluation.replay.bag_metadata import METADATA
from flatrope_planner.evaluation.replay.unpacking import unpacked
from flatrope_planner.evaluation.report.bounds import MOST_MESSAGE_BYTES

CDR = "cdr"
# CDR begins with four bytes; then follows the header's stamp.
STAMP_OFFSET, STAMP, STAMP_BIG_ENDIAN = 4, struct.Struct("<iI"), struct.Struct(">iI")
# Of what is read, these have none.
WITHOUT_HEADER = ("std_msgs/msg/String", "tf2_msgs/msg/TFMessage")
# Messages on their way while a recorder changes to its next file.
MOST_OVERLAP_S = 1.0
# Without a message between two files of a recorder.
MOST_PAUSE_S = 10.0
MOST_HELD_BYTES = 256 * 2**20


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
        self._parts: list[Part] = []

    def __enter__(self) -> "BagSource":
        """Open the bag.

        Raises:
            InputError: if nothing in it can be read.
        """
        with ExitStack() as stack:
            try:
                self._parts = open_parts(self.path, stack, self.notes)
            except OSError as err:
                msg = f"{self.path} cannot be read: {err.strerror or err}"
                raise InputError(msg) from err
            if not (self.path / METADATA).exists():
                self.notes += _doubts(self._parts)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def connections(self) -> list[Connection]:
        """The connections of all parts whose messages are CDR."""
        return [c for part in self._parts for c in part.reader.connections if _is_cdr(c)]

    @property
    def other_encodings(self) -> set[str]:
        """What messages that cannot be read are encoded as."""
        every = (c for part in self._parts for c in part.reader.connections if c.msgcount)
        return {_encoding(c) or "nothing" for c in every if not _is_cdr(c)}

    @property
    def topics(self) -> tuple[Topic, ...]:
        """The topics that have messages, by name."""
        counts: dict[tuple[str, str], int] = {}
        for connection in self.connections:
            key = (connection.topic, ros_type(connection.msgtype))
            counts[key] = counts.get(key, 0) + connection.msgcount
        return tuple(Topic(*key, count) for key, count in sorted(counts.items()) if count)

    @property
    def span_ns(self) -> tuple[int, int]:
        """When the first and the last message were recorded.

        Raises:
            InputError: if there are no messages.
        """
        filled = [part.reader for part in self._parts if part.reader.message_count]
        if not filled:
            msg = f"{self.path} has no messages in it"
            raise InputError(msg)
        return min(reader.start_time for reader in filled), max(reader.end_time for reader in filled) - 1

    def moments(self, topics: Collection[str]) -> Iterator[list[RawMessage]]:
        """The messages of these topics; those recorded at the same time together, in the order of their stamps.

        Which of them a storage gives first is chance, and must not matter.
        """
        streams = [self._messages(part, frozenset(topics)) for part in self._parts]
        for _, together in groupby(merge(*streams, key=_log_ns), key=_log_ns):
            for piece in _pieces(together):
                yield sorted(piece, key=_order)

    def _messages(self, part: Part, topics: frozenset[str]) -> Iterator[RawMessage]:
        reader = part.reader
        wanted = [c for c in reader.connections if c.topic in topics and _is_cdr(c)]
        if not wanted:
            return
        try:
            for connection, log_ns, data in reader.messages(wanted):
                content = _unpacked(data)
                if len(content) > MOST_MESSAGE_BYTES:
                    self._note(f"{connection.topic}: messages of more than {MOST_MESSAGE_BYTES} bytes are left out")
                else:
                    yield RawMessage(connection.topic, ros_type(connection.msgtype), log_ns, content)
        except OSError as err:
            self._note(f"{part.path} cannot be read to its end: {reason(err)}")
        for complaint in reader.complaints:
            self._note(complaint)

    def _note(self, line: str) -> None:
        """Note what is missing, once; a bag may be read again."""
        if line not in self.notes:
            self.notes.append(line)


def _doubts(parts: Sequence[Part]) -> list[str]:
    """Files that only names make one bag, recorded as the parts of one are not: a line for each after another."""
    filled = [part for part in parts if part.reader.message_count]
    lines = []
    for before, part in pairwise(sorted(filled, key=lambda part: part.reader.start_time)):
        apart_s = ns_to_seconds(part.reader.start_time - before.reader.end_time)
        if apart_s < -MOST_OVERLAP_S:
            how = f"while {before.path} was, for {-apart_s:.1f} s"
        elif apart_s > MOST_PAUSE_S:
            how = f"{apart_s:.1f} s after {before.path} had ended"
        elif filled.index(part) < filled.index(before):
            how = f"after {before.path}, against their numbers"
        else:
            continue
        lines.append(f"{part.path} was recorded {how}: if they are bags of their own, name each")
    return lines


def _unpacked(message: bytes) -> bytes:
    """The message; nothing if it is packed and damaged, which whoever reads it will say."""
    try:
        return unpacked(message)
    except Exception:  # each library of compression has errors of its own
        return b""


def _pieces(messages: Iterable[RawMessage]) -> Iterator[list[RawMessage]]:
    """The messages in pieces that fit in memory, should all of a bag be recorded at one time."""
    piece: list[RawMessage] = []
    held = 0
    for message in messages:
        piece.append(message)
        held += len(message.cdr)
        if held > MOST_HELD_BYTES:
            yield piece
            piece, held = [], 0
    if piece:
        yield piece


def _order(message: RawMessage) -> tuple[int, str, bytes]:
    """Messages without a header come before all others."""
    stamp_ns = 0 if message.message_type in WITHOUT_HEADER else header_stamp_ns(message.cdr) or 0
    return stamp_ns, message.topic, message.cdr


def header_stamp_ns(cdr: bytes) -> int | None:
    """The stamp (ns) of a message that begins with a header, read from its bytes; None if it ends before."""
    if len(cdr) < STAMP_OFFSET + STAMP.size:
        return None
    # The second byte of CDR tells the order of bytes.
    sec, nanosec = (STAMP if cdr[1] & 1 else STAMP_BIG_ENDIAN).unpack_from(cdr, STAMP_OFFSET)
    return int(sec) * NANOSECONDS_PER_SECOND + int(nanosec)


def ros_type(name: str) -> str:
    """A type as ROS 2 calls it; others write "nav_msgs/Odometry", DDS "nav_msgs::msg::dds_::Odometry_"."""
    parts = name.replace("::dds_::", "::").removesuffix("_").replace("::", "/").split("/")
    return "/".join([parts[0], "msg", parts[1]] if len(parts) == 2 else parts)


def _is_cdr(connection: Connection) -> bool:
    return _encoding(connection) == CDR


def _encoding(connection: Connection) -> str:
    return str(getattr(connection.ext, "serialization_format", ""))


def _log_ns(message: RawMessage) -> int:
    return message.log_ns
