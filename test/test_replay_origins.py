"""Bags by others' tools, with others' names and clocks, are read like rosbag2's; a bag is found once by any way."""

import errno
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from drives import STORE, Drive, Sent, Storage, make, nanoseconds, replay, write_bag
from rosbags.rosbag2 import StoragePlugin

from flatrope_planner.evaluation.replay.bag_source import ros_type
from flatrope_planner.evaluation.replay.bags import bags_at

SHORT, ALL_PLANS = Drive(duration_s=4.0), 6
MAGIC = b"\x89MCAP0\r\n"
Rename = Callable[[str], str]


def record(kind: int, content: bytes) -> bytes:
    return struct.pack("<BQ", kind, len(content)) + content


def text(value: str) -> bytes:
    return struct.pack("<I", len(value)) + value.encode()


def plain_mcap(file: Path, encoding: str, rename: Rename, profile: str = "") -> Path:
    """A drive in the simplest file that the format allows: no chunks, no index, no definitions."""
    content = MAGIC + record(0x01, text(profile) + text("another tool"))
    numbers: dict[str, int] = {}
    for sent in SHORT.sent():
        kind = sent.message.__msgtype__
        if sent.topic not in numbers:
            numbers[sent.topic] = number = len(numbers) + 1
            content += record(0x03, struct.pack("<H", number) + text(rename(kind)) + text("") + text(""))
            channel = struct.pack("<HH", number, number) + text(sent.topic) + text(encoding) + struct.pack("<I", 0)
            content += record(0x04, channel)
        head = struct.pack("<HIQQ", numbers[sent.topic], 0, nanoseconds(sent.log_s), nanoseconds(sent.log_s))
        content += record(0x05, head + bytes(STORE.serialize_cdr(sent.message, kind)))
    content += record(0x0F, bytes(4)) + record(0x02, bytes(20)) + MAGIC
    file.write_bytes(content)
    return file


def in_dds(kind: str) -> str:
    return kind.replace("/msg/", "::msg::dds_::") + "_"


@pytest.mark.parametrize("rename", [str, lambda kind: kind.replace("/msg/", "/"), in_dds], ids=["ros", "short", "dds"])
@pytest.mark.parametrize("profile", ["", "ros2", "ros1"])
def test_an_mcap_without_anything_that_it_need_not_have_is_read(tmp_path: Path, rename: Rename, profile: str) -> None:
    result = replay(plain_mcap(tmp_path / "a.mcap", "cdr", rename, profile), tmp_path / "out")
    assert (result["status"], result["plans"]) == ("complete", ALL_PLANS), result
    assert result["errors"]["1s"]["ade_m"] == pytest.approx(0.55)


@pytest.mark.parametrize("encoding", ["json", "protobuf", "ros1", ""])
def test_other_encodings_are_named(tmp_path: Path, encoding: str) -> None:
    result = replay(plain_mcap(tmp_path / "a.mcap", encoding, str), tmp_path / "out")
    expected = f"there are messages encoded as {encoding or 'nothing'}; only cdr can be read"
    assert result["error"].endswith(expected)
    assert "\n" not in result["error"]


@pytest.mark.parametrize(
    "name", ["nav_msgs/msg/Odometry", "nav_msgs/Odometry", "nav_msgs::msg::dds_::Odometry_", "nav_msgs::msg::Odometry"]
)
def test_names_of_types(name: str) -> None:
    assert ros_type(name) == "nav_msgs/msg/Odometry"
    assert ros_type("foo") == "foo"


