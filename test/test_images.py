"""Pictures by encoding and step, against pixels worked out by hand."""

import timeit
from array import array
from collections.abc import Callable

import cv2
import numpy as np
import pytest
from sensor_msgs.msg import CompressedImage
from sensor_msgs.msg import Image as ImageMessage

from flatrope_planner.conversion.images import camera_frame, from_compressed, from_image, to_bgra8
from flatrope_planner.conversion.stamps import to_header
from flatrope_planner.domain import Image
from flatrope_planner.errors import InputError

# Two rows of three pixels: red, green, blue; black, white, orange.
RGB: Image = np.array(
    [[[255, 0, 0], [0, 255, 0], [0, 0, 255]], [[0, 0, 0], [255, 255, 255], [255, 128, 10]]], dtype=np.uint8
)
ALPHA = 77


def message(encoding: str, pixels: Image, padding: int = 0) -> ImageMessage:
    """A message of (H, W, C) pixels whose rows are followed by some bytes of padding."""
    height, width, channels = pixels.shape
    rows = np.full((height, width * channels + padding), 99, dtype=np.uint8)
    rows[:, : width * channels] = pixels.reshape(height, -1)
    return ImageMessage(
        header=to_header(1_500_000_000, "camera"),
        height=height,
        width=width,
        encoding=encoding,
        step=rows.shape[1],
        data=array("B", rows.tobytes()),
    )


def with_alpha(pixels: Image) -> Image:
    return np.concatenate([pixels, np.full((*pixels.shape[:2], 1), ALPHA, dtype=np.uint8)], axis=2)


@pytest.mark.parametrize("padding", [0, 1, 5])
@pytest.mark.parametrize(
    ("encoding", "pixels"),
    [
        ("rgb8", RGB),
        ("bgr8", RGB[..., ::-1]),
        ("8UC3", RGB[..., ::-1]),
        ("rgba8", with_alpha(RGB)),
        ("bgra8", with_alpha(RGB[..., ::-1])),
        ("8UC4", with_alpha(RGB[..., ::-1])),
    ],
)
def test_colours_survive_any_encoding_and_step(encoding: str, pixels: Image, padding: int) -> None:
    np.testing.assert_array_equal(from_image(message(encoding, pixels, padding)), RGB)


@pytest.mark.parametrize("encoding", ["mono8", "8UC1"])
def test_grey_becomes_three_equal_channels(encoding: str) -> None:
    grey = np.array([[[0], [100], [200]]], dtype=np.uint8)
    expected = [[[0] * 3, [100] * 3, [200] * 3]]
    np.testing.assert_array_equal(from_image(message(encoding, grey, padding=2)), expected)


def test_the_picture_does_not_change_with_the_message() -> None:
    source = message("rgb8", RGB)
    picture = from_image(source)
    source.data[0] = 1
    assert picture[0, 0, 0] == 255


def broken(**changes: object) -> ImageMessage:
    source = message("bgr8", RGB)
    for name, value in changes.items():
        setattr(source, name, value)
    return source


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (broken(encoding="32FC1"), "encoding '32FC1' is not supported; supported are rgb8, rgb16, bgr8"),
        (broken(encoding=""), "encoding '' is not supported"),
        (broken(encoding="bildpunkt\u00e4\n" * 9999), r"encoding 'bildpunkt\\xe4\\nbild[^ ]{0,40}\.\.\.' is not"),
        (broken(step=8), "step of at least 9"),
        (broken(step=0), "step 0"),
        (broken(height=3), "3 rows"),
        (broken(width=0), "0x2"),
        (broken(data=array("B")), "0 bytes"),
        (
            broken(data=array("B", bytes(19))),
            "19 bytes: expected .* for 2 rows of this step, 18 bytes",
        ),
        (broken(step=-9), "step of at least 9"),
        (broken(height=-2), "3x-2"),
        (broken(height=2**32 - 1, width=2**32 - 1), "expected 1 to 33554432"),
    ],
)
def test_messages_that_contradict_themselves_are_refused(source: ImageMessage, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        from_image(source)


def test_bgra8_is_what_carla_sends() -> None:
    sent = to_bgra8(RGB, 2_000_000_005, "ego_vehicle/front")
    assert (sent.encoding, sent.width, sent.height, sent.step) == ("bgra8", 3, 2, 12)
    assert (sent.header.stamp.sec, sent.header.stamp.nanosec, sent.header.frame_id) == (2, 5, "ego_vehicle/front")
    # First row, blue green red alpha.
    assert list(sent.data[:12]) == [0, 0, 255, 255, 0, 255, 0, 255, 255, 0, 0, 255]
    frame = camera_frame(sent)
    assert frame.stamp_ns == 2_000_000_005
    np.testing.assert_array_equal(frame.image, RGB)


def test_data_is_handed_over_as_a_byte_array() -> None:
    # Anything else is converted element by element, a hundred times slower.
    data = to_bgra8(RGB, 0, "camera").data
    assert isinstance(data, array)
    assert data.typecode == "B"


def fastest_s(work: Callable[[], object]) -> float:
    """The least of some runs: what else the machine does only adds."""
    return min(timeit.repeat(work, number=1, repeat=3))


def test_pictures_go_both_ways_faster_than_an_assignment_of_an_array() -> None:
    # What rclpy does with an ndarray is the trap (rclpy #763); 1/5 of it leaves an order of magnitude of room.
    picture = np.zeros((480, 640, 3), np.uint8)
    source = to_bgra8(picture, 0, "camera")
    flat = np.frombuffer(source.data, np.uint8)
    assignment_s = fastest_s(lambda: setattr(ImageMessage(), "data", flat))
    assert fastest_s(lambda: to_bgra8(picture, 0, "camera")) < assignment_s / 5.0
    assert fastest_s(lambda: from_image(source)) < assignment_s / 5.0


def compressed(extension: str) -> CompressedImage:
    _, data = cv2.imencode(extension, np.ascontiguousarray(np.kron(RGB[..., ::-1], np.ones((16, 16, 1), np.uint8))))
    return CompressedImage(header=to_header(7, "camera"), format=extension[1:], data=array("B", data.tobytes()))


def test_png_is_exact_and_jpeg_close() -> None:
    large = np.kron(RGB, np.ones((16, 16, 1), np.uint8))
    np.testing.assert_array_equal(from_compressed(compressed(".png")), large)
    frame = camera_frame(compressed(".jpg"))
    assert frame.stamp_ns == 7
    middles = frame.image[8::16, 8::16].astype(int)
    assert np.abs(middles - RGB).max() < 12


def test_a_frame_of_an_endless_name_is_refused() -> None:
    with pytest.raises(InputError, match=r"frame_id 'c+\.\.\.' of 300 characters, expected at most 255"):
        camera_frame(to_bgra8(np.zeros((4, 4, 3), np.uint8), 1, "c" * 300))
