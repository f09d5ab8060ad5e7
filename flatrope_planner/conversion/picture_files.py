"""What JPEG and PNG files say about themselves before they are decoded: their size, and whether they are whole.

Decoders fill up what is missing with grey, and reserve as much memory as a header or the length of a part asks for.
"""

import re
from typing import NamedTuple

from flatrope_planner.errors import InputError

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_HEADER, PNG_END, PNG_ANIMATION = b"IHDR", b"IEND", b"acTL"
PNG_HEADER_BYTES = 13
# Length, name and checksum of a chunk.
PNG_CHUNK_BYTES = 12
# Encoders write 8 kB to a chunk and more: 500 MB.
MAX_PNG_CHUNKS = 2**16

JPEG_SIGNATURE = b"\xff\xd8\xff"
# Entropy-coded data holds FF only before 00 or a restart mark; FF before FF fills up.
_JPEG_MARK = re.compile(rb"\xff([^\x00\xff\xd0-\xd7])")
END_MARK, SCAN_MARK, TABLES_MARK = 0xD9, 0xDA, 0xC4
# Kinds of coding; C4, C8 and CC are none.
FRAME_MARKS = frozenset(range(0xC0, 0xD0)) - {TABLES_MARK, 0xC8, 0xCC}
OTHER_MARKS = frozenset({TABLES_MARK, SCAN_MARK, 0xDB, 0xDC, 0xDD, 0xFE, *range(0xE0, 0xF0)})
# Real files have some dozens; each further scan makes a decoder go through the whole picture once more.
MAX_JPEG_SEGMENTS = 500
GREY_OR_COLOUR = (1, 3)


class FileHeader(NamedTuple):
    """What a file says about its picture."""

    width: int
    height: int
    # Where the end mark of a JPEG stands, and where a PNG ends.
    end: int


def file_header(data: bytes) -> FileHeader:
    """The header of a JPEG or PNG.

    Raises:
        InputError: if the file is of another kind, is cut short, or contradicts itself.
    """
    if data.startswith(JPEG_SIGNATURE):
        return _jpeg_header(data)
    if data.startswith(PNG_SIGNATURE):
        return _png_header(data)
    msg = f"{len(data)} bytes that begin with {data[:4].hex(' ') or 'nothing'} are neither JPEG nor PNG"
    raise InputError(msg)


def _png_header(data: bytes) -> FileHeader:
    position, name = len(PNG_SIGNATURE), b""
    header = data[position + 8 : position + 8 + PNG_HEADER_BYTES]
    for number in range(MAX_PNG_CHUNKS):
        length, name = int.from_bytes(data[position : position + 4], "big"), data[position + 4 : position + 8]
        position += length + PNG_CHUNK_BYTES
        if position > len(data):
            msg = f"PNG is cut short: {len(data)} bytes, expected at least {position}"
            raise InputError(msg)
        if name == PNG_ANIMATION or (name == PNG_HEADER) != (number == 0):
            msg = f"PNG is damaged or animated: chunk {number} is {ascii(name)[1:]}"
            raise InputError(msg)
        if name == PNG_END:
            break
    else:
        msg = f"PNG has more than {MAX_PNG_CHUNKS} chunks"
        raise InputError(msg)
    width, height = (int.from_bytes(header[at : at + 4], "big") for at in (0, 4))
    return FileHeader(width, height, position)


def _jpeg_header(data: bytes) -> FileHeader:
    position, size = 2, None
    for _ in range(MAX_JPEG_SEGMENTS):
        mark, position = _next_mark(data, position)
        if mark == END_MARK:
            break
        segment = _segment(data, mark, position)
        if mark in FRAME_MARKS:
            if size is not None:
                msg = "JPEG is damaged: it has two frames"
                raise InputError(msg)
            size = _frame_size(segment)
        position += 2 + len(segment)
    else:
        msg = f"JPEG has more than {MAX_JPEG_SEGMENTS} segments"
        raise InputError(msg)
    if size is None:
        msg = "JPEG holds no picture"
        raise InputError(msg)
    return FileHeader(*size, position - 2)


def _next_mark(data: bytes, position: int) -> tuple[int, int]:
    """The next mark and the position behind it."""
    found = _JPEG_MARK.search(data, position)
    if found is None:
        msg = f"JPEG is cut short: no end mark in {len(data)} bytes"
        raise InputError(msg)
    return found[1][0], found.end()


def _segment(data: bytes, mark: int, position: int) -> bytes:
    """What follows a mark, without its length."""
    length = int.from_bytes(data[position : position + 2], "big")
    if mark not in FRAME_MARKS | OTHER_MARKS or length < 2:
        msg = f"JPEG is damaged: mark ff{mark:02x} at byte {position - 2}"
        raise InputError(msg)
    if position + length > len(data):
        msg = f"JPEG is cut short: {len(data)} bytes, expected at least {position + length}"
        raise InputError(msg)
    return data[position + 2 : position + length]


def _frame_size(segment: bytes) -> tuple[int, int]:
    """Width and height of a frame: precision, height, width, number of colours."""
    if len(segment) < 6 or segment[5] not in GREY_OR_COLOUR:
        colours = f"{segment[5]} colours" if len(segment) > 5 else "no colours"
        msg = f"JPEG of {colours}, expected 1 (grey) or 3 (not CMYK)"
        raise InputError(msg)
    return int.from_bytes(segment[3:5], "big"), int.from_bytes(segment[1:3], "big")
