"""What lies where in an .mcap file: found from record to record, so that no index is needed, and nothing unpacked."""

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import SEEK_END
from mmap import ACCESS_READ, mmap
from typing import BinaryIO
from zlib import crc32

import numpy as np

from flatrope_planner.evaluation.replay.mcap_records import (
    CHANNEL,
    CHUNK,
    DATA_END,
    FOOTER,
    FOOTER_HEAD,
    INDEX_ENTRY_BYTES,
    INDEX_HEAD,
    LIKE_CHUNK,
    LIKE_RECORD,
    MAGIC,
    MESSAGE,
    MESSAGE_HEAD,
    MESSAGE_INDEX,
    RECORD,
    SCHEMA,
    STATISTICS,
    Channel,
    Content,
    Schema,
    channel_in,
    chunk_head,
    counts_in,
    next_record,
    schema_in,
)
from flatrope_planner.evaluation.report.bounds import MOST_MESSAGE_BYTES

# What comes after the data, and the length of its content.
ENDS = {DATA_END: 4, FOOTER: FOOTER_HEAD.size}
FOOTER_CHECKSUM_BYTES = 4
# What users may write is from here on; between are kinds that do not exist.
FIRST_PRIVATE = 0x80


@dataclass
class Chunk:
    """Where a chunk's content is, and of which times (ns) it says its messages are."""

    place: int
    length: int
    # Whether the file ends in the middle of it.
    breaks_off: bool
    start_ns: int
    end_ns: int


class LooseMessages:
    """The messages that are in no chunk; some bytes for each, however large it is."""

    def __init__(self) -> None:
        """None yet."""
        self._time_ns, self._place, self._length = array("Q"), array("Q"), array("Q")
        self._channel = array("H")

    def add(self, place: int, length: int, channel: int, log_ns: int) -> None:
        """A message whose record's content is there."""
        self._place.append(place)
        self._length.append(length)
        self._channel.append(channel)
        self._time_ns.append(log_ns)

    @property
    def channels(self) -> Sequence[int]:
        """The channel of each."""
        return self._channel

    @property
    def span_ns(self) -> list[int]:
        """First and last time; empty if there are no messages."""
        return [min(self._time_ns), max(self._time_ns)] if self._time_ns else []

    def by_time(self) -> Iterator[tuple[int, int, int, int]]:
        """Time, channel, place and length of each, in the order of time."""
        for index in np.argsort(np.array(self._time_ns), kind="stable").tolist():
            yield self._time_ns[index], self._channel[index], self._place[index], self._length[index]


@dataclass
class Descriptions:
    """Topics and types, by number."""

    channels: dict[int, Channel] = field(default_factory=dict)
    schemas: dict[int, Schema] = field(default_factory=dict)

    def copy(self) -> "Descriptions":
        """The same, that does not change with these."""
        return Descriptions(dict(self.channels), dict(self.schemas))

    def take(self, kind: int, content: Content) -> None:
        """Take in a record, if it is one of these."""
        if kind == SCHEMA:
            number, schema = schema_in(content)
            self.schemas[number] = schema
        elif kind == CHANNEL:
            number, channel = channel_in(content)
            self.channels[number] = channel


class Outline:
    """The chunks, messages and descriptions of a file."""

    def __init__(self, stream: BinaryIO) -> None:
        """Go through an open file whose beginning is right."""
        self.chunks: list[Chunk] = []
        self.loose, self.described = LooseMessages(), Descriptions()
        # What was known before the summary.
        self._described_before = self.described
        # Channel -> messages, as counted on the way, and as the summary says; None if it says nothing.
        self.counts: Counter[int] = Counter()
        self.told_counts: dict[int, int] | None = None
        # Whether every byte is accounted for, up to the end mark.
        self.complete = True
        self._stream, self._end = stream, stream.seek(0, SEEK_END)
        self._walk()

    def _walk(self) -> None:
        """Go from record to record, through the summary behind the data as well."""
        place, closed = len(MAGIC), False
        while place + RECORD.size <= self._end:
            self._stream.seek(place)
            kind, length = RECORD.unpack(self._stream.read(RECORD.size))
            after = place + RECORD.size + length
            if ENDS.get(kind) == length and not closed:
                closed, self._described_before = True, self.described.copy()
            is_known = 0 < kind <= DATA_END or kind >= FIRST_PRIVATE
            if is_known and ENDS.get(kind, length) == length and after <= self._end and self._take(kind, after):
                place = after
            elif closed:
                self._forget_summary()
            if closed and (kind == FOOTER or place != after):
                self._stream.seek(self._end - len(MAGIC))
                self.complete &= self._stream.read() == MAGIC
                return
            if place != after:
                self.complete = False
                place = self._resumed(place, kind, after)
        self.complete = False

    def _resumed(self, place: int, kind: int, after: int) -> int:
        """Where to go on behind a record that is damaged."""
        breaks_off = kind == CHUNK and after > self._end
        with mmap(self._stream.fileno(), 0, access=ACCESS_READ) as content:
            # The messages in a chunk that breaks off are read as those of a chunk.
            resume = next_record(content, place + 1, LIKE_CHUNK if breaks_off else LIKE_RECORD)
        if resume is None and breaks_off:
            self._take(kind, after)
        return self._end if resume is None else resume

    def _take(self, kind: int, after: int) -> bool:
        """Take in the record whose content is from here on; whether it can be one."""
        place, end = self._stream.tell(), min(after, self._end)
        try:
            if kind == CHUNK:
                start_ns, end_ns, head_bytes, packed_bytes = chunk_head(self._stream)
                if place + head_bytes + packed_bytes != after:
                    return False
                self.chunks.append(Chunk(place, end - place, after > end, start_ns, end_ns))
            elif kind == MESSAGE:
                channel, _, log_ns, _ = MESSAGE_HEAD.unpack(self._stream.read(MESSAGE_HEAD.size))
                self.loose.add(place, end - place, channel, log_ns)
                self.counts[channel] += 1
            elif kind == MESSAGE_INDEX:
                channel, size = INDEX_HEAD.unpack(self._stream.read(INDEX_HEAD.size))
                self.counts[channel] += size // INDEX_ENTRY_BYTES
            elif kind in (SCHEMA, CHANNEL):
                self.described.take(kind, self._stream.read(min(end - place, MOST_MESSAGE_BYTES)))
            elif kind == STATISTICS:
                self.told_counts = counts_in(self._stream.read(min(end - place, MOST_MESSAGE_BYTES)))
            elif kind == FOOTER:
                self._check_summary(place)
        except Exception:  # numbers and texts that are none
            return False
        return True

    def _check_summary(self, place: int) -> None:
        """Believe the summary only if it has the checksum that the footer with its content here says."""
        start, _, checksum = FOOTER_HEAD.unpack(self._stream.read(FOOTER_HEAD.size))
        size = place + FOOTER_HEAD.size - FOOTER_CHECKSUM_BYTES - start
        if not checksum or not 0 < size < MOST_MESSAGE_BYTES:
            return
        self._stream.seek(start)
        if crc32(self._stream.read(size)) != checksum:
            self._forget_summary()

    def _forget_summary(self) -> None:
        """A damaged summary counts only for topics and types of which the data says nothing."""
        before, self.told_counts = self._described_before, None
        self.described.channels |= before.channels
        self.described.schemas |= before.schemas
