"""The compressions of bags, by the libraries that rosbags brings for them."""

from collections.abc import Iterator
from pathlib import Path

from lz4.frame import LZ4FrameDecompressor  # type: ignore[import-untyped]
from rosbags.rosbag2.reader import zstd  # type: ignore[attr-defined]

from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.report.bounds import MOST_MESSAGE_BYTES

# What a packed message or file starts with; CDR starts with a zero.
MAGIC = b"\x28\xb5\x2f\xfd"
PIECE_BYTES = 2**20
ZSTD, LZ4, UNPACKED = "zstd", "lz4", ""


def unpacked_pieces(file: Path) -> Iterator[bytes]:
    """The content of a file packed with zstd, piece by piece, as far as it goes.

    Raises:
        EOFError: at the end, if the file breaks off.
    """
    with file.open("rb") as stream:
        frame, packed = zstd.ZstdDecompressor(), b""
        while True:
            if frame.eof:
                packed = frame.unused_data or stream.read(PIECE_BYTES)
                if not packed:
                    return
                frame = zstd.ZstdDecompressor()
            elif frame.needs_input:
                packed = stream.read(PIECE_BYTES)
                if not packed:
                    msg = "it ends in the middle"
                    raise EOFError(msg)
            yield bytes(frame.decompress(packed, max_length=PIECE_BYTES))
            packed = b""


def unpacked(message: bytes) -> bytes:
    """The message; those of a bag packed message by message are unpacked where its metadata did not tell."""
    return decompressed(message, ZSTD, MOST_MESSAGE_BYTES + 1) if message[:4] == MAGIC else message


def decompressed(data: bytes, compression: str, most: int) -> bytes:
    """The content of one piece packed with "zstd", "lz4", or "" for nothing; of one that breaks off, what is there.

    Args:
        data: the piece.
        compression: by what it is packed.
        most: no more bytes than these are wanted.

    Raises:
        InputError: for another compression.
    """
    if compression == UNPACKED:
        return data[:most]
    if compression not in (ZSTD, LZ4):
        msg = f"compression {compression!r} is not known; known are {ZSTD} and {LZ4}"
        raise InputError(msg)
    pieces: list[bytes] = []
    # One frame may follow another.
    while data and most > 0:
        frame = zstd.ZstdDecompressor() if compression == ZSTD else LZ4FrameDecompressor()
        pieces.append(bytes(frame.decompress(data, max_length=most)))
        most -= len(pieces[-1])
        data = bytes(frame.unused_data or b"") if frame.eof else b""
    return b"".join(pieces)
