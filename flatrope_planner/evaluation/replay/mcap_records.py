"""Records of an .mcap file: what they say, byte by byte (https://mcap.dev/spec)."""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import SEEK_CUR
from mmap import mmap
from typing import BinaryIO
from zlib import crc32

from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.replay.unpacking import decompressed
from flatrope_planner.evaluation.report.bounds import MOST_CHUNK_BYTES

MAGIC = b"\x89MCAP0\r\n"
FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX = range(0x02, 0x08)
STATISTICS, DATA_END = 0x0B, 0x0F
# A record begins with its kind and length, a message with channel, number, and times of recording and sending.
RECORD, MESSAGE_HEAD = struct.Struct("<BQ"), struct.Struct("<HIQQ")
# Times, size and checksum of a chunk, before the name of its compression.
CHUNK_HEAD = struct.Struct("<QQQI")
# Channel, and bytes of entries of 16 bytes each, of the index of the messages in the chunk before.
INDEX_HEAD, INDEX_ENTRY_BYTES = struct.Struct("<HI"), 16
# Messages, schemas, channels, attachments, metadata, chunks, first and last time, bytes of counts by channel.
STATISTICS_HEAD, COUNT = struct.Struct("<QHIIIIQQI"), struct.Struct("<HQ")
# What stands before a text or a map, and before what a chunk packs.
SIZE, LONG_SIZE = struct.Struct("<I"), struct.Struct("<Q")
# Where the summary is, where its parts are, and its checksum.
FOOTER_HEAD = struct.Struct("<QQI")
# What a chunk looks like (its length, its head, and by what it is packed), and a message of CDR (the same, and how CDR
# begins).
_CHUNK = rb"\x06.{6}\0\0.{28}(?:\0\0\0\0|\x03\0\0\0lz4|\x04\0\0\0zstd)"
_MESSAGE = rb"\x05.{5}\0\0\0.{22}\0[\0\x01]\0\0"
LIKE_CHUNK, LIKE_RECORD = re.compile(_CHUNK, re.DOTALL), re.compile(_CHUNK + b"|" + _MESSAGE, re.DOTALL)

Content = bytes | memoryview
# Time, channel and content.
Stamped = tuple[int, int, bytes]


@dataclass(frozen=True)
class Channel:
    """A topic, and by which number its type is described."""

    topic: str
    schema: int
    encoding: str
    # Names and values, as they lie in the file.
    metadata: bytes


@dataclass(frozen=True)
class Schema:
    """A type as the file describes it."""

    name: str
    encoding: str
    definition: str


def next_record(content: bytes | mmap, place: int, like: re.Pattern[bytes] = LIKE_RECORD) -> int | None:
    """Where behind something damaged the next chunk or message begins: one after which a record follows; or None."""
    for found in like.finditer(content, place):
        _, length = RECORD.unpack_from(content, found.start())
        after = found.start() + RECORD.size + length
        if after == len(content) or (after < len(content) and 0 < content[after] <= DATA_END):
            return found.start()
    return None


def channel_of(content: Content) -> int:
    """The channel of a message, without its content."""
    return _number(content, 0)


def message_in(content: Content) -> Stamped:
    """Of a record of that kind."""
    channel, _, log_ns, _ = MESSAGE_HEAD.unpack_from(content)
    return log_ns, channel, bytes(content[MESSAGE_HEAD.size :])


def channel_in(content: Content) -> tuple[int, Channel]:
    """A channel and its number."""
    topic, at = _text(content, 4)
    encoding, at = _text(content, at)
    return _number(content, 0), Channel(topic, _number(content, 2), encoding, bytes(content[at + SIZE.size :]))


def schema_in(content: Content) -> tuple[int, Schema]:
    """A schema and its number."""
    name, at = _text(content, 2)
    encoding, at = _text(content, at)
    definition, _ = _text(content, at)
    return _number(content, 0), Schema(name, encoding, definition)


def counts_in(content: bytes) -> dict[int, int]:
    """Channel -> messages, of a record of statistics."""
    size = STATISTICS_HEAD.unpack_from(content)[-1]
    counts = content[STATISTICS_HEAD.size : STATISTICS_HEAD.size + size]
    return {channel: count for channel, count in COUNT.iter_unpack(counts) if count}


def chunk_head(stream: BinaryIO) -> tuple[int, int, int, int]:
    """Times of a chunk's messages (ns), and bytes of what is before and of what is in it, read where it begins."""
    start_ns, end_ns, _, _ = CHUNK_HEAD.unpack(stream.read(CHUNK_HEAD.size))
    (name_bytes,) = SIZE.unpack(stream.read(SIZE.size))
    stream.seek(name_bytes, SEEK_CUR)
    (packed_bytes,) = LONG_SIZE.unpack(stream.read(LONG_SIZE.size))
    return start_ns, end_ns, CHUNK_HEAD.size + SIZE.size + name_bytes + LONG_SIZE.size, packed_bytes


def records_in_chunk(content: bytes, breaks_off: bool) -> Iterator[tuple[int, memoryview]]:
    """Kind and content of the records in a chunk; those that are not damaged come before the error.

    Args:
        content: of the chunk's record.
        breaks_off: whether the file ends in the middle of it.

    Raises:
        InputError: if it is damaged, or larger than chunks are.
    """
    _, _, size, checksum = CHUNK_HEAD.unpack_from(content)
    compression, at = _text(content, CHUNK_HEAD.size)
    if size > MOST_CHUNK_BYTES:
        msg = f"a chunk of {size} bytes, at most {MOST_CHUNK_BYTES} are read"
        raise InputError(msg)
    unpacked = decompressed(content[at + LONG_SIZE.size :], compression, size)
    if not breaks_off and checksum and crc32(unpacked) != checksum:
        msg = "its checksum is another one"
        raise InputError(msg)
    view = memoryview(unpacked)
    place: int | None = 0
    sound = breaks_off or len(unpacked) == size
    while place is not None and place + RECORD.size <= len(unpacked):
        kind, length = RECORD.unpack_from(unpacked, place)
        after = place + RECORD.size + length
        if kind > 0 and after <= len(unpacked):
            yield kind, view[place + RECORD.size : after]
            place = after
        else:
            sound, place = breaks_off, next_record(unpacked, place + 1)
    if not sound:
        msg = "records in it have no end"
        raise InputError(msg)


def _text(content: Content, at: int) -> tuple[str, int]:
    """A text with its length before it, and where it ends."""
    (size,) = SIZE.unpack_from(content, at)
    begin, end = at + SIZE.size, at + SIZE.size + size
    return bytes(content[begin:end]).decode(), end


def _number(content: Content, at: int) -> int:
    (number,) = struct.unpack_from("<H", content, at)
    return int(number)
