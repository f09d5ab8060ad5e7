"""What is broken in a bag is said in a line, and what is whole of it is replayed."""

import errno
import re
import shutil
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from drives import (
    CAMERA_TOPICS,
    ODOMETRY_TOPIC,
    Drive,
    Sent,
    Storage,
    ahead,
    image_message,
    odometry_message,
    replay,
    write_bag,
)
from rosbags.rosbag2 import CompressionMode, StoragePlugin

from flatrope_planner.cli import main
from flatrope_planner.errors import SetupError
from flatrope_planner.evaluation.replay.bag_replay import ReplayOptions
from flatrope_planner.evaluation.replay.plan_bag import PlanBag
from flatrope_planner.evaluation.report.recording import read_recording

MCAP, SQLITE = StoragePlugin.MCAP, StoragePlugin.SQLITE3
# Plans at 1.5, 2.0 ... 4.0 s.
SHORT, ALL_PLANS = Drive(duration_s=4.0), 6


# A publisher that the files know nothing of.
OTHER_QOS = (
    "{history: keep_last, depth: 7, reliability: reliable, durability: volatile, deadline: {sec: 0, nsec: 0}, "
    "lifespan: {sec: 0, nsec: 0}, liveliness: automatic, liveliness_lease_duration: {sec: 0, nsec: 0}, "
    "avoid_ros_namespace_conventions: false}"
)


def storage_file(bag: Path) -> Path:
    (file,) = [path for path in bag.iterdir() if path.name != "metadata.yaml"]
    return file


def cut(file: Path, share: float) -> None:
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"message_count: \d+", "message_count: 0"),
        (r"nav_msgs/msg/Odometry", "nav_msgs/msg/Path"),
        (r"(type: sensor_msgs/msg/Image)", r"\1\n        type_description_hash_: x"),
        (r"storage_identifier: mcap", "storage_identifier: sqlite3"),
    ],
)
def test_metadata_that_lies_does_not_count(tmp_path: Path, old: str, new: str) -> None:
    metadata = write_bag(tmp_path / "drive", SHORT) / "metadata.yaml"
    metadata.write_text(re.sub(old, new, metadata.read_text()))
    assert replay(metadata.parent, tmp_path / "out")["plans"] == ALL_PLANS


@pytest.mark.parametrize("plugin", [MCAP, SQLITE])
def test_how_topics_were_offered_does_not_matter(tmp_path: Path, plugin: StoragePlugin) -> None:
    # As in bags of rosbag2 itself, whose metadata and files write the same in different numbers.
    metadata = write_bag(tmp_path / "drive", SHORT, Storage(plugin)) / "metadata.yaml"
    offered = metadata.read_text().replace("offered_qos_profiles: []", f"offered_qos_profiles: [{OTHER_QOS}]")
    metadata.write_text(offered)
    assert OTHER_QOS in offered
    result = replay(metadata.parent, tmp_path / "out")
    assert (result["status"], result["plans"]) == ("complete", ALL_PLANS)
    # The report of a drive reads the same bags.
    assert len(read_recording(metadata.parent).odometry) == 81


def test_counts_that_lie_are_told_of(tmp_path: Path) -> None:
    metadata = write_bag(tmp_path / "drive", SHORT) / "metadata.yaml"
    metadata.write_text(metadata.read_text().replace("message_count: 41", "message_count: 40"))
    result = replay(metadata.parent, tmp_path / "out")
    assert result["status"] == "partial"
    assert result["missing"] == [f"{metadata} tells of other topics, or of more or fewer messages, than its files hold"]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"- 1\n", b"null\n", b"a: &a [*a]\n"])
def test_metadata_that_is_none_is_told_of(tmp_path: Path, content: bytes) -> None:
    bag = write_bag(tmp_path / "drive", SHORT)
    (bag / "metadata.yaml").write_bytes(content)
    result = replay(bag, tmp_path / "out")
    assert (result["status"], result["plans"], len(result["missing"])) == ("partial", ALL_PLANS, 1)
    assert result["missing"][0].startswith(f"{bag / 'metadata.yaml'} does not describe a bag: ")


