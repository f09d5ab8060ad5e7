"""Tasks in processes: results, and how they end when somebody is interrupted, killed, or has had enough."""

import errno
import multiprocessing
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


class PeculiarError(Exception):
    """Cannot be made again from its message, as pickle does it."""

    def __init__(self, number: int, kind: str) -> None:
        super().__init__(f"{kind} {number}")


def be_peculiar(number: int) -> None:
    raise PeculiarError(number, "number")


def leave_trace(file: Path) -> None:
    time.sleep(5.0)
    file.touch()


def send_much(_: int) -> bytes:
    return bytes(50_000_000)


class Interrupting(list[Path]):
    """Tasks that somebody interrupts while they are handed out."""

    def __iter__(self) -> Iterator[Path]:
        yield from [self[0]]
        signal.raise_signal(signal.SIGINT)
        yield from self[1:]


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


def test_an_error_that_cannot_be_sent_is_told_in_words() -> None:
    with pytest.raises(RuntimeError, match=r"^PeculiarError: number 3 \(be_peculiar, line \d+\)$"):
        dict(run_in_workers(be_peculiar, [3], 1))


def test_processes_that_cannot_be_started_are_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", start)
    with pytest.raises(SetupError, match=r"^2 processes cannot be started: Resource temporarily unavailable$"):
        dict(run_in_workers(abs, [1, 2], 9))


def test_interrupted_while_the_work_is_handed_out_nothing_is_waited_for(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            dict(run_in_workers(leave_trace, Interrupting([tmp_path / "a", tmp_path / "b"]), 2))
    finally:
        signal.signal(signal.SIGINT, before)
    assert not multiprocessing.active_children()
    assert not list(tmp_path.iterdir())


def test_processes_that_end_while_they_send_their_results_are_not_waited_for() -> None:
    # Not read to their ends, nor one by one: the first result is there while others are on their way.
    for _ in run_in_workers(send_much, range(6), 2):
        break
    assert not multiprocessing.active_children()


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
