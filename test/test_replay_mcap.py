""".mcap files are read whoever wrote them, in any order and layout; what is damaged in them costs only itself."""

import random
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from drives import Drive, Sent, replay, write_bag
from mcap_files import Layout, write_mcap

from flatrope_planner.evaluation.replay import mcap_records

# Plans at 1.5, 2.0 ... 6.0 s of 243 messages.
DRIVE, ALL_PLANS, ALL_MESSAGES = Drive(duration_s=6.0), 10, 243
ORDERS: dict[str, Callable[[Sequence[Sent]], list[Sent]]] = {
    "recorded": list,
    "by topic": lambda sent: sorted(sent, key=lambda each: each.topic),
    "any": lambda sent: random.Random(0).sample(sent, len(sent)),
}


def same(result: dict[str, Any]) -> dict[str, Any]:
    """What must not differ from file to file."""
    return {name: value for name, value in result.items() if name not in ("run", "fingerprint", "name")}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("expected")
    result = replay(write_bag(folder / "drive", DRIVE), folder / "out")
    assert (result["status"], result["plans"], sum(result["messages"].values())) == (
        "complete",
        ALL_PLANS,
        ALL_MESSAGES,
    )
    return same(result)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "layout",
    [
        Layout(),
        Layout(packed="lz4", indexed=False),
        Layout(indexed=False, counted=False),
        Layout(repeated=False, counted=False),
        Layout(chunk=1000, repeated=False),
        Layout(timed=False),
        Layout(leading=True),
        Layout(chunk=0),
        Layout(chunk=0, repeated=False, counted=False),
    ],
    ids=str,
)
def test_every_order_and_layout_gives_the_same(
    tmp_path: Path, expected: dict[str, Any], layout: Layout, order: str
) -> None:
    file = write_mcap(tmp_path / "drive.mcap", ORDERS[order](DRIVE.sent()), layout)
    assert same(replay(file, tmp_path / "out")) == expected


def places_of_chunks(content: bytes | bytearray) -> list[int]:
    """Where the chunks begin, by the lengths of all records before."""
    places, at = [], 8
    while content[at] != 0x0F:
        if content[at] == 0x06:
            places.append(at)
        at += 9 + int.from_bytes(content[at + 1 : at + 9], "little")
    return places


@pytest.mark.parametrize("packed", ["", "lz4"])
def test_a_chunk_in_the_middle_that_is_damaged_costs_that_chunk(tmp_path: Path, packed: str) -> None:
    file = write_mcap(tmp_path / "drive.mcap", DRIVE.sent(), Layout(packed=packed))
    content = bytearray(file.read_bytes())
    places = places_of_chunks(content)
    content[places[4] + 700] ^= 0x10
    file.write_bytes(content)
    result = replay(file, tmp_path / "out")
    assert sum(result["messages"].values()) == ALL_MESSAGES - 30
    # From 3.0 to 3.6 s nothing is known, and then a history has to follow: 1.5, 2.0, 2.5, and 5.2, 5.7 s.
    assert result["plans"] == 5
    assert result["missing"][0].startswith(f"{file}: 1 of {len(places)} chunks are damaged, and what could not be read")


