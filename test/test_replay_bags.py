"""Bags of every kind are read the same, and bags that are broken say what is missing."""

import json
import re
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drives import (
    CAMERA_TOPICS,
    EPOCH_S,
    ODOMETRY_TOPIC,
    STORE,
    CheapCore,
    Drive,
    Sent,
    Storage,
    ahead,
    image_message,
    jpeg_message,
    make,
    nanoseconds,
    odometry_message,
    replay,
    write_bag,
)
from rosbags.rosbag2 import CompressionMode, StoragePlugin, Writer

from flatrope_planner.evaluation.replay.bag_replay import ReplayOptions
from flatrope_planner.evaluation.replay.bag_source import BagSource
from flatrope_planner.evaluation.replay.bags import bags_at
from flatrope_planner.evaluation.replay.contestants import Contestants
from flatrope_planner.evaluation.replay.topics import TopicWishes

MCAP, SQLITE = StoragePlugin.MCAP, StoragePlugin.SQLITE3
STORAGES = [
    Storage(MCAP),
    Storage(SQLITE),
    Storage(MCAP, CompressionMode.FILE),
    Storage(SQLITE, CompressionMode.FILE),
    Storage(MCAP, CompressionMode.MESSAGE),
    Storage(SQLITE, CompressionMode.MESSAGE),
    Storage(MCAP, CompressionMode.STORAGE),
]


def same(result: dict[str, Any]) -> dict[str, Any]:
    """What must not differ from run to run."""
    return {name: value for name, value in result.items() if name not in ("run", "fingerprint", "name")}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("expected")
    return replay(write_bag(folder / "drive", Drive()), folder / "out")


def test_the_reference_is_as_by_hand(expected: dict[str, Any]) -> None:
    assert (expected["status"], expected["missing"]) == ("complete", [])
    # A history of 1.5 s, then a plan every half second until 10 s.
    assert expected["plans"] == 18
    assert expected["errors"]["1s"]["ade_m"] == pytest.approx(0.55)
    assert expected["errors"]["6s"]["plans"] == 6
    assert expected["errors"]["full"]["fde_m"] == pytest.approx(6.4)
    assert expected["topics"]["odometry"] == ODOMETRY_TOPIC
    assert expected["topics"]["cameras"] == CAMERA_TOPICS
    assert expected["speculation"]["mean_acceptance_length"] == 2.5
    assert expected["speculation"]["accepted_at"] == [1.0]


@pytest.mark.parametrize("storage", STORAGES, ids=lambda each: f"{each.plugin.name}-{each.compression.name}")
def test_every_storage_gives_the_same(tmp_path: Path, expected: dict[str, Any], storage: Storage) -> None:
    result = replay(write_bag(tmp_path / "drive", Drive(), storage), tmp_path / "out")
    assert same(result) == same(expected)


@pytest.mark.parametrize("storage", STORAGES[:4], ids=lambda each: f"{each.plugin.name}-{each.compression.name}")
def test_single_files_give_the_same(tmp_path: Path, expected: dict[str, Any], storage: Storage) -> None:
    bag = write_bag(tmp_path / "drive", Drive(), storage)
    (file,) = [path for path in bag.iterdir() if path.name != "metadata.yaml"]
    result = replay(file, tmp_path / "out")
    assert same(result) == same(expected)


def test_rclpy_and_rosbags_serialize_alike(tmp_path: Path, expected: dict[str, Any]) -> None:
    pytest.importorskip("rclpy")
    bag = tmp_path / "drive"
    writer = Writer(bag, version=9, storage_plugin=SQLITE)
    connections: dict[str, Any] = {}
    with writer:
        for sent in Drive().sent():
            kind = sent.message.__msgtype__
            if sent.topic not in connections:
                connections[sent.topic] = writer.add_connection(sent.topic, kind, typestore=STORE)
            writer.write(connections[sent.topic], nanoseconds(sent.log_s), by_rclpy(sent.message))
    assert same(replay(bag, tmp_path / "out")) == same(expected)


