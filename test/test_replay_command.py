"""`flatrope replay`: many bags, several processes, nano itself; results do not hang on how it was done."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from drives import Drive, Storage, replay, task_of, write_bag
from replay_work import work_for_ever, work_or_die
from rosbags.rosbag2 import StoragePlugin

from flatrope_planner.cli import main
from flatrope_planner.evaluation.replay.bag_result import finished_result
from flatrope_planner.evaluation.replay.bags import bags_at
from flatrope_planner.evaluation.replay.crew import replay_all
from flatrope_planner.evaluation.replay.progress import ShareLine
from flatrope_planner.evaluation.replay.settings import DRAFTERS, EXACTNESS
from flatrope_planner.evaluation.replay.task import ReplayTask
from flatrope_planner.speculation.exactness import ExactnessMode
from flatrope_planner.vla.drafting import DrafterKind

SHORT = Drive(duration_s=2.6)


def stable(folder: Path) -> dict[str, Any]:
    summary = json.loads((folder / "summary.json").read_text())
    del summary["run"]
    return dict(summary)


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("bags")
    (folder / "broken").mkdir()
    (folder / "broken" / "broken.mcap").write_bytes(b"")
    mcap = write_bag(folder / "first", SHORT)
    sqlite = write_bag(folder / "second", SHORT, Storage(StoragePlugin.SQLITE3))
    return [str(mcap), str(folder / "broken"), str(sqlite)]


@pytest.fixture(scope="module")
def done(bags: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Replayed by two processes."""
    out = tmp_path_factory.mktemp("two")
    assert main(["replay", *bags, "--out", str(out), "--jobs", "2", "--compare", "off", "--samples", "2"]) == 2
    return out


def test_one_process_and_two_give_the_same(bags: list[str], done: Path, tmp_path: Path) -> None:
    arguments = ["--out", str(tmp_path), "--jobs", "1", "--compare", "off", "--samples", "2"]
    assert main(["replay", *bags, *arguments]) == 2
    assert stable(tmp_path) == stable(done)


def test_a_broken_bag_does_not_stop_the_others(bags: list[str], done: Path) -> None:
    summary = stable(done)
    assert summary["counts"] == {"complete": 2, "partial": 0, "failed": 1}
    first, broken, second = summary["bags"]
    assert broken["status"] == "failed"
    assert bags[1] in broken["error"]
    assert {**first, "name": ""} == {**second, "name": ""}
    assert first["plans"] == 3


def test_speculation_changes_nothing_and_its_gain_is_measured(done: Path) -> None:
    summary = json.loads((done / "summary.json").read_text())
    compared = summary["total"]["compared"]
    assert (compared["plans"], compared["identical_rationales"], compared["identical_trajectories"]) == (6, 6, 6)
    assert set(summary["run"]["speedup"]) == {"reasoning", "total"}
    assert summary["total"]["speculation"]["mean_acceptance_length"] >= 1.0
    assert summary["total"]["least_errors"]["samples"] == 2
    least, plan = summary["total"]["least_errors"]["1s"], summary["total"]["errors"]["1s"]
    assert least["plans"] == plan["plans"] == 2 * 1


