"""Tasks in processes: results, and how they end when somebody is interrupted, killed, or has had enough."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.workers import run_in_workers

PATIENCE_S = 60.0


def die(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def nice(_: int) -> int:
    return os.nice(0)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process of its own group, as of a terminal, whose two workers sleep."""
    command = [sys.executable, str(Path(__file__).with_name("worker_program.py")), str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_until(is_so: object) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not is_so():  # type: ignore[operator]
        assert time.monotonic() < until_s
        time.sleep(0.05)


def workers_in(folder: Path) -> list[int]:
    return [int(file.suffix[1:]) for file in folder.iterdir()]


def is_there(process: int) -> bool:
    with suppress(OSError):
        # One that nobody has waited for yet has ended, too.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_each_task_has_its_result() -> None:
    assert dict(run_in_workers(abs, [-3, 4], 2)) == {-3: 3, 4: 4}
    assert dict(run_in_workers(nice, [1], 1, 7)) == {1: os.nice(0) + 7}
    with pytest.raises(InputError, match="at least 1 job, got 0 tasks and 2 jobs"):
        dict(run_in_workers(abs, [], 2))


def test_an_error_of_the_work_is_raised_here() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        dict(run_in_workers(int, ["no number"], 1))


def test_a_process_that_dies_is_told_in_one_line() -> None:
    with pytest.raises(SetupError, match="one of 2 processes at work has died; was there enough memory for all"):
        dict(run_in_workers(die, [0, 1, 2, 3], 2))


def test_interrupted_at_the_terminal_all_end_and_none_complains(program: subprocess.Popen[str], tmp_path: Path) -> None:
    os.killpg(program.pid, signal.SIGINT)
    _, complaints = program.communicate(timeout=PATIENCE_S)
    assert (program.returncode, complaints) == (130, "")
    wait_until(lambda: not any(map(is_there, workers_in(tmp_path))))
    # What had not begun never did.
    assert {file.stem for file in tmp_path.iterdir()} == {"0", "1"}


def test_no_worker_outlives_who_has_started_it(program: subprocess.Popen[str], tmp_path: Path) -> None:
    assert all(map(is_there, workers_in(tmp_path)))
    program.kill()
    wait_until(lambda: not any(map(is_there, workers_in(tmp_path))))
