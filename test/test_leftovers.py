"""Shared memory of ended processes: told from that of living ones, and removed alone. Works in a folder of its own."""

import fcntl
import mmap
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flatrope_planner.bringup import leftovers
from flatrope_planner.bringup.leftovers import described, remove, survey, warn_of_leftovers

PORT, SEGMENT = "fastrtps_port7412", "fastrtps_0123456789abcdef"
LONG_AGO_S = 1_000_000_000


@pytest.fixture(autouse=True)
def not_young(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests make counts as old: nobody can set the time at which an inode was changed."""
    monkeypatch.setattr(leftovers, "YOUNG_S", -1.0)


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_bytes(b"0" * (0 if name.endswith(("_el", "_sl")) else 4096))


def port(folder: Path, name: str = PORT, lock: str = "_el") -> None:
    make(folder, name, f"{name}{lock}", f"sem.{name}_mutex")


@contextmanager
def locked(file: Path, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    with file.open("rb") as held:
        fcntl.flock(held, kind)
        yield


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


@pytest.mark.parametrize("lock", ["_el", "_sl"])
def test_what_nobody_holds_is_left_and_can_be_removed(tmp_path: Path, lock: str) -> None:
    port(tmp_path, lock=lock)
    make(tmp_path, SEGMENT, f"{SEGMENT}_el", "fastrtps_notes", "sem.other", "fast_datasharing_1")
    found = survey(tmp_path)
    assert (found.used, found.unclear) == (0, ())
    assert {each.name for each in found.left} == {PORT, SEGMENT}
    assert sum(each.size_bytes for each in found.left) == 3 * 4096
    words = described(found.left)
    assert words.startswith("1 port and 1 segment of ended processes (0.0 MB, up to 0 min old: fastrtps_")
    assert all(map(remove, found.left))
    assert names(tmp_path) == {"fastrtps_notes", "sem.other", "fast_datasharing_1"}


@pytest.mark.parametrize(("lock", "kind"), [("_el", fcntl.LOCK_EX), ("_sl", fcntl.LOCK_SH)])
def test_what_somebody_holds_is_used(tmp_path: Path, lock: str, kind: int) -> None:
    port(tmp_path, lock=lock)
    # No process is seen: the lock alone tells, as it does across containers.
    with locked(tmp_path / f"{PORT}{lock}", kind):
        assert survey(tmp_path, tmp_path / "no processes").used == 1
    (left,) = survey(tmp_path).left
    with locked(tmp_path / f"{PORT}{lock}", kind):
        assert not remove(left)
    assert len(names(tmp_path)) == 3


def test_what_somebody_only_maps_or_has_open_is_used(tmp_path: Path) -> None:
    port(tmp_path)
    make(tmp_path, SEGMENT)
    with (tmp_path / PORT).open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 4096)
    with (tmp_path / SEGMENT).open("rb"):
        assert survey(tmp_path).used == 2
    mapped.close()
    assert survey(tmp_path).used == 0


def test_a_file_without_lock_is_left_only_where_all_processes_are_seen(tmp_path: Path) -> None:
    make(tmp_path, SEGMENT)
    unseen = survey(tmp_path, tmp_path / "no processes")
    assert (unseen.left, [each.name for each in unseen.unclear]) == ((), [SEGMENT])


def test_what_is_just_being_made_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "YOUNG_S", 10.0)
    port(tmp_path)
    os.utime(tmp_path / PORT, (LONG_AGO_S, LONG_AGO_S))
    assert survey(tmp_path).used == 1


def test_a_killed_process_leaves_what_a_living_one_does_not(tmp_path: Path) -> None:
    port(tmp_path)
    code = (
        "import fcntl, sys, time; file = open(sys.argv[1]); fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('held', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / f"{PORT}_el")], stdout=subprocess.PIPE)
    try:
        assert child.stdout
        assert child.stdout.readline() == b"held\n"
        assert survey(tmp_path).used == 1
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
    assert [each.name for each in survey(tmp_path).left] == [PORT]


def test_a_lock_that_was_replaced_meanwhile_keeps_its_files(tmp_path: Path) -> None:
    port(tmp_path)
    (left,) = survey(tmp_path).left
    (tmp_path / f"{PORT}_el").unlink()
    assert not remove(left)
    assert names(tmp_path) == {PORT, f"sem.{PORT}_mutex"}


def test_a_link_is_no_lock_of_ours(tmp_path: Path) -> None:
    make(tmp_path, PORT, "elsewhere")
    (tmp_path / f"{PORT}_el").symlink_to(tmp_path / "elsewhere")
    assert survey(tmp_path).used == 1
    assert (tmp_path / "elsewhere").exists()


def test_one_line_before_nodes_start_and_none_without_need(tmp_path: Path) -> None:
    lines: list[str] = []
    warn_of_leftovers(lines.append, tmp_path)
    warn_of_leftovers(lines.append, tmp_path / "none")
    assert lines == []
    for number in range(5):
        port(tmp_path, f"fastrtps_port{7410 + number}")
    warn_of_leftovers(lines.append, tmp_path)
    (line,) = lines
    assert "holds 5 ports of ended processes" in line
    assert "fastrtps_port7412, ...): nodes may start late and lose messages; see `flatrope doctor`" in line
