"""Bags that are sound and odd: sizes, byte orders and calibrations that few have."""

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drives import (
    CAMERA_TOPICS,
    ODOMETRY_TOPIC,
    STORE,
    Drive,
    Sent,
    header,
    image_message,
    make,
    nanoseconds,
    replay,
    write_bag,
)
from mcap_files import Layout, text, write_mcap
from rosbags.rosbag2 import StoragePlugin, Writer

from flatrope_planner.evaluation.replay import bag_source
from flatrope_planner.evaluation.replay.bag_replay import ReplayOptions
from flatrope_planner.evaluation.replay.topics import TopicWishes

# Plans at 1.5, 2.0 ... 4.0 s.
SHORT, ALL_PLANS = Drive(duration_s=4.0), 6
CAMERA = "front_wide"


@pytest.mark.parametrize(("width", "height"), [(4000, 1), (1, 4000), (1, 1), (641, 1)])
def test_pictures_may_have_any_shape(tmp_path: Path, width: int, height: int) -> None:
    def slender(time_s: float, camera: str) -> Any:
        message = image_message(time_s, camera)
        message.width, message.height, message.step = width, height, 3 * width
        message.data = np.zeros(3 * width * height, np.uint8)
        return message

    drive = Drive(duration_s=4.0, picture=slender)
    result = replay(write_bag(tmp_path / "drive", drive), tmp_path / "out")
    assert (result["status"], result["plans"]) == ("complete", ALL_PLANS)


