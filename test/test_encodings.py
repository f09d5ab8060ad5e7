"""Encodings against colours that are known before anything is laid out in bytes."""

from array import array
from collections.abc import Callable

import numpy as np
import pytest
from sensor_msgs.msg import Image as ImageMessage

from flatrope_planner.conversion.encodings import ENCODINGS
from flatrope_planner.conversion.images import from_image
from flatrope_planner.domain import Floats, Image
from flatrope_planner.errors import InputError

RED, ORANGE = (230, 20, 30), (200, 120, 40)
# Red, green or blue of the first two pixels of the first two rows.
PATTERNS = {"rggb": (0, 1, 1, 2), "bggr": (2, 1, 1, 0), "gbrg": (1, 2, 0, 1), "grbg": (1, 0, 2, 1)}


def message(encoding: str, rows: Image, size_px: tuple[int, int], big_endian: int = 0) -> ImageMessage:
    """A message of (N, step) rows of bytes and (height, width)."""
    return ImageMessage(
        height=size_px[0],
        width=size_px[1],
        encoding=encoding,
        is_bigendian=big_endian,
        step=rows.shape[1],
        data=array("B", rows.tobytes()),
    )


def padded(rows: Image, padding: int) -> Image:
    return np.pad(rows, ((0, 0), (0, padding)), constant_values=99)


