"""The fault run from end to end over the real middleware, with a planner whose core is quick."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from straight_drive import straight_drive

from flatrope_planner.bringup import processes
from flatrope_planner.bringup.description import PLANNER, NodeProcess
from flatrope_planner.cli import main
from flatrope_planner.evaluation import fault_benchmark, planner_starts, stale_shared_memory
from flatrope_planner.evaluation.faults import FAULTS
from flatrope_planner.evaluation.planner_starts import PlannerStart, planner_process

PROGRAM = Path(__file__).parent / "quick_planner.py"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A drive that need not be rendered, and a planner that need not be loaded."""
    command_line = processes.command_line

    def quick_one(process: NodeProcess) -> list[str]:
        line = command_line(process)
        return [sys.executable, str(PROGRAM), *line[line.index("--ros-args") :]] if process.name == PLANNER else line

    monkeypatch.setattr(processes, "command_line", quick_one)
    monkeypatch.setattr(fault_benchmark, "record_drive", lambda _: straight_drive())


@pytest.mark.usefixtures("quick")
def test_faults_of_a_sensor_and_of_a_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "faults.json"
    assert main(["bench", "faults", "--only", "camera_missing", "odometry_publisher_killed", "--json", str(file)]) == 0
    result = json.loads(file.read_text())
    assert (result["injected"], result["bad_plans_published"]) == (2, 0)
    missing, killed = result["faults"]["camera_missing"], result["faults"]["odometry_publisher_killed"]
    assert missing["named"] is True
    assert any("/drive/front_tele/image" in words for words in missing["status"])
    # What the planner had seen before may still make one plan.
    assert missing["good_plans_meanwhile"] <= 1
    assert missing["recovery_s"] > 0.0
    assert killed["recovery_s"] > 0.0
    assert "camera_missing" in capsys.readouterr().out


@pytest.mark.usefixtures("quick")
def test_a_planner_that_does_not_start_has_not_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner_starts, "SETTINGS", {"period_s": 99.0})
    result = fault_benchmark.run_fault_benchmark(FAULTS[:1])
    (entry,) = result["faults"].values()
    assert not entry["survived"]
    assert "the planner ended with exit code 1: parameter period_s is 99.0" in entry["note"]


def test_drafts_are_broken_in_a_copy(tmp_path: Path) -> None:
    before = (planner_starts.DRAFT / "config.json").read_text()
    for start in (PlannerStart.CORRUPT_DRAFT, PlannerStart.MISMATCHED_DRAFT):
        folder = tmp_path / start.name
        folder.mkdir()
        process = planner_process(start, folder, tmp_path / "orders")
        assert process.parameters["draft"] == str(folder / "draft")
        assert process.parameters["period_s"] == 0.5
    corrupt, mismatched = tmp_path / "CORRUPT_DRAFT" / "draft", tmp_path / "MISMATCHED_DRAFT" / "draft"
    assert (corrupt / "config.json").read_text() == before
    shipped_bytes = (planner_starts.DRAFT / "model.safetensors").stat().st_size
    assert (corrupt / "model.safetensors").stat().st_size == shipped_bytes // 2
    assert (
        json.loads((mismatched / "config.json").read_text())["flatrope"]["target"]
        != (json.loads(before)["flatrope"]["target"])
    )
    assert (planner_starts.DRAFT / "config.json").read_text() == before


def test_compressed_pictures_come_on_their_own_topics(tmp_path: Path) -> None:
    process = planner_process(PlannerStart.COMPRESSED, tmp_path, tmp_path / "orders")
    assert ("~/input/camera/front_wide", "/drive/front_wide/image/compressed") in process.remappings
    assert process.parameters["compressed"] is True


def test_stale_files_are_removed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stale_shared_memory, "SHARED_MEMORY", tmp_path)
    others = tmp_path / next(iter(stale_shared_memory.FILES))
    others.write_bytes(b"somebody's")
    with stale_shared_memory.StaleSharedMemory():
        assert len(list(tmp_path.iterdir())) == len(stale_shared_memory.FILES)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"somebody's"]


def test_what_a_killed_process_leaves_is_removed_once_nobody_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stale_shared_memory, "SHARED_MEMORY", tmp_path)
    files = {
        name: tmp_path / name
        for name in (
            "fastrtps_00000000000000a1",
            "fastrtps_00000000000000a1_el",
            "fastrtps_00000000000000a2",
            "fastrtps_port7400",
        )
    }
    for file in files.values():
        file.write_bytes(b"x" * 4096)
    code = (
        "import mmap, sys; files = [open(name, 'r+b') for name in sys.argv[1:]]\n"
        "held = [mmap.mmap(file.fileno(), 0) for file in files]\n"
        "print('up', flush=True); sys.stdin.read()"
    )
    mapped = [str(files[name]) for name in ("fastrtps_00000000000000a1", "fastrtps_port7400")]
    with subprocess.Popen(
        [sys.executable, "-c", code, *mapped], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        remains = stale_shared_memory.CrashRemains()
        remains.note(child.pid)
        remains.remove()
        assert all(file.exists() for file in files.values())
        child.kill()
    remains.remove()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fastrtps_00000000000000a2", "fastrtps_port7400"]
