"""Processes start together, end together, and leave nothing behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from threading import Timer
from typing import Any

import pytest

from flatrope_planner.bringup import description, processes
from flatrope_planner.bringup.description import NodeProcess
from flatrope_planner.bringup.processes import Ended, ProcessGroup, run
from flatrope_planner.cli import main

PATIENCE_S = 20.0
# What stands in for a node, by name.
SCRIPTS = {
    "quiet": "import time; print('up'); time.sleep(60)",
    "stubborn": "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('up'); time.sleep(60)",
    "done": "print('finished its work')",
    "killed": "import os; print('all is well', flush=True); os.kill(os.getpid(), 9)",
    "broken": "import sys; print('oh no'); sys.exit(3)",
    "environment": "import os; print(os.environ['COLOUR'], os.environ['TASTE']); import time; time.sleep(60)",
}


@pytest.fixture(autouse=True)
def scripts_for_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "command_line", lambda process: [sys.executable, "-c", SCRIPTS[process.name]])
    monkeypatch.setattr(processes, "GRACE_S", 0.5)


def nodes(*names: str) -> list[NodeProcess]:
    return [NodeProcess(f"{name}_node", name, "", environment={"TASTE": "sweet"}) for name in names]


def wait_for(condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until_s, "waited in vain"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_output_is_passed_on_with_the_name_and_the_environment_is_set() -> None:
    lines: list[str] = []
    with ProcessGroup(nodes("environment"), {"COLOUR": "blue"}, lines.append):
        wait_for(lambda: bool(lines))
    assert lines[0] == "[environment] blue sweet"


def test_leaving_ends_all_even_those_that_do_not_want_to() -> None:
    lines: list[str] = []
    with ProcessGroup(nodes("quiet", "stubborn"), {}, lines.append) as group:
        pids = [process.pid for process in group._running.values()]
        wait_for(lambda: len(lines) == 2)
        assert group.ended() is None
    assert not any(alive(pid) for pid in pids)
    assert "[stubborn] does not end by itself: killed" in lines


def test_all_but_one_can_be_ended() -> None:
    lines: list[str] = []
    with ProcessGroup(nodes("quiet", "environment"), {"COLOUR": "blue"}, lines.append) as group:
        wait_for(lambda: len(lines) == 2)
        ended, kept = group.pid("environment"), group.pid("quiet")
        group.stop(but="quiet")
        assert (alive(ended), alive(kept)) == (False, True)
        assert group.ended() is None
    assert not alive(kept)


def test_the_first_one_to_end_is_known() -> None:
    with ProcessGroup(nodes("quiet", "broken"), {}, lambda _: None) as group:
        wait_for(lambda: group.ended() is not None)
        assert group.ended() == Ended("broken", 3, "oh no")


def test_one_can_be_killed_and_started_again() -> None:
    lines: list[str] = []
    with ProcessGroup(nodes("quiet"), {}, lines.append) as group:
        wait_for(lambda: len(lines) == 1)
        first = group.pid("quiet")
        group.kill("quiet")
        assert not alive(first)
        assert group.ended() is None
        group.start(*nodes("quiet"))
        wait_for(lambda: len(lines) == 2)
        assert alive(group.pid("quiet"))


def test_a_prefix_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    line = processes.command_line(NodeProcess("planner_node", "planner", "x.yaml", prefix=("nice", "-n", "5")))
    assert line[:5] == ["nice", "-n", "5", sys.executable, "-m"]


@pytest.mark.parametrize(
    ("ended", "how"),
    [
        (Ended("done", 0, "finished its work"), "ended with exit code 0"),
        (Ended("broken", 3, "oh no"), "ended with exit code 3"),
        (Ended("killed", -9, "all is well"), "was ended by signal 9 (SIGKILL)"),
    ],
)
def test_when_one_ends_all_end_and_the_line_says_why(ended: Ended, how: str) -> None:
    lines: list[str] = []
    assert run(nodes("quiet", ended.name), {}, lines.append) == ended
    assert f"the {ended.name} {how}: ending all" in lines


def test_a_signal_without_a_name_is_a_number() -> None:
    assert str(Ended("planner", -40, "all is well")) == "the planner was ended by signal 40 (for real time)"


@pytest.mark.parametrize(("last", "status"), [("done", 0), ("broken", 2), ("killed", 2)])
def test_up_fails_when_a_node_does_and_repeats_its_last_words(
    last: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(description, "planner_processes", lambda _: nodes("quiet", last))
    assert main(["up"]) == status
    said = {
        "done": "",
        "broken": "flatrope: the broken ended with exit code 3: oh no\n",
        "killed": "flatrope: the killed was ended by signal 9 (SIGKILL)\n",
    }
    assert capsys.readouterr().err == said[last]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_end_it_ends_well(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    Timer(0.5, os.kill, [os.getpid(), number]).start()
    assert run(nodes("quiet"), {}, lambda _: None) is None
    assert signal.getsignal(number) == before


def test_what_cannot_be_started_leaves_nothing_running(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    popen: Any = subprocess.Popen

    def second_fails(*arguments: object, **options: object) -> object:
        if started:
            raise OSError("no more processes")  # noqa: EM101
        child = popen(*arguments, **options)
        started.append(child.pid)
        return child

    monkeypatch.setattr(subprocess, "Popen", second_fails)
    with pytest.raises(OSError, match="no more processes"), ProcessGroup(nodes("quiet", "done"), {}, lambda _: None):
        pass
    assert not alive(started[0])