def by_rclpy(message: Any) -> bytes:
    """The message's fields in ROS's own class, serialized by ROS."""
    from nav_msgs.msg import Odometry
    from rclpy.serialization import serialize_message
    from sensor_msgs.msg import Image

    ros: Any = Odometry() if "Odometry" in message.__msgtype__ else Image()
    ros.header.stamp.sec, ros.header.stamp.nanosec = message.header.stamp.sec, message.header.stamp.nanosec
    ros.header.frame_id = message.header.frame_id
    if isinstance(ros, Odometry):
        ros.child_frame_id = message.child_frame_id
        for vector, theirs in (
            (ros.pose.pose.position, message.pose.pose.position),
            (ros.pose.pose.orientation, message.pose.pose.orientation),
            (ros.twist.twist.linear, message.twist.twist.linear),
        ):
            for axis in vector.get_fields_and_field_types():
                setattr(vector, axis, getattr(theirs, axis))
    else:
        ros.height, ros.width, ros.encoding, ros.step = 4, 6, message.encoding, message.step
        ros.data = message.data.tobytes()
    return bytes(serialize_message(ros))


def test_a_bag_of_humble_has_no_definitions(tmp_path: Path, expected: dict[str, Any]) -> None:
    bag = write_bag(tmp_path / "drive", Drive(), Storage(SQLITE))
    with sqlite3.connect(bag / "drive.db3") as database:
        database.execute("UPDATE schema SET schema_version = 3")
        database.execute("DROP TABLE message_definitions")
    assert same(replay(bag, tmp_path / "out")) == same(expected)


def test_a_folder_without_metadata_is_read_and_says_so(tmp_path: Path, expected: dict[str, Any]) -> None:
    bag = write_bag(tmp_path / "drive", Drive())
    (bag / "metadata.yaml").unlink()
    result = replay(bag, tmp_path / "out")
    assert result["status"] == "partial"
    assert result["missing"] == [f"{bag} has no metadata.yaml: what was recorded and never closed may be missing"]
    assert result["errors"] == expected["errors"]


def test_a_bag_that_lost_its_metadata_is_known_under_another_name_too(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "drive", Drive()).rename(tmp_path / "copied")
    (bag / "metadata.yaml").unlink()
    assert bags_at([tmp_path]) == bags_at([bag]) == {"copied": bag}
    # Named itself, it lacks nothing.
    assert bags_at([bag / "drive.mcap"]) == {"drive": bag / "drive.mcap"}


def test_a_missing_part_is_named_and_the_rest_replayed(tmp_path: Path, expected: dict[str, Any]) -> None:
    bag = write_bag(tmp_path / "drive", Drive())
    metadata = (bag / "metadata.yaml").read_text()
    (bag / "metadata.yaml").write_text(metadata.replace("- drive.mcap\n", "- drive.mcap\n  - drive_1.mcap\n", 1))
    result = replay(bag, tmp_path / "out")
    assert result["status"] == "partial"
    assert "drive_1.mcap" in result["missing"][0]
    assert result["errors"] == expected["errors"]


@pytest.mark.parametrize(("share", "name"), [(0.0, "mcap"), (0.02, "mcap"), (0.0, "db3"), (0.02, "db3")])
def test_a_file_without_messages_is_one_line(tmp_path: Path, share: float, name: str) -> None:
    bag = write_bag(tmp_path / "drive", Drive(), Storage(MCAP if name == "mcap" else SQLITE))
    file = bag / f"drive.{name}"
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    for path in (bag, file):
        result = replay(path, tmp_path / "out")
        assert result["status"] == "failed"
        assert str(bag) in result["error"]
        assert "\n" not in result["error"]


