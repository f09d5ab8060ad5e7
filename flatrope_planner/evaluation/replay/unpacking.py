"""The compressions of bags, by the libraries that rosbags brings for them."""

from pathlib import Path
from typing import IO, cast

from rosbags.rosbag2.reader import zstd  # type: ignore[attr-defined]
from rosbags.rosbag2.storage_mcap import DECOMPRESSORS

from flatrope_planner.evaluation.report.bounds import MOST_MESSAGE_BYTES

# What a packed message starts with; CDR starts with a zero.
MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD = "zstd"


def open_unpacked(file: Path) -> IO[bytes]:
    """The content of a file packed with zstd as a stream."""
    return cast("IO[bytes]", zstd.open(file, "rb"))


def unpacked(message: bytes) -> bytes:
    """The message; those of a bag packed message by message are unpacked where its metadata did not tell."""
    return decompressed(message, ZSTD, MOST_MESSAGE_BYTES + 1) if message[:4] == MAGIC else message


def decompressed(data: bytes, compression: str, most: int) -> bytes:
    """The content of one piece packed with "zstd", "lz4", or "" for nothing.

    Of a piece that breaks off, what is there; unless it is one of lz4, which is read in whole or not at all.

    Args:
        data: the piece.
        compression: by what it is packed.
        most: no more bytes than these are wanted.

    Raises:
        KeyError: for another compression.
    """
    if compression == ZSTD:
        return bytes(zstd.ZstdDecompressor().decompress(data, max_length=most))
    # rosbags asks for a size that none of the libraries needs.
    return DECOMPRESSORS[compression](data, 0)[:most]
