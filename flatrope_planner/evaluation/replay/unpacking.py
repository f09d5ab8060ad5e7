"""The compressions of bags, by the libraries that rosbags brings for them."""

from pathlib import Path
from typing import IO, cast

from lz4.frame import LZ4FrameDecompressor  # type: ignore[import-untyped]
from rosbags.rosbag2.reader import zstd  # type: ignore[attr-defined]

from flatrope_planner.evaluation.report.bounds import MOST_MESSAGE_BYTES

# What a packed message starts with; CDR starts with a zero.
MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD, LZ4, NOTHING = "zstd", "lz4", ""


def open_unpacked(file: Path) -> IO[bytes]:
    """The content of a file packed with zstd as a stream."""
    return cast("IO[bytes]", zstd.open(file, "rb"))


def unpacked(message: bytes) -> bytes:
    """The message; those of a bag packed message by message are unpacked where its metadata did not tell."""
    return decompressed(message, ZSTD, MOST_MESSAGE_BYTES + 1) if message[:4] == MAGIC else message


def decompressed(data: bytes, compression: str, most: int) -> bytes:
    """The content of one piece packed with "zstd", "lz4", or "" for nothing; of a piece that breaks off, what is there.

    Args:
        data: the piece.
        compression: by what it is packed.
        most: no more bytes than these are unpacked.

    Raises:
        KeyError: for another compression.
    """
    if compression == NOTHING:
        return data[:most]
    decompressor = {ZSTD: zstd.ZstdDecompressor, LZ4: LZ4FrameDecompressor}[compression]()
    return bytes(decompressor.decompress(data, max_length=most))