@pytest.mark.parametrize(
    "recorded_s",
    [lambda time_s: time_s + 1e9, lambda time_s: 5.0 * time_s + 1e9, lambda time_s: 0.2 * time_s, lambda _: 7.0],
    ids=["simulated", "slowly", "quickly", "at once"],
)
def test_when_it_was_recorded_does_not_matter(tmp_path: Path, recorded_s: Callable[[float], float]) -> None:
    sent = tuple(Sent(recorded_s(each.log_s), each.topic, each.message) for each in Drive().sent())
    for plugin in (StoragePlugin.MCAP, StoragePlugin.SQLITE3):
        bag = write_bag(tmp_path / plugin.name, Drive(odometry_s=(), cameras_s={}, more=sent), Storage(plugin))
        result = replay(bag, tmp_path / "out")
        assert (result["status"], result["plans"], result["drives"]) == ("complete", 18, 1), result
        assert result["duration_s"] == pytest.approx(10.0)
        assert result["errors"]["6s"]["plans"] == 6


def test_what_tells_of_motion_but_is_no_odometry_is_named(tmp_path: Path) -> None:
    def pose(sent: Sent) -> Sent:
        message = make("geometry_msgs/PoseStamped", header=sent.message.header, pose=sent.message.pose.pose)
        return Sent(sent.log_s, "/ndt_pose", message)

    poses = tuple(pose(sent) for sent in SHORT.sent() if "Odometry" in sent.message.__msgtype__)
    result = replay(write_bag(tmp_path / "drive", Drive(duration_s=4.0, odometry_s=(), more=poses)), tmp_path / "out")
    assert "no nav_msgs/msg/Odometry with messages" in result["error"]
    assert result["error"].endswith("/ndt_pose (geometry_msgs/msg/PoseStamped) cannot stand for it")


def test_a_bag_counts_once_by_whatever_way_it_is_reached(tmp_path: Path) -> None:
    drives = tmp_path / "drives"
    bag = drives / "monday"
    bag.mkdir(parents=True)
    (bag / "metadata.yaml").write_text("")
    (drives / "link").symlink_to(bag)
    (drives / "up").symlink_to(tmp_path)
    (drives / "self").symlink_to(drives)
    (drives / "nowhere").symlink_to(tmp_path / "gone")
    assert list(bags_at([drives])) == ["link"]
    assert bags_at([bag, drives / "link", drives, drives / ".." / "drives" / "monday"]) == {"monday": bag}
    assert bags_at([drives / "nowhere"]) == {"nowhere": drives / "nowhere"}
    (drives / "round").symlink_to(drives / "round")
    assert list(bags_at([drives / "round"])) == ["round"]


def test_results_of_an_earlier_replay_are_no_bags(tmp_path: Path) -> None:
    for name in ("drive", "plans"):
        replay(write_bag(tmp_path / name, Drive(duration_s=2.6)), tmp_path / "out" / "replay" / "bags")
    found = bags_at([tmp_path])
    assert list(found.values()) == [tmp_path / "drive", tmp_path / "plans"]


def test_a_file_of_a_bag_is_no_bag_of_its_own(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "drive", Drive(duration_s=2.6))
    for paths in ([bag, bag / "drive.mcap"], [bag / "drive.mcap", bag], [bag / "drive.mcap"]):
        assert len(bags_at(paths)) == 1


def test_a_folder_that_nobody_may_look_into_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bag, look = write_bag(tmp_path / "all" / "drive", Drive(duration_s=2.6)), Path.iterdir
    (tmp_path / "all" / "secret").mkdir()

    def closed(folder: Path) -> Iterator[Path]:
        if folder.name == "secret":
            raise PermissionError(errno.EACCES, "Permission denied")
        return look(folder)

    monkeypatch.setattr(Path, "iterdir", closed)
    found = bags_at([tmp_path / "all"])
    assert list(found.values()) == [bag, tmp_path / "all" / "secret"]
    result = replay(found["secret"], tmp_path / "out")
    assert result["error"] == f"{found['secret']} cannot be read: Permission denied"


def test_a_folder_of_bags_of_ros_1_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "old.bag").write_bytes(b"#ROSBAG V2.0\n")
    assert "rosbags-convert" in replay(tmp_path, tmp_path / "out")["error"]
