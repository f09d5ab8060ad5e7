"""JPEG and PNG as drivers and image_transport send them, and what is none or not whole."""

import struct
import zlib
from array import array

import cv2
import numpy as np
import pytest
from sensor_msgs.msg import CompressedImage

from flatrope_planner.conversion.decompression import from_compressed
from flatrope_planner.domain import Image
from flatrope_planner.errors import InputError

# Two rows of three fields: red, green, blue; black, white, orange.
FIELDS: Image = np.array(
    [[[255, 0, 0], [0, 255, 0], [0, 0, 255]], [[0, 0, 0], [255, 255, 255], [255, 128, 10]]], np.uint8
)
PICTURE: Image = np.kron(FIELDS, np.ones((16, 16, 1), np.uint8))
NOISE: Image = np.random.default_rng(3).integers(0, 256, (64, 96, 3), np.uint8)


def compressed(data: bytes, label: str = "jpeg") -> CompressedImage:
    return CompressedImage(format=label, data=array("B", data))


def encoded(extension: str, picture: Image, *options: int) -> bytes:
    """A file of an RGB, RGBA or grey picture."""
    swapped = picture if picture.ndim == 2 else picture[..., [2, 1, 0, 3][: picture.shape[2]]]
    return bytes(cv2.imencode(extension, np.ascontiguousarray(swapped), list(options))[1].tobytes())


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(width: int, height: int, depth: int, colour: int, *chunks: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunks) + chunk(b"IEND", b"")


def close(seen: Image, fields: Image) -> bool:
    """Whether the middles of the fields have these colours."""
    return bool(np.abs(seen[8::16, 8::16].astype(int) - fields).max() < 12)


@pytest.mark.parametrize(
    "label", ["jpeg", "jpg", "", "png", "bgr8; jpeg compressed bgr8", "rgb8; jpeg compressed bgr8"]
)
def test_the_bytes_say_what_a_picture_is(label: str) -> None:
    assert close(from_compressed(compressed(encoded(".jpg", PICTURE), label)), FIELDS)
    np.testing.assert_array_equal(from_compressed(compressed(encoded(".png", PICTURE), label)), PICTURE)


@pytest.mark.parametrize("label", ["rgb8; jpeg compressed rgb8", "bgr8; png compressed rgb16"])
def test_image_transports_swapped_colours_are_swapped_back(label: str) -> None:
    np.testing.assert_array_equal(from_compressed(compressed(encoded(".png", PICTURE[..., ::-1]), label)), PICTURE)


def test_grey_jpeg_and_png() -> None:
    grey = np.full((24, 16), 90, np.uint8)
    assert np.abs(from_compressed(compressed(encoded(".jpg", grey))).astype(int) - 90).max() <= 1
    np.testing.assert_array_equal(from_compressed(compressed(encoded(".png", grey))), np.full((24, 16, 3), 90))


@pytest.mark.parametrize("option", [cv2.IMWRITE_JPEG_PROGRESSIVE, cv2.IMWRITE_JPEG_RST_INTERVAL])
def test_progressive_jpegs_and_restart_marks(option: int) -> None:
    assert close(from_compressed(compressed(encoded(".jpg", PICTURE, option, 1))), FIELDS)


def test_png_of_16_bits_keeps_the_upper_8() -> None:
    deep = PICTURE.astype(np.uint16)[..., ::-1] * 256 + 200
    data = bytes(cv2.imencode(".png", deep)[1].tobytes())
    np.testing.assert_array_equal(from_compressed(compressed(data)), PICTURE)


def test_alpha_is_dropped() -> None:
    alpha = np.full((*PICTURE.shape[:2], 1), 3, np.uint8)
    data = encoded(".png", np.concatenate([PICTURE, alpha], axis=2))
    np.testing.assert_array_equal(from_compressed(compressed(data)), PICTURE)


def test_png_with_a_palette() -> None:
    palette = chunk(b"PLTE", bytes([10, 20, 30, 200, 100, 50]))
    # One row of three pixels, one bit each: 1 0 1.
    data = png(3, 1, 1, 3, palette, chunk(b"IDAT", zlib.compress(b"\x00\xa0")))
    assert from_compressed(compressed(data)).tolist() == [[[200, 100, 50], [10, 20, 30], [200, 100, 50]]]


def with_exif(data: bytes, orientation: int) -> bytes:
    """The JPEG with the remark that it is to be turned for looking at it."""
    tiff = b"MM\x00\x2a\x00\x00\x00\x08" + struct.pack(">HHHIHHI", 1, 0x0112, 3, 1, orientation, 0, 0)
    segment = b"Exif\x00\x00" + tiff
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + data[2:]


def test_exif_turns_no_picture() -> None:
    data = with_exif(encoded(".jpg", PICTURE), orientation=6)
    # The remark is one that OpenCV follows where it is not told otherwise.
    assert np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)).shape == (48, 32, 3)
    seen = from_compressed(compressed(data))
    assert seen.shape == (32, 48, 3)
    assert close(seen, FIELDS)