@pytest.mark.parametrize("mode", [CompressionMode.NONE, CompressionMode.STORAGE, CompressionMode.FILE])
def test_what_a_broken_chunk_still_holds_is_rescued(tmp_path: Path, mode: CompressionMode) -> None:
    # The whole drive is one chunk.
    bag = write_bag(tmp_path / "drive", Drive(), Storage(MCAP, mode))
    file = storage_file(bag)
    whole = file.stat().st_size
    cut(file, 0.9 if mode is CompressionMode.FILE else 0.3)
    for path in (bag, file):
        result = replay(path, tmp_path / "out")
        assert result["status"] == "partial"
        assert 2 <= result["plans"] < 18
        told = "".join(result["missing"])
        assert re.search(rf"{re.escape(str(file))} is damaged or ends in the middle: \d+ messages", told)
        assert "flatrope-replay-" not in told
    assert file.stat().st_size < whole


def test_an_mcap_without_its_last_byte_is_told_of(tmp_path: Path) -> None:
    file = storage_file(write_bag(tmp_path / "drive", SHORT))
    file.write_bytes(file.read_bytes()[:-1])
    result = replay(file, tmp_path / "out")
    assert (result["status"], result["plans"]) == ("partial", ALL_PLANS)
    assert result["missing"] == [f"{file} is damaged or ends in the middle: 163 messages could be rescued"]


@pytest.mark.parametrize("length", [2**40, 2**63 - 1, 2**64 - 1])
@pytest.mark.parametrize("kind", [0x05, 0x06])
def test_lengths_that_lie_ask_for_no_memory(tmp_path: Path, length: int, kind: int) -> None:
    file = tmp_path / "long.mcap"
    file.write_bytes(b"\x89MCAP0\r\n" + struct.pack("<BQ", kind, length) + bytes(60))
    result = replay(file, tmp_path / "out")
    assert result["error"].startswith(f"{file} cannot be read")
    assert result["error"].endswith("no message could be rescued")


def test_rows_that_hold_nothing_are_left_out(tmp_path: Path) -> None:
    file = storage_file(write_bag(tmp_path / "drive", Drive(), Storage(SQLITE)))
    with sqlite3.connect(file) as database:
        database.execute("UPDATE messages SET timestamp = 'soon' WHERE id = 7")
        database.execute("UPDATE messages SET data = 'text' WHERE id = 8")
    cut(file, 0.8)
    result = replay(file, tmp_path / "out")
    assert result["status"] == "partial"
    assert result["plans"] > 5


def test_what_a_killed_recorder_has_only_logged_is_read(tmp_path: Path) -> None:
    file = storage_file(write_bag(tmp_path / "drive", Drive(), Storage(SQLITE)))
    # Kept open, the log is not moved into the file.
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TEMP TABLE late AS SELECT * FROM messages WHERE timestamp > 104000000000")
        database.execute("DELETE FROM messages WHERE timestamp > 104000000000")
        database.commit()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("INSERT INTO messages SELECT * FROM late")
        database.commit()
        killed = tmp_path / "killed"
        killed.mkdir()
        for suffix in ("", "-wal"):
            shutil.copy(f"{file}{suffix}", killed / f"killed.db3{suffix}")
    result = replay(killed, tmp_path / "out")
    assert (result["status"], result["plans"]) == ("partial", 18)
    assert any("403 messages could be rescued" in line for line in result["missing"])


def test_one_packed_message_that_is_damaged_costs_that_message(tmp_path: Path) -> None:
    file = storage_file(write_bag(tmp_path / "drive", SHORT, Storage(SQLITE, CompressionMode.MESSAGE)))
    with sqlite3.connect(file) as database:
        database.execute("UPDATE messages SET data = X'28b52ffd0000' WHERE id = 9")
    result = replay(file, tmp_path / "out")
    assert sum(result["rejected"].values()) == 1
    assert result["plans"] >= ALL_PLANS - 1


