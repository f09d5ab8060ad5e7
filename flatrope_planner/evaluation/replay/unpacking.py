"""Zstandard, by whichever module of it is there: rosbags brings one."""

import sys
from pathlib import Path
from typing import IO, cast

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# What a packed message starts with; CDR starts with a zero.
MAGIC = b"\x28\xb5\x2f\xfd"


def open_unpacked(file: Path) -> IO[bytes]:
    """The content of a packed file as a stream."""
    return cast("IO[bytes]", zstd.open(file, "rb"))


def unpacked(message: bytes) -> bytes:
    """The message; those of a bag packed message by message are unpacked where its metadata did not tell."""
    return decompressed(message) if message[:4] == MAGIC else message


def decompressed(data: bytes) -> bytes:
    """The content of one packed piece."""
    return zstd.decompress(data)
