"""Reads an .mcap file whoever wrote it: indexed or not, in any order, never closed, damaged in the middle."""

from collections import Counter
from collections.abc import Collection, Iterator
from heapq import merge
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO

from rosbags.interfaces import Connection, ConnectionExtRosbag2, MessageDefinition, MessageDefinitionFormat, Qos
from rosbags.rosbag2.storage_mcap import get_qos

from flatrope_planner.errors import InputError, reason
from flatrope_planner.evaluation.replay.definitions import FORMATS, NO_DEFINITION
from flatrope_planner.evaluation.replay.mcap_outline import Chunk, Outline
from flatrope_planner.evaluation.replay.mcap_records import (
    MAGIC,
    MESSAGE,
    Stamped,
    channel_of,
    message_in,
    records_in_chunk,
)
from flatrope_planner.evaluation.report.bounds import MOST_CHUNK_BYTES

# The first of what a chunk gives: when it has to be opened.
OPENED = -1


class McapFile:
    """Its topics, and its messages in the order of time; of chunks only those are in memory that overlap."""

    def __init__(self, path: Path, called: Path) -> None:
        """Look through the file; in complaints it is called differently where it was unpacked.

        Raises:
            InputError: if nothing in it can be read.
            OSError: if it cannot be read at all.
        """
        self.path, self._called = path, called
        # Place of a chunk -> what is wrong with it; grows while messages are read.
        self._damaged: dict[int, str] = {}
        with path.open("rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                msg = "it does not begin as an .mcap file"
                raise InputError(msg)
            self._outline = Outline(stream)
            self._chunk_count = len(self._outline.chunks)
            counts = self._outline.counts if self._is_as_told() else self._counted(stream)
        self.message_count = sum(counts.values())
        if not self.message_count and (self._damaged or not self._outline.complete):
            raise InputError(next(iter(self._damaged.values()), "it ends before its first message"))
        times = self._outline.loose.span_ns
        timed = [chunk for chunk in self._outline.chunks if chunk.end_ns] or self._outline.chunks
        times += [time for chunk in timed for time in (chunk.start_ns, chunk.end_ns)]
        self.start_time, self.end_time = (min(times), max(times) + 1) if times else (0, 0)
        self.connections = [self._connection(n, counts[n]) for n in sorted(self._outline.described.channels)]

    @property
    def complaints(self) -> list[str]:
        """What is missing of it, a line each; chunks whose messages were not asked for yet are not looked into."""
        lines = []
        if not self._outline.complete:
            lines.append(
                f"{self._called} is damaged or ends in the middle: {self.message_count} messages could be rescued"
            )
        if self._damaged:
            count = f"{len(self._damaged)} of {self._chunk_count} chunks are damaged"
            first = self._damaged[min(self._damaged)]
            lines.append(f"{self._called}: {count}, and what could not be read of them is left out; the first: {first}")
        told = sum((self._outline.told_counts or {}).values())
        if not lines and told > self.message_count:
            lines.append(f"{self._called}: its summary tells of {told} messages, there are {self.message_count}")
        return lines

    def messages(self, connections: Collection[Connection]) -> Iterator[tuple[Connection, int, bytes]]:
        """Connection, time of recording (ns) and content."""
        wanted = {connection.id: connection for connection in connections}
        with self.path.open("rb") as stream:
            pieces = [self._opened(stream, chunk, wanted) for chunk in self._outline.chunks]
            for log_ns, channel, data in merge(*pieces, self._loose(stream, wanted), key=itemgetter(0)):
                if channel != OPENED:
                    yield wanted[channel], log_ns, data

    def _is_as_told(self) -> bool:
        """Whether what was counted on the way is what the summary says, so that nothing need be unpacked to know it."""
        outline = self._outline
        told = outline.told_counts
        return (
            outline.complete
            and told == +outline.counts
            and all(chunk.start_ns <= chunk.end_ns for chunk in outline.chunks)
            # Without times, as a chunk without messages is, all would have to be opened at once.
            and (not outline.chunks or any(chunk.end_ns for chunk in outline.chunks))
            and all(number in outline.described.channels for number in outline.counts)
        )

    def _counted(self, stream: BinaryIO) -> Counter[int]:
        """Channel -> messages, by unpacking everything; chunks get the times that their messages have."""
        counts = Counter(self._outline.loose.channels)
        filled = []
        for chunk in self._outline.chunks:
            found = self._messages_in(stream, chunk)
            counts.update(channel for _, channel, _ in found)
            if found:
                chunk.start_ns, chunk.end_ns = found[0][0], found[-1][0]
                filled.append(chunk)
        self._outline.chunks = filled
        return counts

    def _opened(self, stream: BinaryIO, chunk: Chunk, wanted: Collection[int]) -> Iterator[Stamped]:
        yield chunk.start_ns, OPENED, b""
        yield from self._messages_in(stream, chunk, wanted)

    def _messages_in(self, stream: BinaryIO, chunk: Chunk, wanted: Collection[int] | None = None) -> list[Stamped]:
        """What can be read of a chunk's messages, all or those of the channels wanted, in the order of time."""
        found = []
        stream.seek(chunk.place)
        try:
            content = stream.read(min(chunk.length, MOST_CHUNK_BYTES))
            for kind, record in records_in_chunk(content, chunk.breaks_off):
                if kind == MESSAGE and (wanted is None or channel_of(record) in wanted):
                    found.append(message_in(record))
                elif kind != MESSAGE:
                    self._outline.described.take(kind, record)
        except Exception as err:  # numbers and texts that are none; each library of compression has errors of its own
            if not chunk.breaks_off:
                self._damaged[chunk.place] = reason(err)
        return sorted(found, key=itemgetter(0))

    def _loose(self, stream: BinaryIO, wanted: Collection[int]) -> Iterator[Stamped]:
        for log_ns, channel, place, length in self._outline.loose.by_time():
            if channel in wanted:
                stream.seek(place)
                yield log_ns, channel, message_in(stream.read(length))[2]

    def _connection(self, number: int, count: int) -> Connection:
        channel = self._outline.described.channels[number]
        schema = self._outline.described.schemas.get(channel.schema)
        if schema is None:
            name, definition = "", NO_DEFINITION
        else:
            form = FORMATS.get(schema.encoding, MessageDefinitionFormat.NONE)
            name, definition = schema.name, MessageDefinition(form, schema.definition)
        extra = ConnectionExtRosbag2(channel.encoding, _offered(channel.metadata))
        return Connection(number, channel.topic, name, definition, "", count, extra, self)


def _offered(metadata: bytes) -> list[Qos]:
    """How a topic was offered, as its channel's metadata says; nothing where that cannot be read."""
    try:
        return get_qos(metadata)
    except Exception:  # texts that are no YAML, and YAML that is no quality of service
        return []