def test_a_part_in_the_middle_that_is_empty_costs_that_part(tmp_path: Path) -> None:
    whole, folder = Drive().sent(), tmp_path / "drive"
    folder.mkdir()
    for number in range(3):
        part = tuple(sent for sent in whole if number * 3.5 <= sent.log_s < (number + 1) * 3.5)
        bag = write_bag(tmp_path / f"part{number}", Drive(odometry_s=(), cameras_s={}, more=part))
        storage_file(bag).rename(folder / f"drive_{number}.mcap")
    (folder / "drive_1.mcap").write_bytes(b"")
    result = replay(folder, tmp_path / "out")
    # 1.5 ... 3.0 s, and after a history 8.5 ... 10.0 s; that there is no metadata is the other line.
    assert result["plans"] == 4 + 4
    assert [line for line in result["missing"] if "drive_1.mcap" in line]
    assert not [line for line in result["missing"] if line.startswith("no plan")]


def test_poses_in_other_frames_are_no_future_of_a_plan(tmp_path: Path) -> None:
    def pose(step: int) -> Sent:
        message = odometry_message(step * 0.05, ahead(6.0))
        if step >= 100:
            # Less than a jump: only the frame's name tells.
            message.header.frame_id, message.pose.pose.position.x = "odom", message.pose.pose.position.x + 0.9
        return Sent(step * 0.05, ODOMETRY_TOPIC, message)

    bag = write_bag(tmp_path / "drive", Drive(odometry_s=(), more=tuple(pose(step) for step in range(201))))
    errors = replay(bag, tmp_path / "out")["errors"]["1s"]
    # 1.5 ... 3.5 s in the first frame, 6.5 ... 9.0 s in the second.
    assert errors["plans"] == 5 + 6
    assert (errors["ade_m"], errors["ade_p95_m"]) == pytest.approx((0.55, 0.55))


def test_what_the_planner_waited_for_is_said_with_numbers(tmp_path: Path) -> None:
    def other_clock(time_s: float, camera: str) -> Any:
        message = image_message(time_s, camera)
        message.header.stamp.sec += 1_000_000
        return message

    result = replay(write_bag(tmp_path / "drive", Drive(picture=other_clock)), tmp_path / "out")
    assert "no plan could be made: odometry is 999999.40 to 1000000.00 s behind the images" in result["error"]
    result = replay(write_bag(tmp_path / "short", Drive(duration_s=1.0)), tmp_path / "out")
    assert result["error"].endswith("the drive lasts 1.0 s, and a history of 1.5 s is needed")


def test_a_camera_that_stops_is_named(tmp_path: Path) -> None:
    seen = tuple(Sent(i * 0.1, CAMERA_TOPICS["front_tele"], image_message(i * 0.1, "front_tele")) for i in range(41))
    result = replay(write_bag(tmp_path / "drive", Drive(cameras_s={"front_wide": 0.0}, more=seen)), tmp_path / "out")
    assert result["missing"] == [f"no plan from 4.0 s to 10.0 s (nothing on {CAMERA_TOPICS['front_tele']})"]


