"""The demo's own work: what it refuses, what it keeps, what it leaves. Scripts stand in for the nodes."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from flatrope_planner.bringup import processes
from flatrope_planner.bringup.description import NodeProcess
from flatrope_planner.cli import main
from flatrope_planner.evaluation import demo

RESULTS = {"run.mcap", "report.html", "summary.json"}
FOREVER = "import time; time.sleep(60)"
SUMMARY = {"ticks": 3, "dropped_ticks": 1, "fallback_plans": 4, "control_timeouts": 2, "stage_ms": {}, "scenes": []}


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """Results of an earlier demo."""
    for name in RESULTS:
        (tmp_path / name).write_text("earlier")
    return tmp_path


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Scripts by the name of the node they stand in for; the recorder writes the file it is told to."""
    scripts = {"simulator": "print('all driven')"}

    def command_line(process: NodeProcess) -> list[str]:
        if process.name == "recorder":
            write = f"open({process.parameters['file']!r}, 'w').write('new'); "
            return [sys.executable, "-c", write + FOREVER]
        return [sys.executable, "-c", scripts.get(process.name, FOREVER)]

    def write_report(bag: Path, html: Path) -> dict[str, Any]:
        html.write_text(bag.read_text())
        return SUMMARY

    monkeypatch.setattr(processes, "command_line", command_line)
    monkeypatch.setattr(demo, "write_report", write_report)
    monkeypatch.setattr(demo, "SETTLE_S", 0.3)
    return scripts


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["seed:=-5"], "seed is '-5', expected a number of [0, 999999]"),
        (["family:=foo"], "family is 'foo', expected tour or, separated by commas, free_road, curve"),
        (["family:=lead,"], "family is 'lead,', expected tour"),
        (["real_time_factor:=nan"], "real_time_factor is 'nan', expected a number of [0, 100]"),
        (["role:=a/"], "role is 'a/', expected a name"),
        (["params_file:=none.yaml"], "none.yaml does not exist, expected a parameter file"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_starts(
    earlier: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.delattr(demo, "ProcessGroup")
    assert main(["demo", "--out", str(earlier), *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"flatrope: {words}")
    assert contents(earlier) == dict.fromkeys(RESULTS, "earlier")
    assert main(["demo", "--out", str(earlier / "new"), *arguments]) == 2
    assert not (earlier / "new").exists()


@pytest.mark.parametrize("domain", ["abc", "-1", "233", "1.5"])
def test_a_domain_that_there_is_not_is_refused(
    earlier: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], domain: str
) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", domain)
    assert main(["demo", "--out", str(earlier)]) == 2
    assert capsys.readouterr().err == f"flatrope: ROS_DOMAIN_ID is {domain!r}, expected a whole number of [0, 232]\n"


@pytest.mark.parametrize("node", ["simulator", "planner"])
def test_a_demo_that_fails_says_why_and_keeps_earlier_results(
    earlier: Path, stand_ins: dict[str, str], capsys: pytest.CaptureFixture[str], node: str
) -> None:
    stand_ins[node] = "import sys, time; time.sleep(0.5); sys.exit('the road has ended')"
    if node != "simulator":
        stand_ins["simulator"] = FOREVER
    for out in (earlier, earlier / "new"):
        assert main(["demo", "--out", str(out)]) == 2
        last = capsys.readouterr().err.splitlines()[-1]
        assert last == f"flatrope: before the demo was over the {node} ended with exit code 1: the road has ended"
    assert contents(earlier) == dict.fromkeys(RESULTS, "earlier")


def test_in_the_end_nobody_is_left_to_wait_for_time_to_go_on_but_the_recorder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    still_there: list[list[str]] = []

    class Watched(processes.ProcessGroup):
        def stop(self, but: str = "") -> None:
            super().stop(but)
            still_there.append(list(self._running))

    monkeypatch.setattr(demo, "ProcessGroup", Watched)
    assert main(["demo", "--out", str(tmp_path)]) == 0
    assert still_there == [["recorder"], []]


def test_new_results_replace_earlier_ones_when_all_are_there(
    earlier: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", "83")
    assert main(["demo", "--out", str(earlier)]) == 0
    found = contents(earlier)
    assert json.loads(found.pop("summary.json")).items() >= SUMMARY.items()
    assert found == {"run.mcap": "new", "report.html": "new"}
    printed = capsys.readouterr()
    assert "ROS 2 domain 83, on this machine alone" in printed.err
    assert "3 plans, 1 dropped, 4 fallbacks, 2 times no command in time; scenes:" in printed.out