def test_the_order_of_bytes_does_not_matter(tmp_path: Path) -> None:
    bag = tmp_path / "drive"
    connections: dict[str, Any] = {}
    with Writer(bag, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        for sent in SHORT.sent():
            kind = sent.message.__msgtype__
            if sent.topic not in connections:
                connections[sent.topic] = writer.add_connection(sent.topic, kind, typestore=STORE)
            cdr = bytes(STORE.serialize_cdr(sent.message, kind, little_endian=False))
            writer.write(connections[sent.topic], nanoseconds(sent.log_s), cdr)
    expected = replay(write_bag(tmp_path / "little", SHORT), tmp_path / "out")
    result = replay(bag, tmp_path / "out")
    assert (result["status"], result["errors"]) == ("complete", expected["errors"])


def test_a_message_that_is_too_large_costs_that_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_large(time_s: float, camera: str) -> Any:
        message = image_message(time_s, camera)
        if camera == CAMERA and round(time_s, 1) == 0.2:
            message.width, message.height, message.step = 100, 100, 300
            message.data = np.zeros(30_000, np.uint8)
        return message

    monkeypatch.setattr(bag_source, "MOST_MESSAGE_BYTES", 10_000)
    bag = write_bag(tmp_path / "drive", Drive(duration_s=4.0, picture=one_large))
    result = replay(bag, tmp_path / "out")
    assert result["plans"] == ALL_PLANS
    assert result["missing"] == [f"{CAMERA_TOPICS[CAMERA]}: messages of more than 10000 bytes are left out"]
    assert result["messages"][ODOMETRY_TOPIC] == 81


@pytest.mark.parametrize("topic", [ODOMETRY_TOPIC, CAMERA_TOPICS[CAMERA]])
def test_messages_of_another_type_on_the_same_topic_are_left_out(tmp_path: Path, topic: str) -> None:
    # As a file of another tool may have it; rosbags and rosbag2 do not write that.
    said = [Sent(i * 0.5 + 0.01, f"{topic}/said", make("std_msgs/String", data="no")) for i in range(4)]
    file = write_mcap(tmp_path / "drive.mcap", Drive(duration_s=4.0, more=tuple(said)).sent(), Layout(chunk=0))
    content = file.read_bytes().replace(text(f"{topic}/said"), text(topic))
    # Shorter by five bytes: so are the records of the channel, in the data and in the summary.
    long, short = (struct.pack("<Q", 4 + 4 + len(topic) + add + 4 + 3 + 4) for add in (5, 0))
    file.write_bytes(content.replace(b"\x04" + long, b"\x04" + short))
    result = replay(file, tmp_path / "out")
    assert (result["plans"], result["rejected"]) == (ALL_PLANS, {topic: 4})
    assert f"{topic}: a std_msgs/msg/String, expected " in result["missing"][0]


SOUND_K, SOUND_TURN = (5.0, 0.0, 3.0, 0.0, 5.0, 2.0, 0.0, 0.0, 1.0), (0.5, -0.5, 0.5, -0.5)


def calibration(k: tuple[float, ...], turn: tuple[float, ...], parent: str) -> tuple[Sent, Sent]:
    region = make("sensor_msgs/RegionOfInterest", x_offset=0, y_offset=0, height=0, width=0, do_rectify=False)
    lens = {"distortion_model": "plumb_bob", "d": np.zeros(5), "k": np.array(k), "r": np.eye(3).ravel()}
    size = {"height": 4, "width": 6, "binning_x": 0, "binning_y": 0, "p": np.zeros(12), "roi": region}
    info = make("sensor_msgs/CameraInfo", header=header(0.0, CAMERA), **lens, **size)
    rotation = make("geometry_msgs/Quaternion", **dict(zip("xyzw", turn, strict=True)))
    place = make("geometry_msgs/Vector3", x=1.0, y=0.0, z=1.5)
    mount = make(
        "geometry_msgs/TransformStamped",
        header=header(0.0, parent),
        child_frame_id=CAMERA,
        transform=make("geometry_msgs/Transform", translation=place, rotation=rotation),
    )
    transforms = make("tf2_msgs/TFMessage", transforms=[mount])
    return Sent(0.0, f"/sensing/{CAMERA}/camera_info", info), Sent(0.0, "/tf_static", transforms)


@pytest.mark.parametrize(
    ("k", "turn", "parent", "calibrated"),
    [
        (SOUND_K, SOUND_TURN, "base_link", True),
        ((math.nan,) * 9, SOUND_TURN, "base_link", False),
        ((math.inf,) * 9, SOUND_TURN, "base_link", False),
        ((0.0,) * 9, SOUND_TURN, "base_link", False),
        (SOUND_K, (math.nan,) * 4, "base_link", False),
        (SOUND_K, (0.0,) * 4, "base_link", False),
        (SOUND_K, SOUND_TURN, CAMERA, False),
    ],
)
def test_a_calibration_that_nobody_filled_in_is_none(
    tmp_path: Path, k: tuple[float, ...], turn: tuple[float, ...], parent: str, calibrated: bool
) -> None:
    drive = Drive(duration_s=4.0, more=calibration(k, turn, parent))
    result = replay(write_bag(tmp_path / "drive", drive), tmp_path / "out")
    assert (result["status"], result["plans"]) == ("complete", ALL_PLANS)
    moments = json.loads((tmp_path / "out" / "drive" / "moments.json").read_text())
    assert moments
    assert {moment["calibrated"] for moment in moments} == {calibrated}


def test_a_camera_whose_frame_names_another_one_is_warned_of(tmp_path: Path) -> None:
    def swapped(time_s: float, camera: str) -> Any:
        message = image_message(time_s, camera)
        # In the middle of the drive only.
        if camera == "front_wide" and 4.0 < time_s < 6.0:
            message.header.frame_id = "cam_rear_left"
        return message

    result = replay(write_bag(tmp_path / "drive", Drive(picture=swapped)), tmp_path / "out")
    assert (result["status"], result["missing"]) == ("complete", [])
    assert result["warnings"] == ["camera front_wide has the frame_id 'cam_rear_left', which names a rear one"]
    assert replay(write_bag(tmp_path / "right", Drive()), tmp_path / "out")["warnings"] == []


def test_one_camera_under_two_names_is_warned_of(tmp_path: Path) -> None:
    def twins(time_s: float, camera: str) -> Any:
        message = image_message(time_s, camera)
        message.data = np.arange(72, dtype=np.uint8) + round(time_s * 10)
        return message

    result = replay(write_bag(tmp_path / "drive", Drive(picture=twins)), tmp_path / "out")
    assert result["warnings"] == ["cameras front_tele and front_wide show the same pictures"]


def test_a_topic_that_names_another_camera_is_warned_of(tmp_path: Path) -> None:
    wishes = TopicWishes({"front_wide": CAMERA_TOPICS["front_tele"], "front_tele": CAMERA_TOPICS["front_wide"]})
    bag = write_bag(tmp_path / "drive", Drive())
    warnings = replay(bag, tmp_path / "out", options=ReplayOptions(0.5, wishes=wishes))["warnings"]
    topic = CAMERA_TOPICS["front_tele"]
    assert f"camera front_wide comes in on '{topic}', which names a tele one" in warnings