def test_a_full_disk_ends_everything_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    bag = write_bag(tmp_path / "drive", SHORT)
    monkeypatch.setattr(PlanBag, "write", full)
    with pytest.raises(SetupError, match=r"out/drive cannot be written: No space left on device"):
        replay(bag, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
    monkeypatch.setattr("flatrope_planner.evaluation.replay.command.write_page", full)
    monkeypatch.setattr("flatrope_planner.evaluation.replay.command.replay_all", lambda *_: iter(()))
    monkeypatch.setattr("flatrope_planner.evaluation.replay.command.finished_result", lambda _: failure())
    assert main(["replay", str(bag), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.splitlines()[-1] == f"flatrope: {tmp_path / 'out'} cannot be written: No space left on device"
    assert "Traceback" not in said


def failure() -> dict[str, Any]:
    return {"name": "drive", "status": "failed", "error": "x", "run": {}}


def test_pictures_without_a_stamp_and_pictures_that_are_none_are_counted_apart(tmp_path: Path) -> None:
    def broken(time_s: float, camera: str) -> Any:
        message = image_message(time_s, camera)
        if camera == "front_wide" and 2.05 < time_s < 4.05:
            message.header.stamp.sec = message.header.stamp.nanosec = 0
        if camera == "front_wide" and time_s > 6.05:
            message.encoding = "rgb9"
        return message

    topic = CAMERA_TOPICS["front_wide"]
    result = replay(write_bag(tmp_path / "drive", Drive(picture=broken)), tmp_path / "out")
    stamps, pictures = result["missing"][:2]
    assert stamps == f"{topic}: 20 of 101 messages are of no use; the first: {topic}: a message without a time stamp"
    found = re.match(rf"{topic}: (\d+) of (\d+) pictures looked at \(101 were recorded\) cannot be decoded; ", pictures)
    assert found
    assert int(found[1]) + 20 == result["rejected"][topic]
    assert int(found[1]) < int(found[2]) == result["looked_at"][topic] < 101 - 20


def cut_drive(duration_s: float, **spans_s: tuple[float, float]) -> Drive:
    """A drive of which cameras and odometry have seen only so much."""
    whole = Drive(duration_s=duration_s).sent()
    names = {ODOMETRY_TOPIC: "odometry", **{topic: camera for camera, topic in CAMERA_TOPICS.items()}}

    def is_there(sent: Sent) -> bool:
        since_s, until_s = spans_s.get(names[sent.topic], (0.0, duration_s))
        return since_s - 1e-6 <= sent.log_s <= until_s + 1e-6

    return Drive(odometry_s=(), cameras_s={}, more=tuple(sent for sent in whole if is_there(sent)))


@pytest.mark.parametrize("what", ["front_wide", "front_tele", "odometry"])
@pytest.mark.parametrize(("interval_s", "until_s"), [(1.0, 5.0), (0.5, 7.0), (2.0, 4.4)])
def test_an_input_that_ends_before_the_others_is_told_of(
    tmp_path: Path, what: str, interval_s: float, until_s: float
) -> None:
    bag = write_bag(tmp_path / "drive", cut_drive(8.0, **{what: (0.0, until_s)}))
    result = replay(bag, tmp_path / "out", options=ReplayOptions(interval_s))
    # At 1.5 s, and from there on at every interval.
    assert result["plans"] == 1 + int((until_s - 1.5) / interval_s)
    last_s = 1.5 + interval_s * (result["plans"] - 1)
    assert result["status"] == "partial"
    assert result["missing"][0].startswith(f"no plan from {last_s:.1f} s to 8.0 s (")
    named = {"odometry": "odometry is"}.get(what, f"nothing on {CAMERA_TOPICS.get(what)}")
    assert named in result["missing"][0]


@pytest.mark.parametrize(("what", "since_s"), [("front_tele", 2.5), ("odometry", 1.5)])
def test_an_input_that_begins_after_the_others_is_told_of(tmp_path: Path, what: str, since_s: float) -> None:
    bag = write_bag(tmp_path / "drive", cut_drive(8.0, **{what: (since_s, 8.0)}))
    (told,) = replay(bag, tmp_path / "out", options=ReplayOptions(0.5))["missing"]
    # Of cameras a second picture 0.5 s after the first one is wanted, if only nearly; of poses a history of 1.5 s.
    begins_s = since_s + (0.3 if what == "front_tele" else 1.5)
    assert told.startswith(f"no plan from 0.0 s to {begins_s:.1f} s (")
    assert what.removesuffix("_tele") in told


def test_inputs_that_end_nearly_together_are_complete(tmp_path: Path) -> None:
    bag = write_bag(
        tmp_path / "drive", cut_drive(8.0, front_wide=(0.2, 7.8), front_tele=(0.4, 8.0), odometry=(0.0, 7.7))
    )
    assert replay(bag, tmp_path / "out", options=ReplayOptions(0.5))["missing"] == []


def test_cameras_that_are_slow_are_no_hole(tmp_path: Path) -> None:
    slow = tuple(sent for sent in Drive().sent() if sent.topic == ODOMETRY_TOPIC or round(sent.log_s * 10) % 5 == 0)
    bag = write_bag(tmp_path / "drive", Drive(odometry_s=(), cameras_s={}, more=slow))
    result = replay(bag, tmp_path / "out", options=ReplayOptions(0.6))
    # At 1.5, 2.5 ... 9.5 s.
    assert (result["plans"], result["missing"]) == (9, [])