def two_colours(height: int = 6, width: int = 12) -> Image:
    """Left half red, right half orange."""
    picture = np.empty((height, width, 3), np.uint8)
    picture[:, : width // 2], picture[:, width // 2 :] = RED, ORANGE
    return picture


def mosaic(picture: Image, pattern: str) -> Image:
    """What a sensor under these filters measures."""
    seen = np.empty(picture.shape[:2], np.uint8)
    for position, colour in enumerate(PATTERNS[pattern]):
        row, column = divmod(position, 2)
        seen[row::2, column::2] = picture[row::2, column::2, colour]
    return seen


def wide(samples: Image, big_endian: int) -> Image:
    """(H, N) samples of 8 bits as the upper bytes of 16, in rows of bytes."""
    kind = ">u2" if big_endian else "<u2"
    return (samples.astype(kind) * 256 + 77).astype(kind).view(np.uint8)


@pytest.mark.parametrize("padding", [0, 1, 7])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_bayer_patterns_are_named_from_the_first_pixel(pattern: str, padding: int) -> None:
    picture = two_colours()
    seen = from_image(message(f"bayer_{pattern}8", padded(mosaic(picture, pattern), padding), (6, 12)))
    # Away from the edge between the colours there is nothing to mix.
    for columns in (slice(0, 4), slice(8, 12)):
        np.testing.assert_array_equal(seen[:, columns], picture[:, columns])


@pytest.mark.parametrize("big_endian", [0, 1])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_bayer_patterns_of_16_bits(pattern: str, big_endian: int) -> None:
    picture = two_colours()
    rows = padded(wide(mosaic(picture, pattern), big_endian), 3)
    seen = from_image(message(f"bayer_{pattern}16", rows, (6, 12), big_endian))
    np.testing.assert_array_equal(seen[:, :4], picture[:, :4])
    np.testing.assert_array_equal(seen[:, 8:], picture[:, 8:])


@pytest.mark.parametrize("size_px", [(1, 1), (2, 2), (2, 9), (9, 2)])
def test_bayer_pictures_without_neighbours_are_refused(size_px: tuple[int, int]) -> None:
    with pytest.raises(InputError, match="expected at least 3x3"):
        from_image(message("bayer_rggb8", np.zeros(size_px, np.uint8), size_px))


def test_odd_bayer_pictures() -> None:
    picture = np.broadcast_to(np.array(ORANGE, np.uint8), (5, 7, 3))
    np.testing.assert_array_equal(from_image(message("bayer_grbg8", mosaic(picture, "grbg"), (5, 7))), picture)


@pytest.mark.parametrize("big_endian", [0, 1])
@pytest.mark.parametrize("padding", [0, 1, 5])
@pytest.mark.parametrize(
    ("encoding", "order"),
    [
        ("rgb16", (0, 1, 2)),
        ("bgr16", (2, 1, 0)),
        ("16UC3", (2, 1, 0)),
        ("rgba16", (0, 1, 2, 0)),
        ("bgra16", (2, 1, 0, 0)),
        ("16UC4", (2, 1, 0, 0)),
    ],
)
def test_of_16_bits_the_upper_8_are_taken(encoding: str, order: tuple[int, ...], padding: int, big_endian: int) -> None:
    picture = np.random.default_rng(1).integers(0, 256, (3, 5, 3), np.uint8)
    rows = wide(picture[..., order].reshape(3, -1), big_endian)
    np.testing.assert_array_equal(from_image(message(encoding, padded(rows, padding), (3, 5), big_endian)), picture)


@pytest.mark.parametrize("encoding", ["mono16", "16UC1"])
@pytest.mark.parametrize(("big_endian", "data"), [(0, [0xFF, 0x7F, 0x00, 0x80]), (1, [0x7F, 0xFF, 0x80, 0x00])])
def test_grey_of_16_bits(encoding: str, big_endian: int, data: list[int]) -> None:
    seen = from_image(message(encoding, np.array([data], np.uint8), (1, 2), big_endian))
    assert seen.tolist() == [[[127] * 3, [128] * 3]]


def test_single_bytes_have_no_order() -> None:
    seen = from_image(message("bgr8", np.array([[1, 2, 3]], np.uint8), (1, 1), big_endian=1))
    assert seen.tolist() == [[[3, 2, 1]]]


def rgb_of(y: Floats, u: Floats, v: Floats) -> Floats:
    """BT.601 with Y from 16 to 235 and U, V from 16 to 240, from the standard's weights of red and blue."""
    red, blue = 0.299, 0.114
    green = 1.0 - red - blue
    luma, cb, cr = (y - 16.0) / 219.0, (u - 128.0) / 224.0, (v - 128.0) / 224.0
    r, b = luma + 2.0 * (1.0 - red) * cr, luma + 2.0 * (1.0 - blue) * cb
    g = (luma - red * r - blue * b) / green
    return np.asarray(np.clip(np.stack([r, g, b], axis=-1) * 255.0, 0.0, 255.0))


def planes(height: int, width: int) -> tuple[Image, Image, Image]:
    """Y, U and V of every pixel, at random."""
    y, u, v = np.random.default_rng(2).integers(16, 236, (3, height, width), np.uint8)
    return y, u, v


def shared(plane: Image, height_px: int, width_px: int) -> Image:
    """Every block of so many pixels takes the value of its first one."""
    return np.asarray(np.kron(plane[::height_px, ::width_px], np.ones((height_px, width_px), np.uint8)))[
        : plane.shape[0], : plane.shape[1]
    ]


def interleaved(first: Image, second: Image) -> Image:
    return np.stack([first, second], axis=-1).reshape(len(first), -1)


def packed_422(y: Image, u: Image, v: Image, *, luma_first: bool) -> Image:
    """Whole pairs of pixels; an odd row is filled up with its last Y."""
    y = np.pad(y, ((0, 0), (0, y.shape[1] % 2)), mode="edge")
    halves = (y, interleaved(u[:, ::2], v[:, ::2])) if luma_first else (interleaved(u[:, ::2], v[:, ::2]), y)
    return interleaved(*halves)


@pytest.mark.parametrize("padding", [0, 3, 6])
@pytest.mark.parametrize("width", [8, 7, 1])
@pytest.mark.parametrize("encoding", ["uyvy", "yuv422", "yuyv", "yuv422_yuy2"])
def test_packed_yuv_under_old_and_new_names(encoding: str, width: int, padding: int) -> None:
    y, u, v = planes(3, width)
    rows = packed_422(y, u, v, luma_first=encoding in ("yuyv", "yuv422_yuy2"))
    seen = from_image(message(encoding, padded(rows, padding), (3, width)))
    expected = rgb_of(*(plane.astype(float) for plane in (y, shared(u, 1, 2), shared(v, 1, 2))))
    assert np.abs(seen - expected).max() <= 1.5


def test_an_odd_row_that_ends_in_mid_pair_takes_over_what_it_lacks() -> None:
    y, _, _ = planes(2, 5)
    u, v = np.full((2, 5), 90, np.uint8), np.full((2, 5), 160, np.uint8)
    seen = from_image(message("uyvy", packed_422(y, u, v, luma_first=False)[:, :10], (2, 5)))
    expected = rgb_of(*(plane.astype(float) for plane in (y, u, v)))
    assert np.abs(seen - expected).max() <= 1.5
    alone = from_image(message("yuyv", np.array([[126, 128]], np.uint8), (1, 1)))
    assert alone.tolist() == [[[128, 128, 128]]]


@pytest.mark.parametrize("padding", [0, 2, 5])
@pytest.mark.parametrize(("height", "width"), [(4, 6), (5, 7), (1, 1)])
@pytest.mark.parametrize("encoding", ["nv12", "nv21"])
def test_planes_of_which_four_pixels_share_colours(encoding: str, height: int, width: int, padding: int) -> None:
    y, u, v = planes(height, width)
    first, second = (u, v) if encoding == "nv12" else (v, u)
    chroma = interleaved(first[::2, ::2], second[::2, ::2])
    luma = np.pad(y, ((0, 0), (0, chroma.shape[1] - width)), constant_values=99)
    seen = from_image(message(encoding, padded(np.concatenate([luma, chroma]), padding), (height, width)))
    expected = rgb_of(*(plane.astype(float) for plane in (y, shared(u, 2, 2), shared(v, 2, 2))))
    assert np.abs(seen - expected).max() <= 1.5


@pytest.mark.parametrize("padding", [0, 1])
def test_planes_of_full_colour(padding: int) -> None:
    y, u, v = planes(3, 5)
    luma, chroma = padded(y, padding), padded(interleaved(u, v), 2 * padding)
    data = np.concatenate([luma.ravel(), chroma.ravel()]).reshape(9, 5 + padding)
    seen = from_image(message("nv24", data, (3, 5)))
    assert np.abs(seen - rgb_of(y.astype(float), u.astype(float), v.astype(float))).max() <= 1.5


BLACK_AND_WHITE: list[tuple[str, Callable[[int], list[int]]]] = [
    ("uyvy", lambda y: [128, y, 128, y]),
    ("yuyv", lambda y: [y, 128, y, 128]),
]


@pytest.mark.parametrize(("encoding", "pair"), BLACK_AND_WHITE)
def test_black_is_16_and_white_235(encoding: str, pair: Callable[[int], list[int]]) -> None:
    rows = np.array([pair(16), pair(235)], np.uint8)
    assert from_image(message(encoding, rows, (2, 2))).tolist() == [[[0] * 3] * 2, [[255] * 3] * 2]


@pytest.mark.parametrize("encoding", ["nv12", "nv21", "nv24"])
def test_planes_that_are_missing_are_named(encoding: str) -> None:
    luma_alone = message(encoding, np.zeros((4, 6), np.uint8), (4, 6))
    with pytest.raises(InputError, match=rf"24 bytes: expected .* {36 if encoding != 'nv24' else 72} bytes"):
        from_image(luma_alone)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_gives_a_picture_of_its_own(encoding: str) -> None:
    layout = ENCODINGS[encoding]
    step = layout.least_step(5) + 1
    rows = np.arange(layout.data_bytes(4, step), dtype=np.uint8).reshape(-1, step)
    source = message(encoding, rows, (4, 5))
    seen = from_image(source)
    assert (seen.shape, seen.dtype.name, seen.flags.c_contiguous) == ((4, 5, 3), "uint8", True)
    before = seen.copy()
    for index in range(len(source.data)):
        source.data[index] = 255 - source.data[index]
    np.testing.assert_array_equal(seen, before)