def test_what_is_done_is_not_done_again(
    bags: list[str], done: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(*_: object) -> None:
        msg = "nothing is left to do"
        raise AssertionError(msg)

    monkeypatch.setattr("flatrope_planner.evaluation.replay.command.replay_all", nobody)
    before = stable(done)
    whole = [bags[0], bags[2]]
    assert main(["replay", *whole, "--out", str(done), "--compare", "off", "--samples", "2"]) == 0
    assert "2 of 2 bags were replayed before" in capsys.readouterr().err
    assert stable(done)["total"] == before["total"]


def test_another_bag_or_other_options_are_another_task(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "drive", SHORT)
    replay(bag, tmp_path / "out")
    task = task_of(bag, tmp_path / "out")
    assert finished_result(task) is not None
    (bag / "drive.mcap").touch()
    os.utime(bag / "drive.mcap", ns=(1, 1))
    assert finished_result(task) is None


@pytest.mark.parametrize("name", ["result.json", "moments.json", "timeline.json", "plans.jsonl", "plans.mcap"])
@pytest.mark.parametrize("damage", ["", "gone"])
def test_a_result_that_is_not_whole_is_made_again(tmp_path: Path, name: str, damage: str) -> None:
    bag = write_bag(tmp_path / "drive", SHORT)
    replay(bag, tmp_path / "out")
    file = tmp_path / "out" / "drive" / name
    file.write_text("")
    if damage == "gone":
        file.unlink()
    assert finished_result(task_of(bag, tmp_path / "out")) is None


def test_a_bag_may_have_the_longest_name_there_is(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "short", SHORT).rename(tmp_path / ("b" * 255))
    assert replay(bag, tmp_path / "out")["status"] == "complete"


def test_names_may_be_of_any_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "all"
    for name in (b"a\xffb", b"a\nb", b"a\xfeb"):
        (folder / "new").parent.mkdir(exist_ok=True)
        write_bag(folder / "new", SHORT).rename(folder / os.fsdecode(name))
    (folder / os.fsdecode(b"c\xff.mcap")).write_bytes(b"none")
    assert list(bags_at([folder])) == ["c\ufffd", "a_b", "a\ufffdb", "a\ufffdb-2"]
    assert main(["replay", str(folder), "--out", str(tmp_path / "out"), "--interval", "5"]) == 2
    assert [bag["status"] for bag in stable(tmp_path / "out")["bags"]] == ["failed", *["complete"] * 3]
    assert "a\ufffdb-2" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    capsys.readouterr().out.encode()


def test_what_was_logged_since_is_another_task(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "drive", SHORT, Storage(StoragePlugin.SQLITE3))
    replay(bag, tmp_path / "out")
    (bag / "drive.db3-wal").write_bytes(b"more")
    assert finished_result(task_of(bag, tmp_path / "out")) is None


@pytest.mark.parametrize("fresh", [False, True])
def test_whoever_is_interrupted_says_what_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fresh: bool
) -> None:
    def interrupted(tasks: list[ReplayTask], *_: object) -> Iterator[dict[str, Any]]:
        yield {"name": tasks[0].name, "status": "complete"}
        yield {"name": tasks[1].name, "status": "failed", "error": "no bag"}
        raise KeyboardInterrupt

    bags = [tmp_path / f"{name}.mcap" for name in "abcd"]
    for bag in bags:
        bag.write_bytes(b"")
    command = "flatrope_planner.evaluation.replay.command"
    monkeypatch.setattr(f"{command}.replay_all", interrupted)
    # The first one was replayed before.
    monkeypatch.setattr(
        f"{command}.finished_result", lambda task: {"status": "partial"} if task.bag == bags[0] else None
    )
    options = ["--fresh"] if fresh else []
    assert main(["replay", str(tmp_path), "--out", str(tmp_path / "out"), *options]) == 130
    kept, same = (1, "the same command without --fresh") if fresh else (2, "the same command")
    told = capsys.readouterr().err.splitlines()[-1]
    assert told == f"flatrope: interrupted: {kept} of 4 bags are replayed and kept; {same} goes on with the others"


def test_another_checkpoint_under_the_same_name_is_another_task(tmp_path: Path) -> None:
    bag, weights = write_bag(tmp_path / "drive", SHORT), tmp_path / "nano"
    weights.mkdir()
    (weights / "config.json").write_text("{}")
    task = task_of(bag, tmp_path / "out")
    named = replace(task, lineup=replace(task.lineup, settings=replace(task.lineup.settings, target=str(weights))))
    before = named.fingerprint
    (weights / "config.json").write_text('{"layers": 2}')
    assert len({task.fingerprint, before, named.fingerprint}) == 3


def test_a_process_that_dies_takes_no_other_bag_with_it(tmp_path: Path) -> None:
    tasks = [task_of(tmp_path / name, tmp_path) for name in ("a", "deadly", "b")]
    shares: list[float] = []
    results = {result["name"]: result for result in replay_all(tasks, 2, shares.append, work_or_die)}
    assert {name: result["status"] for name, result in results.items()} == {
        **dict.fromkeys("ab", "complete"),
        "deadly": "failed",
    }
    assert "the process that replayed it died" in results["deadly"]["error"]
    assert all(0.0 <= share <= 1.0 for share in shares)


def test_whoever_does_not_wait_for_the_end_leaves_nobody_at_work(tmp_path: Path) -> None:
    def interrupt(share: float) -> None:
        if share:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(replay_all([task_of(tmp_path / name, tmp_path) for name in "ab"], 2, interrupt, work_for_ever))
    assert not multiprocessing.active_children()


