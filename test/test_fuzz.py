"""Whatever comes in is taken in or refused by name; the benchmark that says so can tell when it is not so."""

from array import array
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nav_msgs.msg import Odometry
from sensor_msgs.msg import CompressedImage
from sensor_msgs.msg import Image as ImageMessage

from flatrope_planner.conversion import encodings, images
from flatrope_planner.conversion.broken_messages import BrokenMessages
from flatrope_planner.conversion.encodings import ENCODINGS
from flatrope_planner.conversion.images import camera_frame
from flatrope_planner.conversion.odometry import odometry_sample
from flatrope_planner.dimensions import NANOSECONDS_PER_SECOND
from flatrope_planner.errors import InputError, NotReadyError
from flatrope_planner.evaluation.fuzz_benchmark import run_fuzz, table
from flatrope_planner.planning.ego_motion import EgoMotion
from flatrope_planner.planning.odometry import OdometryTrack

# The same examples each time, none kept on disk, no clock in the verdict.
REPEATABLE = settings(derandomize=True, database=None, deadline=None, max_examples=150)
COUNTS = st.integers(0, 12) | st.integers(0, 2**32 - 1)
NUMBERS = st.floats() | st.floats(-1e7, 1e7)


def file_of(extension: str) -> bytes:
    picture = np.random.default_rng(0).integers(0, 256, (9, 13, 3), np.uint8)
    return bytes(cv2.imencode(extension, picture)[1].tobytes())


def taken_or_refused(message: Any) -> None:
    try:
        image = camera_frame(message).image
    except InputError as err:
        complaint = str(err)
    else:
        complaint = ""
        assert image.dtype == np.uint8
        assert image.shape[2] == 3
        assert isinstance(message, CompressedImage) or image.shape[:2] == (message.height, message.width)
    assert "\n" not in complaint
    assert len(complaint) < 700


@REPEATABLE
@given(
    encoding=st.sampled_from(list(ENCODINGS)) | st.text(max_size=200),
    size=st.tuples(COUNTS, COUNTS, COUNTS),
    data=st.binary(max_size=400),
    big_endian=st.integers(0, 255),
)
def test_any_image(encoding: str, size: tuple[int, int, int], data: bytes, big_endian: int) -> None:
    height, width, step = size
    message = ImageMessage(height=height, width=width, encoding=encoding, step=step, is_bigendian=big_endian)
    message.data = array("B", data)
    taken_or_refused(message)


@REPEATABLE
@given(
    encoding=st.sampled_from(list(ENCODINGS)),
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    padding=st.integers(0, 9),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_image_whose_sizes_fit_is_taken(encoding: str, size: tuple[int, int], padding: int, seed: int) -> None:
    layout, (height, width) = ENCODINGS[encoding], size
    step = layout.least_step(width) + padding
    data = array("B", np.random.default_rng(seed).bytes(layout.data_bytes(height, step)))
    message = ImageMessage(height=height, width=width, encoding=encoding, step=step, data=data)
    if encoding.startswith("bayer") and min(size) < encodings.LEAST_BAYER_PX:
        with pytest.raises(InputError):
            camera_frame(message)
    else:
        assert camera_frame(message).image.shape == (height, width, 3)


@REPEATABLE
@given(
    whole=st.sampled_from([file_of(".jpg"), file_of(".png")]),
    changes=st.lists(st.tuples(st.floats(0.0, 1.0), st.binary(max_size=6)), max_size=4),
    end=st.floats(0.0, 1.0) | st.just(1.0),
    label=st.text(max_size=60) | st.sampled_from(["jpeg", "bgr8; jpeg compressed bgr8", "16UC1; compressedDepth png"]),
)
def test_any_compressed_image(whole: bytes, changes: list[tuple[float, bytes]], end: float, label: str) -> None:
    data = bytearray(whole)
    for place, content in changes:
        at = int(place * len(data))
        data[at : at + len(content)] = content
    taken_or_refused(CompressedImage(format=label, data=array("B", bytes(data[: int(end * len(data))]))))


@REPEATABLE
@given(
    drives=st.lists(
        st.tuples(
            st.integers(-(2**31), 2**31 - 1) | st.integers(0, 3),
            st.integers(0, 2**32 - 1),
            st.lists(NUMBERS, min_size=3, max_size=3),
            st.lists(st.floats(-1.0, 1.0) | st.floats(), min_size=4, max_size=4),
            st.lists(NUMBERS, min_size=4, max_size=4),
            st.sampled_from(["map", "odom", "", "\u00e4"]),
        ),
        max_size=12,
    )
)
def test_any_odometry(drives: list[tuple[int, int, list[float], list[float], list[float], str]]) -> None:
    motion, track = EgoMotion(1.4), OdometryTrack()
    for sec, nanosec, position, rotation, velocity, frame in drives:
        message = Odometry()
        message.header.stamp.sec, message.header.stamp.nanosec, message.header.frame_id = sec, nanosec, frame
        pose, twist = message.pose.pose, message.twist.twist
        pose.position.x, pose.position.y, pose.position.z = position
        pose.orientation.x, pose.orientation.y, pose.orientation.z, pose.orientation.w = rotation
        twist.linear.x, twist.linear.y, twist.linear.z, twist.angular.z = velocity
        try:
            track.add(motion.take(odometry_sample(message)))
        except InputError:
            continue
        try:
            position_m, quaternions = track.poses_at(np.array([sec * NANOSECONDS_PER_SECOND + nanosec], dtype=np.int64))
        except NotReadyError:
            continue
        assert np.all(np.isfinite(position_m))
        assert np.linalg.norm(quaternions, axis=1) == pytest.approx(1.0)


def test_broken_messages_are_taken_or_refused_and_nothing_escapes() -> None:
    result = run_fuzz(3000, seed=7)
    assert (result["escaped"], result["escapes"]) == (0, [])
    assert result["accepted"] + result["rejected"] == 3000
    kinds = {"Image", "CompressedImage", "Odometry"}
    assert set(result["accepted_by_kind"]) == set(result["rejected_by_kind"]) == kinds
    # Some of the drive is whole enough to be planned from.
    assert result["observations"]["complete"] > 0
    assert "3000 messages" in table(result)


def test_the_same_seed_gives_the_same_messages() -> None:
    first, second, other = BrokenMessages(1), BrokenMessages(1), BrokenMessages(2)
    sent = [repr(first.next()) for _ in range(50)]
    assert sent == [repr(second.next()) for _ in range(50)]
    assert sent != [repr(other.next()) for _ in range(50)]


@pytest.mark.parametrize("fault", [ValueError("cannot reshape"), MemoryError(), cv2.error("?"), NotReadyError("?")])
def test_what_escapes_is_counted_and_shown(fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_codec(*_: object) -> None:
        raise fault

    monkeypatch.setattr(images, "from_image", broken_codec)
    result = run_fuzz(100, seed=1)
    assert result["escaped"] > 20
    assert result["accepted"] + result["rejected"] + result["escaped"] == 100
    assert f"Image: {type(fault).__name__}" in table(result)


@pytest.mark.parametrize(("name", "value"), [("step", -8), ("height", -1), ("width", -(2**31)), ("height", 2**40)])
def test_counts_that_only_python_can_hold_are_refused(name: str, value: int) -> None:
    message = ImageMessage(height=1, width=1, encoding="bgr8", step=3, data=array("B", bytes(3)))
    setattr(message, name, value)
    with pytest.raises(InputError):
        camera_frame(message)