@pytest.mark.parametrize("left", [0.02, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("extension", [".jpg", ".png"])
def test_pictures_that_are_cut_short_are_refused(extension: str, left: float) -> None:
    data = encoded(extension, NOISE)
    with pytest.raises(InputError, match="cut short"):
        from_compressed(compressed(data[: int(left * len(data))]))


def test_a_preview_has_an_end_mark_that_is_not_the_pictures() -> None:
    data = encoded(".jpg", NOISE)
    preview = b"\xff\xed\x00\x0apreview\xff\xd9"[:11] + b"\xd9"
    assert len(preview) == 12
    data = data[:2] + preview + data[2:]
    assert from_compressed(compressed(data)).shape == NOISE.shape
    with pytest.raises(InputError, match="cut short"):
        from_compressed(compressed(data[:-2]))


@pytest.mark.parametrize("left", [0.3, 0.7, 0.95])
def test_a_scan_that_lost_data_before_its_end_mark_is_refused(left: float) -> None:
    data = encoded(".jpg", NOISE)
    with pytest.raises(InputError, match="scan ends before the last row"):
        from_compressed(compressed(data[: int(left * len(data))] + b"\xff\xd9"))


@pytest.mark.parametrize("extension", [".jpg", ".png"])
def test_a_picture_that_is_as_grey_as_missing_data_is_whole(extension: str) -> None:
    grey = np.full((40, 40, 3), 128, np.uint8)
    np.testing.assert_array_equal(from_compressed(compressed(encoded(extension, grey))), grey)


def test_what_follows_the_end_mark_does_not_matter() -> None:
    data = encoded(".jpg", PICTURE)
    assert close(from_compressed(compressed(data + bytes(100))), FIELDS)


def claiming(width: int, height: int) -> bytes:
    """A small JPEG whose header says that it is that large."""
    data = bytearray(encoded(".jpg", PICTURE))
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", height, width)
    return bytes(data)


BOMBS = [claiming(60_000, 60_000), png(60_000, 60_000, 8, 2, chunk(b"IDAT", zlib.compress(bytes(1000))))]


@pytest.mark.parametrize("data", BOMBS, ids=["jpeg", "png"])
def test_pictures_that_claim_to_be_huge_are_refused_undecoded(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cv2, "imdecode", None)
    with pytest.raises(InputError, match="60000x60000 pixels, expected 1 to 33554432"):
        from_compressed(compressed(data))


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "0 bytes that begin with nothing are neither JPEG nor PNG"),
        (b"\xff\xd8 no picture", "neither JPEG nor PNG"),
        (encoded(".bmp", PICTURE), "begin with 42 4d .* are neither JPEG nor PNG"),
        (claiming(0, 5), "0x5"),
        (b"\xff\xd8\xff\xd9", "holds no picture"),
        (b"\xff\xd8\xff\x02\x00\x04\x00\x00\xff\xd9", "damaged: mark ff02 at byte 2"),
        (b"\xff\xd8\xff\xe0\x00\x00\xff\xd9", "damaged: mark ffe0"),
        (b"\xff\xd8" + b"\xff\xfe\x00\x02" * 501 + b"\xff\xd9", "more than 500 segments"),
        (b"\xff\xd8\xff\xc0\x00\x14\x08\x00\x10\x00\x10\x04" + bytes(12) + b"\xff\xd9", r"4 colours, .*not CMYK"),
        (b"\xff\xd8\xff\xc0\x00\x02\xff\xd9", "no colours"),
        (claiming(48, 32)[:-2] + b"\xff\xc0\x00\x0b\x08\x00\x10\x00\x10\x01\x00\x11\x00\xff\xd9", "two frames"),
        (png(3, 1, 8, 2, chunk(b"IDAT", b"no zlib")), "cannot be decoded"),
        # A decoder would reserve 4 GB for this.
        (png(3, 1, 8, 2, b"\xff\x00\x00\x00IDAT"), r"PNG is cut short: \d+ bytes, expected at least 4278190"),
        (png(3, 1, 8, 2, chunk(b"IHDR", bytes(13))), "damaged or animated: chunk 1 is 'IHDR'"),
        (png(3, 1, 8, 2, chunk(b"acTL", bytes(8))), "damaged or animated: chunk 1 is 'acTL'"),
        (png(3, 1, 8, 2)[:8] + chunk(b"gAMA", bytes(4)) + png(3, 1, 8, 2)[8:], "chunk 0 is 'gAMA'"),
        (png(3, 1, 8, 2, chunk(b"tEXt", b"") * 65_536), "more than 65536 chunks"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_picture_is_refused_by_name(data: bytes, complaint: str) -> None:
    with pytest.raises(InputError, match=f"compressed image of format 'jpeg': .*{complaint}"):
        from_compressed(compressed(data))


@pytest.mark.parametrize(
    "label", ["16UC1; compressedDepth png", "32FC1; compressedDepth", "16UC1; compressedDepth rvl"]
)
def test_depths_are_refused_by_name(label: str) -> None:
    with pytest.raises(InputError, match=r"compressedDepth.*depths, expected one of colours"):
        from_compressed(compressed(bytes(12) + encoded(".png", PICTURE), label))