@pytest.mark.parametrize("layout", [Layout(), Layout(repeated=False, counted=False), Layout(chunk=0)], ids=str)
@pytest.mark.parametrize("where", ["kind", "length", "longer"])
def test_behind_a_record_that_is_none_reading_goes_on(tmp_path: Path, layout: Layout, where: str) -> None:
    file = write_mcap(tmp_path / "drive.mcap", DRIVE.sent(), layout)
    content = bytearray(file.read_bytes())
    # A record near the middle: the chunk, or where there are none the message.
    place = places_of_chunks(content)[4] if layout.chunk else content.index(b"\x05", len(content) // 2)
    if where == "kind":
        content[place : place + 9] = bytes(9)
    elif where == "length":
        content[place + 1 : place + 9] = struct.pack("<Q", 2**40)
    else:
        content[place + 2] += 1
    file.write_bytes(content)
    result = replay(file, tmp_path / "out")
    assert ALL_MESSAGES - 30 <= sum(result["messages"].values()) <= ALL_MESSAGES
    assert result["missing"][0].startswith(f"{file} is damaged or ends in the middle: ")


@pytest.mark.parametrize("kind", [*range(0x10), 0x46, 0x86])
@pytest.mark.parametrize("layout", [Layout(), Layout(chunk=0)], ids=str)
def test_a_record_of_another_kind_is_missed(tmp_path: Path, kind: int, layout: Layout) -> None:
    file = write_mcap(tmp_path / "drive.mcap", DRIVE.sent(), layout)
    content = bytearray(file.read_bytes())
    place = places_of_chunks(content)[4] if layout.chunk else content.index(b"\x05", len(content) // 2)
    changed = content[place] != kind
    content[place] = kind
    file.write_bytes(content)
    result = replay(file, tmp_path / "out")
    count = sum(result["messages"].values())
    assert ALL_MESSAGES - 30 <= count <= ALL_MESSAGES
    # Messages of a chunk that is none are found all the same, where they are not packed.
    assert (result["status"], bool(result["missing"])) == (("partial", True) if changed else ("complete", False))


@pytest.mark.parametrize("packed", ["", "lz4"])
def test_a_file_may_break_off_anywhere(tmp_path: Path, packed: str) -> None:
    file = write_mcap(tmp_path / "drive.mcap", DRIVE.sent(), Layout(packed=packed))
    content = file.read_bytes()
    counts = []
    for share in (0.02, 0.3, 0.6, 0.9, 1.0):
        file.write_bytes(content[: min(int(share * len(content)), len(content) - 1)])
        result = replay(file, tmp_path / "out")
        told = result.get("error") or result["missing"][0]
        assert str(file) in told
        assert "\n" not in told
        counts.append(sum(result.get("messages", {}).values()))
    assert counts == sorted(counts)
    assert counts[-1] == ALL_MESSAGES


def test_the_beginning_of_a_chunk_of_lz4_is_read(tmp_path: Path) -> None:
    # So long that lz4 packs it in several blocks.
    file = write_mcap(tmp_path / "drive.mcap", Drive(duration_s=20.0).sent(), Layout(chunk=1000, packed="lz4"))
    (place,) = places_of_chunks(content := file.read_bytes())
    end = place + 9 + int.from_bytes(content[place + 1 : place + 9], "little")
    file.write_bytes(content[: (place + end) // 2])
    result = replay(file, tmp_path / "out")
    assert result["status"] == "partial"
    assert 200 < sum(result["messages"].values()) < 600


def test_a_chunk_that_unpacks_without_end_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcap_records, "MOST_CHUNK_BYTES", 20_000)
    sent = DRIVE.sent()
    file = write_mcap(tmp_path / "drive.mcap", sent, Layout(chunk=200, packed="lz4"))
    result = replay(file, tmp_path / "out")
    # The first 200 messages have more than that, the others have not.
    assert result["error"].startswith(f"{file}: no plan could be made")
    assert "1 of 2 chunks are damaged" in result["error"]
    assert "at most 20000 are read" in result["error"]


@pytest.mark.parametrize("layout", [Layout(), Layout(chunk=0)], ids=str)
def test_a_summary_that_lies_is_not_believed(tmp_path: Path, expected: dict[str, Any], layout: Layout) -> None:
    file = write_mcap(tmp_path / "drive.mcap", DRIVE.sent(), layout)
    content = file.read_bytes()
    begin, name = content.index(b"\x0f" + struct.pack("<Q", 4)), b"/localization/kinematic_state"
    assert name in content[begin:]
    # Its checksum is another one now.
    file.write_bytes(content[:begin] + content[begin:].replace(name, b"/localization/kinematic_stale"))
    assert same(replay(file, tmp_path / "out")) == expected


def test_topics_that_only_a_misplaced_summary_still_names_are_known(tmp_path: Path) -> None:
    file = write_mcap(tmp_path / "drive.mcap", DRIVE.sent(), Layout())
    content = file.read_bytes()
    # Bytes of the first chunk are lost, and with them the place that the footer gives for the summary is wrong.
    file.write_bytes(content[:300] + content[308:])
    result = replay(file, tmp_path / "out")
    assert ALL_MESSAGES - 30 <= sum(result["messages"].values()) < ALL_MESSAGES
    assert result["plans"] > 0
