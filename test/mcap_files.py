"""Writes .mcap files as other tools lay them out, byte by byte as the format says (https://mcap.dev/spec)."""

import struct
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import lz4.frame  # type: ignore[import-untyped]
from drives import STORE, Sent, nanoseconds

MAGIC = b"\x89MCAP0\r\n"
PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, "lz4": lz4.frame.compress}


@dataclass(frozen=True)
class Layout:
    """How a file is laid out."""

    # Messages in a chunk; 0 for no chunks.
    chunk: int = 30
    packed: str = ""
    # What is written besides the data: an index of each chunk's messages; topics and numbers of messages at the end.
    indexed: bool = True
    repeated: bool = True
    counted: bool = True
    checked: bool = True
    # Whether a chunk says of which times it is; and whether one without messages comes first.
    timed: bool = True
    leading: bool = False


def record(kind: int, content: bytes) -> bytes:
    return struct.pack("<BQ", kind, len(content)) + content


def text(value: str) -> bytes:
    return struct.pack("<I", len(value)) + value.encode()


def write_mcap(file: Path, sent: Sequence[Sent], layout: Layout) -> Path:
    """A file with the messages in this order."""
    topics = {each.topic: each.message.__msgtype__ for each in sent}
    numbers = {topic: number for number, topic in enumerate(topics, 1)}
    descriptions = b"".join(_description(numbers[topic], topic, kind) for topic, kind in topics.items())
    chunks = [sent[i : i + layout.chunk] for i in range(0, len(sent), layout.chunk)] if layout.chunk else []
    data = b"" if chunks else descriptions + b"".join(_message(numbers, each) for each in sent)
    if layout.leading:
        data += _chunk(numbers, descriptions, (), layout)
    for index, each in enumerate(chunks):
        data += _chunk(numbers, descriptions if index == 0 else b"", each, layout)
    opening = MAGIC + record(0x01, text("") + text("")) + data + record(0x0F, bytes(4))
    summary = descriptions if layout.repeated else b""
    if layout.counted:
        summary += _statistics(Counter(numbers[each.topic] for each in sent), sent, len(chunks))
    footer = struct.pack("<BQQQ", 0x02, 20, len(opening) if summary else 0, 0)
    file.write_bytes(opening + summary + footer + struct.pack("<I", zlib.crc32(summary + footer)) + MAGIC)
    return file


def _description(number: int, topic: str, kind: str) -> bytes:
    definition, _ = STORE.generate_msgdef(kind)
    schema = struct.pack("<H", number) + text(kind) + text("ros2msg") + text(str(definition))
    channel = struct.pack("<HH", number, number) + text(topic) + text("cdr") + bytes(4)
    return record(0x03, schema) + record(0x04, channel)


def _message(numbers: dict[str, int], sent: Sent) -> bytes:
    log_ns = nanoseconds(sent.log_s)
    cdr = bytes(STORE.serialize_cdr(sent.message, sent.message.__msgtype__))
    return record(0x05, struct.pack("<HIQQ", numbers[sent.topic], 0, log_ns, log_ns) + cdr)


def _chunk(numbers: dict[str, int], descriptions: bytes, sent: Sequence[Sent], layout: Layout) -> bytes:
    content = descriptions + b"".join(_message(numbers, each) for each in sent)
    packed = PACKERS[layout.packed](content)
    times = [nanoseconds(each.log_s) for each in sent] if layout.timed else []
    checksum = zlib.crc32(content) if layout.checked else 0
    head = struct.pack("<QQQI", min(times, default=0), max(times, default=0), len(content), checksum)
    chunk = record(0x06, head + text(layout.packed) + struct.pack("<Q", len(packed)) + packed)
    counts = Counter(numbers[each.topic] for each in sent) if layout.indexed else {}
    # Where each message lies is left out: nobody asks.
    indexes = (record(0x07, struct.pack("<HI", number, 16 * n) + bytes(16 * n)) for number, n in counts.items())
    return chunk + b"".join(indexes)


def _statistics(counts: Counter[int], sent: Sequence[Sent], chunks: int) -> bytes:
    times = [nanoseconds(each.log_s) for each in sent]
    numbers = struct.pack("<QHIIIIQQ", len(sent), len(counts), len(counts), 0, 0, chunks, min(times), max(times))
    pairs = b"".join(struct.pack("<HQ", number, count) for number, count in sorted(counts.items()))
    return record(0x0B, numbers + struct.pack("<I", len(pairs)) + pairs)
