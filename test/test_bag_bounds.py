"""Bags that anyone may have made: what unpacks without end, or has none, is one line."""

import gzip
import resource
import struct
from pathlib import Path

import cv2
import numpy as np
import pytest
from test_damaged_files import only_line
from test_report import DEFINITIONS, SECOND_NS, Messages, bag

from flatrope_planner.errors import InputError
from flatrope_planner.evaluation import clip_texts
from flatrope_planner.evaluation.bag_writer import BagWriter, typestore_with
from flatrope_planner.evaluation.clip_texts import read_clips
from flatrope_planner.evaluation.replay import bag_source
from flatrope_planner.evaluation.report import pictures, recording
from flatrope_planner.evaluation.report.bounds import MOST_FILE_BYTES, bounded
from flatrope_planner.evaluation.report.recording import read_recording
from flatrope_planner.vla import memory_limits

__all__ = ["bag"]

MAGIC = b"\x89MCAP0\r\n"
MEGABYTE = 2**20


def record(opcode: int, content: bytes, length: int | None = None) -> bytes:
    """A record of an mcap file, perhaps with a length that lies."""
    return bytes([opcode]) + struct.pack("<Q", len(content) if length is None else length) + content


def text(value: str) -> bytes:
    return struct.pack("<I", len(value)) + value.encode()


def bomb(file: Path, kind: str, packed: bytes, size: int) -> Path:
    """An mcap file whose only chunk unpacks to more than it should."""
    opening = MAGIC + record(0x01, text("ros2") + text(""))
    chunk = record(0x06, struct.pack("<QQQI", 0, 1, size, 0) + text(kind) + struct.pack("<Q", len(packed)) + packed)
    # One message of the only channel, said to lie in the chunk.
    entries = record(0x07, struct.pack("<HIQQ", 1, 16, 0, 0))
    begin, end = len(opening), len(opening) + len(chunk)
    index = struct.pack("<QQQQ", 0, 1, begin, len(chunk)) + struct.pack("<IHQ", 10, 1, end)
    index += struct.pack("<Q", len(entries))
    index += text(kind) + struct.pack("<QQ", len(packed), size)
    schema = record(0x03, struct.pack("<H", 1) + text("std_msgs/msg/String") + text("ros2msg") + text("string data"))
    channel = record(0x04, struct.pack("<HH", 1, 1) + text("/scene") + text("cdr") + struct.pack("<I", 0))
    summary = schema + channel + record(0x08, index)
    footer = record(0x02, struct.pack("<QQI", end + len(entries), 0, 0))
    file.write_bytes(opening + chunk + entries + summary + footer + MAGIC)
    return file


def zeros_of_lz4(size: int) -> bytes:
    lz4 = pytest.importorskip("lz4.frame")
    return bytes(lz4.compress(bytes(size)))


def test_a_bag_that_unpacks_without_end_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "bounded", lambda: bounded(64 * MEGABYTE))
    size = 512 * MEGABYTE
    file = bomb(tmp_path / "bomb.mcap", "lz4", zeros_of_lz4(size), size)
    assert file.stat().st_size < 4 * MEGABYTE
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(InputError, match=r"bomb\.mcap cannot be read: it takes more memory") as caught:
        read_recording(file)
    only_line(caught.value)
    assert resource.getrlimit(resource.RLIMIT_AS) == limits


def test_where_the_system_does_not_say_what_a_process_has_only_files_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_limits, "STATM", tmp_path / "statm")
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with bounded(64 * MEGABYTE):
        assert resource.getrlimit(resource.RLIMIT_AS) == limits
        assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == MOST_FILE_BYTES


@pytest.mark.parametrize("length", [2**63 - 1, 2**64 - 1, 2**40])
def test_lengths_that_lie_are_one_line(length: int, tmp_path: Path) -> None:
    file = tmp_path / "long.mcap"
    file.write_bytes(MAGIC + record(0x01, text("ros2") + text(""), length) + bytes(100))
    with pytest.raises(InputError, match=r"long\.mcap") as caught:
        read_recording(file)
    only_line(caught.value)


