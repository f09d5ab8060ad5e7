"""Reads an .mcap file record by record: one that was never closed, so that it has no index, or is not of rosbag2."""

import struct
from collections import Counter
from collections.abc import Collection, Iterator
from io import SEEK_END, BytesIO
from pathlib import Path
from typing import BinaryIO

from rosbags.interfaces import Connection, ConnectionExtRosbag2, MessageDefinition, MessageDefinitionFormat

from flatrope_planner.evaluation.replay.unpacking import decompressed

MAGIC = b"\x89MCAP0\r\n"
SCHEMA, CHANNEL, MESSAGE, CHUNK, DATA_END = 0x03, 0x04, 0x05, 0x06, 0x0F
# A record begins with its kind and length, a message with channel, number, and times of recording and sending.
RECORD, MESSAGE_HEAD = struct.Struct("<BQ"), struct.Struct("<HIQQ")
# Times, size and checksum of a chunk, before the name of its compression.
CHUNK_HEAD = struct.Struct("<QQQI")
FORMATS = {"ros2msg": MessageDefinitionFormat.MSG, "ros2idl": MessageDefinitionFormat.IDL}

Stamped = tuple[int, int, bytes]


class CutOffMcap:
    """What of a reader of rosbags is needed; finds its topics by reading everything once."""

    def __init__(self, path: Path) -> None:
        """Look through the file; whatever is wrong with it ends it."""
        self.path = path
        # Whether the file reaches its end and all in it could be read.
        self.complete = False
        self._schemas: dict[int, tuple[str, MessageDefinition]] = {}
        self._channels: dict[int, tuple[str, int, str]] = {}
        counts: Counter[int] = Counter()
        times: list[int] = []
        for channel, log_ns, _ in self._all():
            counts[channel] += 1
            times = [min([log_ns, *times]), max([log_ns, *times])]
        self.message_count = sum(counts.values())
        self.start_time, self.end_time = (times[0], times[1] + 1) if times else (0, 0)
        self.connections = [self._connection(number, counts[number]) for number in self._channels]

    def messages(self, connections: Collection[Connection]) -> Iterator[tuple[Connection, int, bytes]]:
        """Connection, time of recording (ns) and content."""
        wanted = {connection.id: connection for connection in connections}
        for channel, log_ns, data in self._all():
            if channel in wanted:
                yield wanted[channel], log_ns, data

    def _all(self) -> Iterator[Stamped]:
        """Channel, time and content of every message that is whole, up to the first record that is none."""
        with self.path.open("rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                return
            sound = True
            for kind, content in _records(stream):
                if kind == DATA_END:
                    stream.seek(-len(MAGIC), SEEK_END)
                    self.complete = sound and stream.read() == MAGIC
                    return
                try:
                    found = self._messages_in(kind, content)
                except Exception:  # numbers and texts that are none; each library of compression has errors of its own
                    found, sound = [], False
                yield from found

    def _messages_in(self, kind: int, content: bytes) -> list[Stamped]:
        """The messages in a record, in the order of their time."""
        if kind == MESSAGE:
            return [_message(content)]
        if kind != CHUNK:
            self._describe(kind, content)
            return []
        _, _, size, _ = CHUNK_HEAD.unpack_from(content)
        name, at = _text(content, CHUNK_HEAD.size)
        records = BytesIO(decompressed(content[at + 8 :], name, size))
        found = [each for kind, body in _records(records) if kind != CHUNK for each in self._messages_in(kind, body)]
        return sorted(found, key=lambda message: message[1])

    def _describe(self, kind: int, content: bytes) -> None:
        """Take in what a record says about topics and types."""
        if kind == SCHEMA:
            name, at = _text(content, 2)
            encoding, at = _text(content, at)
            definition, _ = _text(content, at)
            form = FORMATS.get(encoding, MessageDefinitionFormat.NONE)
            self._schemas[_number(content, 0)] = name, MessageDefinition(form, definition)
        elif kind == CHANNEL:
            topic, at = _text(content, 4)
            encoding, _ = _text(content, at)
            self._channels[_number(content, 0)] = topic, _number(content, 2), encoding

    def _connection(self, number: int, count: int) -> Connection:
        topic, schema, encoding = self._channels[number]
        name, definition = self._schemas.get(schema, ("", MessageDefinition(MessageDefinitionFormat.NONE, "")))
        return Connection(number, topic, name, definition, "", count, ConnectionExtRosbag2(encoding, []), self)


def _records(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Kind and content of the records that are whole, and of a chunk that is not, as much as there is."""
    begin, end = stream.tell(), stream.seek(0, SEEK_END)
    stream.seek(begin)
    while len(head := stream.read(RECORD.size)) == RECORD.size:
        kind, size = RECORD.unpack(head)
        left = end - stream.tell()
        if size > left and kind != CHUNK:
            return
        yield kind, stream.read(min(size, left))


def _message(content: bytes) -> Stamped:
    channel, _, log_ns, _ = MESSAGE_HEAD.unpack_from(content)
    return channel, log_ns, content[MESSAGE_HEAD.size :]


def _text(content: bytes, at: int) -> tuple[str, int]:
    """A text with its length before it, and where it ends."""
    (size,) = struct.unpack_from("<I", content, at)
    return content[at + 4 : at + 4 + size].decode(), at + 4 + size


def _number(content: bytes, at: int) -> int:
    return int.from_bytes(content[at : at + 2], "little")