def test_whoever_is_killed_leaves_nobody_at_work_either(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from drives import task_of; from replay_work import work_for_ever\n"
        "from flatrope_planner.evaluation.replay.crew import replay_all\n"
        "if __name__ == '__main__':\n"
        "    tasks = [task_of(Path(sys.argv[1]), Path(sys.argv[1]))] * 2\n"
        "    list(replay_all(tasks, 2, lambda share: print(share, flush=True), work_for_ever))\n"
    )
    file = tmp_path / "program.py"
    file.write_text(program)
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths}
    with subprocess.Popen([sys.executable, file, tmp_path], env=environment, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        # Half of each is done by then: both are at work.
        assert next((line for line in run.stdout if float(line) >= 0.5), None)
        workers = [Path("/proc", child) for child in children(run.pid) if "spawn_main" in command_of(child)]
        run.kill()
    assert len(workers) == 2
    until_s = time.monotonic() + 30.0
    while any(worker.exists() for worker in workers) and time.monotonic() < until_s:
        time.sleep(0.05)
    left = [worker for worker in workers if worker.exists()]
    for worker in left:
        os.kill(int(worker.name), signal.SIGKILL)
    assert left == []


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def command_of(pid: str) -> str:
    return Path("/proc", pid, "cmdline").read_text()


def test_bad_options_are_one_line_each(bags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "planner.yaml"
    for content, words in {
        "/**: {ros__parameters: {periods: 1.0}}": "sets 'periods', which is no parameter of the planner",
        "/**: {ros__parameters: {drafter: magic}}": "parameter drafter is 'magic', expected one of",
        "planner: {ros__parameters: {period_s: 0.0}}": "parameter period_s is 0.0",
        "/**: {ros__parameters: {twist_frame: map}}": "parameter twist_frame is 'map', expected one of auto, child",
        "/**: {ros__parameters: {rear_axle_offset_m: 11}}": "parameter rear_axle_offset_m is 11, expected a number of",
        "/**: {ros__parameters: {target: 7}}": "parameter target is 7, expected a name",
        "/**: {ros__parameters: {draft: 7}}": "parameter draft is 7, expected a name",
        "/**: {ros__parameters: {cameras: []}}": "parameter cameras is (), expected at least one",
        "/**: {ros__parameters: {precision: fp16}}": "parameter precision is 'fp16', expected one of auto, float32,",
        "/**: {ros__parameters: {temperature: 0.5}}": "parameter draw_seed is -1, expected a seed where temperature is",
        "/**: {ros__parameters: {top_p: 0}}": "parameter top_p is 0, expected a number of [0.01, 1]",
        "/**: {ros__parameters: {exactness: audit}}": "parameter audit_every is 0",
        "controller: {ros__parameters: {rate_hz: 1.0}}": "sets nothing for /planner: it speaks of /controller",
        "": "is empty, expected a parameter file",
        "a: [": "is no parameter file",
    }.items():
        config.write_text(content)
        assert main(["replay", bags[0], "--config", str(config), "--out", str(tmp_path / "out")]) == 2
        complaint = capsys.readouterr().err
        assert words in complaint
        assert complaint.count("\n") == 1
    capsys.readouterr()
    assert main(["replay", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")]) == 2
    only = capsys.readouterr()
    assert (only.out, only.err.count("\n")) == ("", 1)
    assert main(["replay", bags[0], "--target", "nobody/R9", "--out", str(tmp_path / "out")]) == 2
    only = capsys.readouterr()
    assert "there is no target 'nobody/R9': no such folder" in only.err
    assert main(["replay", bags[0], "--camera", "front_wide", "--out", str(tmp_path / "out")]) == 2
    capsys.readouterr()
    for options, words in {
        ("--at-recorded", "--interval", "8"): "--interval: not allowed with argument --at-recorded",
        ("--interval", "11"): "'11' is no number from 0.05 to 10",
        ("--samples", "257"): "'257' is no whole number from 0 to 256",
    }.items():
        with pytest.raises(SystemExit):
            main(["replay", bags[0], *options])
        complaint = capsys.readouterr().err
        assert words in complaint
        assert complaint.count("\n") == 1


def test_a_draft_that_cannot_be_used_is_named(
    bags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "planner.yaml"
    config.write_text("/**: {ros__parameters: {drafter: network, draft: nowhere, period_s: 2.0}}")
    assert main(["replay", bags[0], "--config", str(config), "--out", str(tmp_path / "out")]) == 0
    (said,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("draft: ")]
    assert "the target writes alone: nowhere/config.json" in said


def test_a_folder_stands_for_the_bags_in_it(tmp_path: Path) -> None:
    drives = tmp_path / "drives"
    for name in ("monday/run", "tuesday/run"):
        (drives / name).mkdir(parents=True)
        (drives / name / "metadata.yaml").write_text("")
    (drives / "single.mcap").write_bytes(b"")
    (drives / "packed.db3.zstd").write_bytes(b"")
    found = bags_at([drives, drives / "single.mcap"])
    assert found == {
        "packed": drives / "packed.db3.zstd",
        "single": drives / "single.mcap",
        "run": drives / "monday/run",
        "run-2": drives / "tuesday/run",
    }
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "notes.txt").write_text("no bag")
    assert bags_at([tmp_path / "notes"]) == {"notes": tmp_path / "notes"}


def test_settings_know_what_speculation_knows() -> None:
    assert set(DRAFTERS) == {kind.value for kind in DrafterKind}
    assert set(EXACTNESS) == {mode.value for mode in ExactnessMode}


def test_progress_tells_the_time_left() -> None:
    line = ShareLine("replay", 5)
    line.finished_one()
    assert line.text(0.25, 60.0) == "replay 1/5 bags, 25 %, 1:00 passed, 3:00 left"
    assert line.text(0.0, 2.0) == "replay 1/5 bags, 0 %, 0:02 passed, ..."
