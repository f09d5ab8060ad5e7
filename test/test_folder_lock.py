"""Two runs into one folder: the second is refused in one line, and a run that ends, however it does, leaves no lock."""

import fcntl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from drives import Drive, write_bag

from flatrope_planner.cli import main
from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.folder_lock import locked

HOLD = (
    "import sys; from pathlib import Path; from flatrope_planner.folder_lock import locked\n"
    "with locked(Path(sys.argv[1])):\n"
    "    print('locked', flush=True); sys.stdin.read()\n"
)


def start_holder(folder: Path) -> "subprocess.Popen[str]":
    """Another process that has the folder until its input ends."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    return holder


@pytest.mark.parametrize("end", [subprocess.Popen.communicate, subprocess.Popen.kill])
def test_a_folder_is_free_again_when_its_process_has_ended(
    tmp_path: Path, end: "Callable[[subprocess.Popen[str]], object]"
) -> None:
    folder = tmp_path / "new" / "out"
    with start_holder(folder) as holder:
        with pytest.raises(InputError, match=rf"^another run writes into {folder}: wait"), locked(folder):
            pass
        end(holder)
    for _ in range(2):
        with locked(folder):
            assert folder.is_dir()


def test_where_there_are_no_locks_nobody_is_kept_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with locked(tmp_path), locked(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(SetupError, match=r"file/out cannot be written: Not a directory$"),
        locked(tmp_path / "file/out"),
    ):
        pass


@pytest.mark.parametrize(
    "command",
    [
        ["replay", "drive", "--out", "out"],
        ["capture", "--out", "out"],
        ["train", "target", "--work", "out", "--out", "weights"],
    ],
)
def test_a_second_run_into_the_same_folder_is_refused_before_its_work(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_bag(tmp_path / "drive", Drive(duration_s=0.2))
    with locked(tmp_path / "out"):
        assert main(command) == 2
    line = "another run writes into out: wait until it has ended, or name another folder"
    assert capsys.readouterr().err == f"flatrope: {line}\n"
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".lock"]
