"""Which files of messages are one bag, and which are bags of their own: by their names, whatever else lies there."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from drives import CAMERA_TOPICS, Drive, Sent, image_message, replay, write_bag

from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.replay.bag_source import BagSource
from flatrope_planner.evaluation.replay.bags import bags_at, the_bag_at
from flatrope_planner.evaluation.replay.storage_files import files_of
from flatrope_planner.evaluation.report.recording import read_recording

SHORT = Drive(duration_s=4.0)


def lay(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"")
    return folder


def named(folder: Path) -> dict[str, list[str]]:
    """Bag -> its files."""
    return {name: [file.name for file in files_of(bag)] for name, bag in bags_at([folder]).items()}


ONE_EACH = [
    # People's names, dates among them, and numbers that begin with none of rosbag2's.
    ("mon.mcap", "tue.mcap"),
    ("2024_05_01.mcap", "2024_05_02.mcap"),
    ("run_1.db3", "run_2.db3"),
    # The only files of rosbag2 bags that are called by the time they were recorded.
    ("rosbag2_2024_05_01-10_00_00_0.mcap", "rosbag2_2024_05_02-10_00_00_0.mcap.zstd"),
    ("a_0.mcap", "a_0.db3"),
]


@pytest.mark.parametrize("beside", ["", "text", "bag"])
@pytest.mark.parametrize("files", ONE_EACH)
def test_files_without_metadata_are_bags_of_their_own(tmp_path: Path, files: tuple[str, ...], beside: str) -> None:
    drives = lay(tmp_path / "drives", *files, ".hidden.mcap")
    if beside:
        (drives / "more").mkdir()
        (drives / "more" / ("metadata.yaml" if beside == "bag" else "notes.txt")).write_text("")
    found = {name: bag for name, bag in bags_at([drives]).items() if name != "more"}
    assert sorted(found.values()) == sorted(drives / name for name in files)


def test_numbered_files_of_one_name_are_one_bag(tmp_path: Path) -> None:
    parts = [f"mon_{number}.mcap" for number in range(11)]
    drives = lay(tmp_path / "drives", *parts)
    assert named(drives) == {"drives": parts}
    # Whatever lies beside them.
    lay(drives, "tue_0.mcap.zstd", "tue_1.mcap", "wed_1.mcap", "wed_2.mcap", "mon.mcap", "mon_0.mcap.zstd")
    assert named(drives) == {
        "mon": ["mon.mcap"],
        "mon-2": parts,
        "tue": ["tue_0.mcap.zstd", "tue_1.mcap"],
        "wed_1": ["wed_1.mcap"],
        "wed_2": ["wed_2.mcap"],
    }
    assert bags_at([drives / "mon_*.mcap"]) == {"mon": drives / "mon_*.mcap"}
    # A bag that has lost its first file, too, is known by its folder.
    assert named(lay(tmp_path / "night", "night_3.db3", "night_4.db3")) == {"night": ["night_3.db3", "night_4.db3"]}


def test_a_part_of_a_bag_counts_with_it(tmp_path: Path) -> None:
    drives = lay(tmp_path / "drives", "mon_0.mcap", "mon_1.mcap")
    assert bags_at([drives, drives / "mon_1.mcap"]) == bags_at([drives / "mon_1.mcap", drives]) == {"drives": drives}
    lay(drives, "tue.mcap")
    assert list(bags_at([drives / "mon_1.mcap", drives])) == ["mon", "tue"]
    # Named one by one they are bags one by one.
    assert list(bags_at([drives / "mon_0.mcap", drives / "mon_1.mcap"])) == ["mon_0", "mon_1"]
    told = lay(tmp_path / "told", "metadata.yaml", "told_0.mcap")
    assert bags_at([told / "told_0.mcap", told]) == {"told": told}


def test_where_one_bag_is_wanted_several_are_named(tmp_path: Path) -> None:
    drives = lay(tmp_path / "drives", "mon_0.mcap", "mon_1.mcap", "tue.mcap")
    words = f"{drives} holds 2 bags; name one of them: {drives / 'mon_*.mcap'}, {drives / 'tue.mcap'}"
    for look in (the_bag_at, lambda path: BagSource(path).__enter__(), read_recording):
        with pytest.raises(InputError) as caught:
            look(drives)
        assert str(caught.value) == words
    assert the_bag_at(drives / "tue.mcap") == drives / "tue.mcap"
    many = lay(tmp_path / "many", *(f"{letter}.mcap" for letter in "abcdefghijk"))
    with pytest.raises(InputError, match=r"holds 11 bags; .*h\.mcap, and 3 more$"):
        the_bag_at(many)
    (tmp_path / "up").mkdir()
    bag = write_bag(tmp_path / "up" / "drive", SHORT)
    assert the_bag_at(tmp_path / "up") == bag
    assert len(read_recording(tmp_path / "up").odometry) == 81


def parts_of_a_drive(folder: Path, numbers: tuple[int, ...]) -> Path:
    """Parts of 3.5 s each, of a drive of 10 s, without metadata."""
    folder.mkdir(parents=True)
    for number in numbers:
        part = tuple(sent for sent in Drive().sent() if number * 3.5 <= sent.log_s < (number + 1) * 3.5)
        bag = write_bag(folder.parent / f"part{number}", Drive(odometry_s=(), cameras_s={}, more=part))
        shutil.move(bag / f"part{number}.mcap", folder / f"mon_{number}.mcap")
    return folder


def test_parts_that_lie_beside_other_bags_are_replayed_as_one_stream(tmp_path: Path) -> None:
    drives = parts_of_a_drive(tmp_path / "drives", (0, 1, 2))
    shutil.copy(drives / "mon_0.mcap", drives / "tue.mcap")
    bag = bags_at([drives])["mon"]
    result = replay(bag, tmp_path / "out")
    assert result["plans"] == 18
    assert result["missing"] == [
        f"{bag} has no metadata.yaml: what was recorded and never closed may be missing",
        f"{bag}: by their names alone these are one bag: mon_0.mcap, mon_1.mcap, mon_2.mcap",
    ]
    assert len(read_recording(bag).odometry) == 201


def test_a_number_that_is_left_out_is_a_part_that_is_missing(tmp_path: Path) -> None:
    result = replay(parts_of_a_drive(tmp_path / "mon", (0, 2)), tmp_path / "out")
    assert f"of the files of {tmp_path / 'mon'} there is no mon_1" in result["missing"]


def test_parts_that_were_recorded_at_the_same_time_are_told_of(tmp_path: Path) -> None:
    drives = parts_of_a_drive(tmp_path / "drives", (0, 1))
    other = Sent(3.6, CAMERA_TOPICS["front_wide"], image_message(3.6, "front_wide"))
    bag = write_bag(tmp_path / "other", Drive(duration_s=2.0, more=(other,)))
    shutil.move(bag / "other.mcap", drives / "mon_2.mcap")
    result = replay(drives, tmp_path / "out")
    told = [line for line in result["missing"] if " was recorded while " in line]
    assert len(told) == 1
    # 0.0 to 3.45 s, 0.0 to 3.6 s, 3.5 to 6.95 s.
    assert told[0].startswith(f"{drives / 'mon_2.mcap'} was recorded while {drives / 'mon_0.mcap'} was, for 3.")
    assert told[0].endswith(" s: if they are bags of their own, name each")


@pytest.mark.parametrize(
    ("later_s", "number", "words"),
    [(14.0, 1, "14.0 s after {} had ended"), (8.0, 1, ""), (3.5, 0, "after {}, against their numbers")],
)
def test_recordings_apart_in_time_are_told_of(tmp_path: Path, later_s: float, number: int, words: str) -> None:
    drives = tmp_path / "drives"
    drives.mkdir()
    for begins_s, name in ((0.0, f"drive_{1 - number}"), (2.0 + later_s, f"drive_{number}")):
        sent = tuple(replace(each, log_s=begins_s + each.log_s) for each in Drive(duration_s=2.0).sent())
        bag = write_bag(tmp_path / name, Drive(odometry_s=(), cameras_s={}, more=sent))
        shutil.move(bag / f"{name}.mcap", drives / f"{name}.mcap")
    told = [line for line in replay(drives, tmp_path / "out")["missing"] if line.endswith("name each")]
    parts = drives / f"drive_{number}.mcap", drives / f"drive_{1 - number}.mcap"
    how = words.format(parts[1])
    assert told == ([f"{parts[0]} was recorded {how}: if they are bags of their own, name each"] if words else [])