def test_a_message_too_large_is_one_line(bag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bag_source, "MOST_MESSAGE_BYTES", 30)
    with pytest.raises(
        InputError, match=r"no nav_msgs/msg/Odometry in it.*: messages of more than 30 bytes are left out"
    ) as caught:
        read_recording(bag)
    only_line(caught.value)


def test_a_description_too_large_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "metadata.yaml").write_bytes(b" " * (4 * MEGABYTE + 1))
    with pytest.raises(InputError, match=r"metadata\.yaml: 4194305 bytes"):
        read_recording(tmp_path)


@pytest.mark.parametrize(
    "content", ["[" * 1000, "&a [*a, *a]", "\t", "rosbag2_bagfile_information: 7", "\x00", "a: b: c"]
)
def test_a_description_that_is_none_is_one_line(content: str, tmp_path: Path) -> None:
    (tmp_path / "metadata.yaml").write_text(content)
    with pytest.raises(InputError, match=r"metadata\.yaml does not describe a bag") as caught:
        read_recording(tmp_path)
    only_line(caught.value)


def test_a_bag_that_names_files_elsewhere_does_not_get_them(bag: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bag"
    folder.mkdir()
    (folder / "metadata.yaml").write_text(
        "rosbag2_bagfile_information:\n  version: 5\n  storage_identifier: mcap\n  duration: {nanoseconds: 1}\n"
        "  starting_time: {nanoseconds_since_epoch: 0}\n  message_count: 1\n  topics_with_message_count: []\n"
        f"  compression_format: ''\n  compression_mode: ''\n  relative_file_paths: ['{bag}', '../{bag.name}']\n"
    )
    with pytest.raises(InputError, match=r"metadata\.yaml names run\.mcap, which is not there"):
        read_recording(folder)


def test_a_text_nested_without_end_is_one_line(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "a.mcap", DEFINITIONS) as writer:
        messages = Messages(writer, typestore_with(DEFINITIONS))
        messages.odometry(SECOND_NS, 0.0)
        messages.text("/simulator/outcome", SECOND_NS, "[" * 100_000)
    found = read_recording(tmp_path / "a.mcap")
    assert len(found.odometry) == 1
    (complaint,) = found.missing
    assert complaint.startswith("/simulator/outcome: 1 of 1 messages")
    assert "\n" not in complaint


@pytest.mark.parametrize("shape", [(1, 4000, 3), (4000, 1, 3)])
def test_a_picture_of_no_camera_is_one_line(shape: tuple[int, int, int]) -> None:
    _, encoded = cv2.imencode(".png", np.zeros(shape, np.uint8))
    plan: recording.RecordedPlan = None  # type: ignore[assignment]
    with pytest.raises(InputError, match="expected one of a camera"):
        pictures.embedded_picture(encoded.tobytes(), plan, None)


@pytest.mark.parametrize("encoded", [b"", b"\x89PNG\r\n\x1a\n" + bytes(40), b"\xff\xd8\xff" + bytes(10)])
def test_bytes_that_are_no_picture_are_one_line(encoded: bytes) -> None:
    plan: recording.RecordedPlan = None  # type: ignore[assignment]
    with pytest.raises(InputError, match="neither JPEG nor PNG"):
        pictures.embedded_picture(encoded, plan, None)


def test_texts_that_unpack_without_end_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clip_texts, "MOST_BYTES", MEGABYTE)
    with gzip.open(tmp_path / "texts.jsonl.gz", "wb") as file:
        file.write(b" " * (MEGABYTE + 1))
    with pytest.raises(InputError, match=r"texts\.jsonl\.gz cannot be read as rationales: more than 1048576 bytes"):
        read_clips(tmp_path / "texts.jsonl.gz")