@pytest.mark.parametrize("name", ["mcap", "db3"])
def test_a_file_that_breaks_off_is_replayed_as_far_as_it_goes(tmp_path: Path, name: str) -> None:
    drive = Drive(picture=big_image_message)
    bag = write_bag(tmp_path / "drive", drive, Storage(MCAP if name == "mcap" else SQLITE))
    file = bag / f"drive.{name}"
    file.write_bytes(file.read_bytes()[: int(0.6 * file.stat().st_size)])
    result = replay(bag, tmp_path / "out")
    assert result["status"] == "partial", result
    assert 4 < result["plans"] < 15
    assert any("cannot be read beyond" in line or "ends in the middle" in line for line in result["missing"])


def big_image_message(time_s: float, camera: str) -> Any:
    message = image_message(time_s, camera)
    data = np.random.default_rng(round(time_s * 10)).integers(0, 255, 200 * 150 * 3).astype(np.uint8)
    return make(
        "sensor_msgs/Image",
        header=message.header,
        height=150,
        width=200,
        encoding="rgb8",
        is_bigendian=0,
        step=600,
        data=data,
    )


def test_an_mcap_of_another_tool_is_read(tmp_path: Path, expected: dict[str, Any]) -> None:
    bag = write_bag(tmp_path / "drive", Drive())
    file = bag / "drive.mcap"
    # The header's profile is a text that only recorders of ROS fill in.
    file.write_bytes(file.read_bytes().replace(b"\x04\x00\x00\x00ros2", b"\x04\x00\x00\x00rost", 1))
    assert same(replay(file, tmp_path / "out")) == same(expected)


