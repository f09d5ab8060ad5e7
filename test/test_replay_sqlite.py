"""Files of .db3 are read as far as SQLite's pages go, whoever holds them, and metadata.yaml is not believed blindly."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from drives import ODOMETRY_TOPIC, Drive, Storage, replay, write_bag
from rosbags.rosbag2 import CompressionMode, StoragePlugin

SQLITE = StoragePlugin.SQLITE3
# Plans at 1.5, 2.0 ... 6.0 s of 243 messages.
DRIVE, ALL_PLANS, ALL_MESSAGES = Drive(duration_s=6.0), 10, 243
PAGE_BYTES = 4096


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    return write_bag(tmp_path / "drive", DRIVE, Storage(SQLITE))


def messages(result: dict[str, Any]) -> int:
    return sum(result["messages"].values())


def changed(bag: Path, *statements: str) -> Path:
    file = bag / f"{bag.name}.db3"
    with closing(sqlite3.connect(file)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()
    return file


def test_a_damaged_page_in_the_middle_costs_its_rows(bag: Path, tmp_path: Path) -> None:
    file = changed(bag)
    content = bytearray(file.read_bytes())
    # A page of rows, by its first byte: a leaf of a table.
    leaves = [at for at in range(0, len(content), PAGE_BYTES) if content[at] == 0x0D]
    place = leaves[len(leaves) // 2]
    content[place : place + PAGE_BYTES] = b"\xa5" * PAGE_BYTES
    file.write_bytes(content)
    for path in (bag, file):
        result = replay(path, tmp_path / "out")
        assert ALL_MESSAGES - 30 < messages(result) < ALL_MESSAGES
        assert result["missing"][0].startswith(f"{file} is damaged or ends in the middle: ")
        assert result["plans"] >= 5


def test_rows_may_lie_in_any_order_and_without_an_index(bag: Path, tmp_path: Path) -> None:
    expected = replay(bag, tmp_path / "expected")
    changed(
        bag,
        "DROP INDEX timestamp_idx",
        "CREATE TABLE old AS SELECT * FROM messages ORDER BY topic_id DESC, timestamp DESC",
        "DELETE FROM messages",
        "INSERT INTO messages (topic_id, timestamp, data) SELECT topic_id, timestamp, data FROM old",
    )
    result = replay(bag, tmp_path / "out")
    assert (result["status"], result["errors"]) == ("complete", expected["errors"])


def test_a_file_that_another_process_has_locked_is_read(bag: Path, tmp_path: Path) -> None:
    file = changed(bag)
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        result = replay(bag, tmp_path / "out")
    assert (result["status"], result["plans"]) == ("complete", ALL_PLANS)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE topics SET offered_qos_profiles = ': what ['",
        "UPDATE topics SET offered_qos_profiles = '- {depth: 1}'",
        "UPDATE message_definitions SET encoding = 'of ours'",
        "UPDATE message_definitions SET encoded_message_definition = X'ff00'",
        "DROP TABLE metadata",
        "DROP TABLE schema",
        "ALTER TABLE topics DROP COLUMN type_description_hash",
    ],
)
def test_what_is_said_about_topics_may_be_odd(bag: Path, tmp_path: Path, statement: str) -> None:
    changed(bag, statement)
    result = replay(bag, tmp_path / "out")
    assert (result["status"], result["plans"]) == ("complete", ALL_PLANS)


def test_rows_without_a_time_or_a_message_are_counted(bag: Path, tmp_path: Path) -> None:
    file = changed(
        bag, "UPDATE messages SET timestamp = 'soon' WHERE id = 7", "UPDATE messages SET data = 'text' WHERE id = 8"
    )
    result = replay(file, tmp_path / "out")
    assert result["missing"] == [f"{file}: 1 messages without a {name}" for name in ("time", "content")]
    assert messages(result) == ALL_MESSAGES - 2


def test_tables_that_are_missing_are_one_line(bag: Path, tmp_path: Path) -> None:
    file = changed(bag, "DROP TABLE messages")
    result = replay(file, tmp_path / "out")
    assert result["error"] == f"{file} cannot be read: no such table: messages; no message could be rescued"


def test_a_file_that_metadata_names_twice_is_read_once(bag: Path, tmp_path: Path) -> None:
    metadata = bag / "metadata.yaml"
    said = metadata.read_text()
    metadata.write_text(said.replace("  - drive.db3\n", "  - drive.db3\n  - other/drive.db3\n", 1))
    assert metadata.read_text() != said
    result = replay(bag, tmp_path / "out")
    assert (result["status"], messages(result)) == ("complete", ALL_MESSAGES)


def test_a_file_elsewhere_is_no_part_of_a_bag(bag: Path, tmp_path: Path) -> None:
    shutil.move(bag / "drive.db3", tmp_path / "drive.db3")
    metadata = bag / "metadata.yaml"
    metadata.write_text(metadata.read_text().replace("- drive.db3", "- ../drive.db3"))
    result = replay(bag, tmp_path / "out")
    assert result["error"] == f"{metadata} names drive.db3, which is not there"


def test_a_file_beside_its_packed_self_is_read_once(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "drive", DRIVE, Storage(SQLITE, CompressionMode.FILE))
    plain = write_bag(tmp_path / "plain", DRIVE, Storage(SQLITE))
    (packed,) = [path for path in bag.iterdir() if path.name != "metadata.yaml"]
    shutil.copy(plain / "plain.db3", packed.with_suffix(""))
    (bag / "metadata.yaml").unlink()
    result = replay(bag, tmp_path / "out")
    assert messages(result) == ALL_MESSAGES
    assert len(result["missing"]) == 1


@pytest.mark.parametrize("mode", [CompressionMode.NONE, CompressionMode.FILE])
def test_names_do_not_decide_what_a_file_is(tmp_path: Path, mode: CompressionMode) -> None:
    bag = write_bag(tmp_path / "drive", DRIVE, Storage(SQLITE, mode))
    (file,) = [path for path in bag.iterdir() if path.name != "metadata.yaml"]
    other = file.rename(tmp_path / "other.mcap")
    result = replay(other, tmp_path / "out")
    assert (result["status"], messages(result)) == ("complete", ALL_MESSAGES)
    assert result["topics"]["odometry"] == ODOMETRY_TOPIC