def test_no_such_bag_no_bag_and_a_bag_of_ros_1_are_one_line_each(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("no bag")
    (tmp_path / "old.bag").write_bytes(b"#ROSBAG V2.0\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "yaml").mkdir()
    (tmp_path / "yaml" / "metadata.yaml").write_text("a: [")
    for name, expected_words in {
        "nowhere": "does not exist",
        "text.txt": "is no bag",
        "old.bag": "rosbags-convert",
        "empty": "no metadata.yaml, no .mcap and no .db3",
        "yaml": "does not describe a bag",
    }.items():
        result = replay(tmp_path / name, tmp_path / "out")
        assert result["status"] == "failed"
        assert expected_words in result["error"]
        assert "\n" not in result["error"]


def test_a_bag_without_messages_is_one_line(tmp_path: Path) -> None:
    drive = Drive(odometry_s=(), cameras_s={})
    result = replay(write_bag(tmp_path / "drive", drive), tmp_path / "out")
    assert result["error"].endswith("drive has no messages in it")


def test_no_odometry_and_no_camera_are_named(tmp_path: Path) -> None:
    result = replay(write_bag(tmp_path / "blind", Drive(cameras_s={"front_wide": 0.0})), tmp_path / "out")
    assert "no topic of camera front_tele is to be found" in result["error"]
    assert CAMERA_TOPICS["front_wide"] in result["error"]
    result = replay(write_bag(tmp_path / "lost", Drive(odometry_s=())), tmp_path / "out")
    assert "no nav_msgs/msg/Odometry" in result["error"]


def test_a_camera_that_starts_late_is_waited_for_and_named(tmp_path: Path) -> None:
    drive = Drive(cameras_s={"front_wide": 0.0, "front_tele": 5.0})
    result = replay(write_bag(tmp_path / "drive", drive), tmp_path / "out")
    assert result["status"] == "partial"
    assert result["missing"] == ["no plan from 0.0 s to 5.3 s (waiting for images of camera front_tele)"]
    assert result["plans"] == 10


def test_odometry_that_stops_ends_plans_and_is_named(tmp_path: Path) -> None:
    drive = Drive(odometry_s=[i * 0.05 for i in range(101)])
    result = replay(write_bag(tmp_path / "drive", drive), tmp_path / "out")
    assert result["status"] == "partial"
    assert result["missing"] == [
        "no plan from 5.0 s to 10.0 s (odometry is 0.50 to 5.00 s behind the images; at most 0.25 s are bridged)"
    ]
    assert result["errors"]["4s"]["plans"] == 0
    assert result["errors"]["4s"]["ade_m"] is None
    assert result["errors"]["4s"]["unavailable"] == "the odometry does not cover it"


def test_clock_and_unknown_types_do_not_matter(tmp_path: Path, expected: dict[str, Any]) -> None:
    clock = [
        Sent(i * 0.1, "/clock", make("rosgraph_msgs/Clock", clock=image_message(i * 0.1, "front_wide").header.stamp))
        for i in range(100)
    ]
    bag = write_bag(tmp_path / "drive", Drive(more=tuple(clock)), Storage(SQLITE))
    with sqlite3.connect(bag / "drive.db3") as database:
        database.execute("UPDATE topics SET type = 'vendor_msgs/msg/Secret' WHERE name = '/clock'")
        database.execute(
            "UPDATE message_definitions SET topic_type = 'vendor_msgs/msg/Secret', "
            "encoded_message_definition = 'what is this' WHERE topic_type = 'rosgraph_msgs/msg/Clock'"
        )
    metadata = (bag / "metadata.yaml").read_text()
    (bag / "metadata.yaml").write_text(metadata.replace("rosgraph_msgs/msg/Clock", "vendor_msgs/msg/Secret"))
    assert same(replay(bag, tmp_path / "out")) == same(expected)


def test_damaged_messages_are_counted_and_the_others_used(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "drive", Drive(), Storage(SQLITE))
    with sqlite3.connect(bag / "drive.db3") as database:
        for topic, data in ((CAMERA_TOPICS["front_wide"], b"\x00\x01\x00\x00\x05"), (ODOMETRY_TOPIC, b"")):
            (number,) = database.execute("SELECT id FROM topics WHERE name = ?", (topic,)).fetchone()
            database.execute(
                "UPDATE messages SET data = ? WHERE topic_id = ? AND timestamp = ?", (data, number, nanoseconds(4.0))
            )
    result = replay(bag, tmp_path / "out")
    assert result["rejected"] == {CAMERA_TOPICS["front_wide"]: 1, ODOMETRY_TOPIC: 1}
    assert result["status"] == "partial"
    assert "1 of 101 messages are of no use" in result["missing"][1]
    assert result["plans"] >= 17


def test_a_picture_that_cannot_be_decoded_is_as_if_it_had_never_come(tmp_path: Path) -> None:
    def sometimes_broken(time_s: float, camera: str) -> Any:
        message = jpeg_message(time_s, camera)
        if abs(time_s - 4.0) < 0.01 and camera == "front_wide":
            message.data = np.frombuffer(b"no jpeg", np.uint8)
        return message

    core = CheapCore()
    result = replay(write_bag(tmp_path / "drive", Drive(picture=sometimes_broken)), tmp_path / "out", Contestants(core))
    assert result["rejected"] == {CAMERA_TOPICS["front_wide"]: 1}
    # At 1.0, 1.5 ... 4.0 s, and after that at 3.6, 4.1, 4.6 ... 9.6 s.
    assert result["looked_at"][CAMERA_TOPICS["front_wide"]] == 7 + 13
    (told,) = result["missing"]
    looked_at = "1 of 20 pictures looked at (101 were recorded) cannot be decoded; the first: "
    assert told.startswith(f"{CAMERA_TOPICS['front_wide']}: {looked_at}")
    assert "are neither JPEG nor PNG" in told
    t0_s = [round(observation.t0_ns * 1e-9 - EPOCH_S, 3) for observation in core.seen]
    assert 4.0 not in t0_s
    assert 4.1 in t0_s


def test_stamps_of_zero_are_refused_by_name(tmp_path: Path) -> None:
    def unstamped(time_s: float, camera: str) -> Any:
        message = image_message(time_s, camera)
        message.header.stamp.sec = message.header.stamp.nanosec = 0
        return message

    result = replay(write_bag(tmp_path / "drive", Drive(picture=unstamped)), tmp_path / "out")
    assert result["status"] == "failed"
    assert "without a time stamp" in result["error"]


@pytest.mark.parametrize("before_s", [100.1 + 4.0, 1e6])
def test_stamps_before_time_began_are_refused_by_name(tmp_path: Path, before_s: float) -> None:
    def early(sent: Sent) -> Sent:
        stamp = sent.message.header.stamp
        stamp.sec, stamp.nanosec = divmod(nanoseconds(sent.log_s) - round(before_s * 1e9), 1_000_000_000)
        return sent

    drive = Drive(odometry_s=(), cameras_s={}, more=tuple(early(sent) for sent in Drive().sent()))
    result = replay(write_bag(tmp_path / "drive", drive), tmp_path / "out")
    told = result.get("error") or "; ".join(result["missing"])
    assert f"{ODOMETRY_TOPIC}: a time stamp of -" in told
    # From 1.6 s on, after a history, every half second until 5.9 s.
    assert result.get("plans", 0) == (9 if before_s < 1e6 else 0)


def test_a_recording_that_begins_anew_is_a_second_drive(tmp_path: Path) -> None:
    def again(time_s: float) -> list[Sent]:
        pictures = [
            Sent(11.0 + time_s, topic, image_message(time_s, camera)) for camera, topic in CAMERA_TOPICS.items()
        ]
        return [*pictures, Sent(11.0 + time_s, ODOMETRY_TOPIC, odometry_message(time_s, ahead(6.0)))]

    second = tuple(sent for i in range(51) for sent in again(i * 0.1))
    core = CheapCore()
    bag = write_bag(tmp_path / "drive", Drive(more=second))
    result = replay(bag, tmp_path / "out", Contestants(core))
    rows = [json.loads(line) for line in (tmp_path / "out" / "drive" / "plans.jsonl").read_text().splitlines()]
    assert [row["drive"] for row in rows] == [0] * 18 + [1] * 8
    # Nothing driven in the second drive is taken for the future of a plan of the first.
    assert [row["driven_m"][-1] is None for row in rows[:18]] == [row["t0_s"] + 6.4 > 10.0 + 1e-6 for row in rows[:18]]
    assert core.resets == 2
    assert result["errors"]["1s"]["ade_m"] == pytest.approx(0.55)


@pytest.mark.parametrize("ahead_s", [2, 8, 3600, 100_000_000])
# The very first message, one in the middle, the last but one.
@pytest.mark.parametrize("at_s", [0.0, 4.0, 9.9])
@pytest.mark.parametrize("topic", [ODOMETRY_TOPIC, CAMERA_TOPICS["front_wide"]])
def test_one_stamp_far_ahead_costs_that_message_alone(tmp_path: Path, topic: str, at_s: float, ahead_s: int) -> None:
    sent = Drive().sent()
    (stray,) = [each for each in sent if each.topic == topic and abs(each.log_s - at_s) < 0.01]
    stray.message.header.stamp.sec += ahead_s
    bag = write_bag(tmp_path / "drive", Drive(odometry_s=(), cameras_s={}, more=tuple(sent)))
    result = replay(bag, tmp_path / "out")
    rows = [json.loads(line) for line in (tmp_path / "out" / "drive" / "plans.jsonl").read_text().splitlines()]
    # From 1.5 s on every half second until 10 s. Where it is missed, all that follow are a tenth of a second later.
    is_missed = (topic, at_s) in ((ODOMETRY_TOPIC, 0.0), (CAMERA_TOPICS["front_wide"], 4.0))
    assert len(rows) == (17 if is_missed else 18)
    assert {row["drive"] for row in rows} == {0}
    for row in rows:
        assert row["t0_s"] == pytest.approx(row["t0_ns"] * 1e-9 - EPOCH_S, abs=1e-6)
    assert result["errors"]["1s"]["ade_m"] == pytest.approx(0.55)
    assert result["rejected"] == {topic: 1}
    (missing,) = result["missing"]
    assert re.search(rf"^{topic}: 1 of \d+ messages .*: stamp lies {ahead_s - 1}\.9\d s ahead of one that", missing)


def test_a_leap_ahead_that_goes_on_is_none_of_a_single_stamp(tmp_path: Path) -> None:
    def later(sent: Sent) -> Sent:
        sent.message.header.stamp.sec += 50
        return sent

    drive = Drive(odometry_s=[i * 0.05 for i in range(200)], duration_s=9.9)
    on = tuple(Sent(each.log_s + 10.0, each.topic, later(each).message) for each in drive.sent())
    result = replay(write_bag(tmp_path / "drive", replace(drive, more=on)), tmp_path / "out")
    # Each half as if it were alone.
    assert (result["plans"], result["drives"], result["rejected"]) == (34, 1, {})


def test_what_was_recorded_at_one_time_may_lie_in_any_order(tmp_path: Path, expected: dict[str, Any]) -> None:
    bag = write_bag(tmp_path / "drive", Drive(), Storage(SQLITE))
    with sqlite3.connect(bag / "drive.db3") as database:
        rows = database.execute("SELECT topic_id, timestamp, data FROM messages ORDER BY id DESC").fetchall()
        database.execute("DELETE FROM messages")
        database.executemany("INSERT INTO messages (topic_id, timestamp, data) VALUES (?, ?, ?)", rows)
    assert same(replay(bag, tmp_path / "out")) == same(expected)


def test_every_observation_shows_the_pictures_of_its_time(tmp_path: Path) -> None:
    core = CheapCore()
    replay(write_bag(tmp_path / "drive", Drive()), tmp_path / "out", Contestants(core))
    for observation in core.seen:
        for frames in observation.frames.values():
            for frame in frames:
                assert frame.image[0, 0, 0] == round((frame.stamp_ns * 1e-9 - EPOCH_S) * 10)
            assert frames[-1].stamp_ns == observation.t0_ns


def test_topics_can_be_named(tmp_path: Path) -> None:
    other = [Sent(i * 0.05, "/gps/odom", odometry_message(i * 0.05, ahead(4.0))) for i in range(201)]
    bag = write_bag(tmp_path / "drive", Drive(more=tuple(other)))
    wishes = TopicWishes(
        {"front_tele": CAMERA_TOPICS["front_wide"], "front_wide": CAMERA_TOPICS["front_tele"]}, "/gps/odom"
    )
    result = replay(bag, tmp_path / "out", options=ReplayOptions(0.5, wishes=wishes))
    assert result["topics"]["odometry"] == "/gps/odom"
    assert result["topics"]["cameras"]["front_wide"] == CAMERA_TOPICS["front_tele"]
    assert result["errors"]["1s"]["final_longitudinal_m"] == pytest.approx(1.0)
    missing = replay(bag, tmp_path / "out", options=ReplayOptions(0.5, wishes=TopicWishes(odometry="/nowhere")))
    there = ", ".join(sorted([ODOMETRY_TOPIC, "/gps/odom"]))
    assert missing["error"] == f"{bag}: no nav_msgs/msg/Odometry topic /nowhere with messages; there is: {there}"


def test_parts_of_a_bag_are_one_stream(tmp_path: Path, expected: dict[str, Any]) -> None:
    whole = Drive().sent()
    folder = tmp_path / "drive"
    folder.mkdir()
    for number in (0, 1, 2):
        part = [sent for sent in whole if number * 3.5 <= sent.log_s < (number + 1) * 3.5]
        bag = write_bag(tmp_path / f"part{number}", Drive(odometry_s=(), cameras_s={}, more=tuple(part)))
        shutil.move(bag / f"part{number}.mcap", folder / f"drive_{number}.mcap")
    result = replay(folder, tmp_path / "out")
    assert result["errors"] == expected["errors"]


def test_a_source_streams_in_order(tmp_path: Path) -> None:
    with BagSource(write_bag(tmp_path / "drive", Drive())) as source:
        topics = {topic.name for topic in source.topics}
        times = [moment[0].log_ns for moment in source.moments(topics)]
    assert times == sorted(set(times))
