"""The command line: one clear line for every mistake, a result file for every command."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from flatrope_planner.cli import main
from flatrope_planner.commands.command import prepare_folder_of


def complaint(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run a command that must fail; its one line of complaint."""
    try:
        status = main(list(argv))
    except SystemExit as end:
        status = int(str(end.code))
    assert status == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.endswith("\n")
    assert printed.err.count("\n") == 1
    return printed.err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("fly",), "invalid choice: 'fly'"),
        (("bench", "driving", "--seeds", "many"), "--seeds: 'many' is no whole number of at least 1"),
        (("bench", "driving", "--families", "moon"), "no scene family 'moon'"),
        (("bench", "driving", "--seeds", "0"), "--seeds: '0' is no whole number of at least 1"),
        (("bench", "driving", "--jobs", "0"), "--jobs: '0' is no whole number from 1 to 1024"),
        (("bench", "nano", "--episodes", "-1"), "--episodes: '-1' is no whole number of at least 1"),
        (("bench", "latency", "--prompts", "0"), "--prompts: '0' is no whole number of at least 1"),
        (("bench", "transport", "--seconds", "nan"), "--seconds: 'nan' is no number from 0.1 to 600"),
        (("train", "target", "--jobs", "-2"), "--jobs: '-2' is no whole number from 1 to 1024"),
        (("train", "target", "--episodes", "0"), "--episodes: '0' is no whole number"),
        (("train", "target", "--steps", "0"), "--steps: '0' is no whole number"),
        (("train", "target", "--seed", "-1"), "--seed: '-1' is no whole number from 0"),
        (("train", "target", "--work", __file__), "test_cli.py is a file, expected a folder to write into"),
        (("train", "draft", "--steps", "0"), "--steps: '0' is no whole number of at least 1"),
        (("train", "draft", "--block-size", "0"), "--block-size: '0' is no whole number from 2 to 256"),
        (("train", "draft", "--block-size", "257"), "--block-size: '257' is no whole number from 2 to 256"),
        (("train", "draft", "--layers", "65"), "--layers: '65' is no whole number from 1 to 64"),
        (("train", "draft", "--kind", "medusa", "--block-size", "66"), "--block-size is 66, expected 2 to 65"),
        (("bench", "attention", "--draft", "a=x", "a=y"), "a name stands there twice"),
        (("capture", "--jobs", "0"), "--jobs: '0' is no whole number from 1"),
        (("capture", "--episodes", "0"), "--episodes: '0' is no whole number"),
        (("capture", "--out", __file__), "test_cli.py is a file, expected a folder to write into"),
        (("demo", "--out", __file__), "test_cli.py is a file, expected a folder to write into"),
        (
            ("report", "no/bag.mcap"),
            "no/bag.mcap does not exist; expected the folder of a rosbag2 bag, or an .mcap or .db3 file",
        ),
        (("report", __file__), "test_cli.py is no bag"),
        (("demo", "family=lead"), "'family=lead' is no argument of the form name:=value"),
    ],
)
def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], words: str) -> None:
    assert words in complaint(capsys, *argv)


@pytest.mark.parametrize("bench", ["driving", "nano", "decode", "attention"])
def test_what_measures_nano_takes_no_other_targets_checkpoint(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, bench: str
) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "alpamayo_r1"}')
    told = complaint(capsys, "bench", bench, "--weights", str(tmp_path))
    named = f"{tmp_path / 'config.json'} has model_type 'alpamayo_r1', expected 'flatrope_nano'"
    assert told == f"flatrope: --weights takes nano's weights: {named}\n"
    told = complaint(capsys, "bench", bench, "--weights", "nvidia/Alpamayo-R1-10B")
    assert told == "flatrope: --weights is nvidia/Alpamayo-R1-10B, expected a folder with weights of nano\n"


def test_a_result_that_cannot_be_written_is_found_before_the_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "it is a folder" in complaint(capsys, "report", "missing.mcap", "--json", str(tmp_path))


@pytest.mark.parametrize(
    ("command", "opening"),
    [("demo", "Drive the embedded simulator over ROS 2, record it"), ("report", "Make the report of a recorded bag.")],
)
def test_help_opens_with_a_capital_and_keeps_the_others(
    capsys: pytest.CaptureFixture[str], command: str, opening: str
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert opening in " ".join(capsys.readouterr().out.split())


def test_a_file_system_that_refuses_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "out/big.npz")

    monkeypatch.setattr("flatrope_planner.commands.recordings.prepare_folder_of", full)
    assert complaint(capsys, "report", "any.mcap") == "flatrope: out/big.npz: No space left on device\n"


@pytest.mark.parametrize("command", [("replay", "any.mcap"), ("bench", "nano"), ("doctor",)])
def test_a_result_that_cannot_be_written_is_told_before_the_work(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    # Root may write everywhere, but into no file system that makes its own files.
    told = complaint(capsys, *command, "--json", "/proc/x.json")
    assert told == "flatrope: /proc/x.json cannot be written: No such file or directory\n"


def test_looking_whether_a_result_can_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "made" / "new.json"
    old.write_text("{}")
    for file in (old, new):
        prepare_folder_of(file)
    assert (old.read_text(), new.exists(), new.parent.is_dir()) == ("{}", False, True)


def test_too_little_memory_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("flatrope_planner.commands.recordings.prepare_folder_of", exhausted)
    assert complaint(capsys, "report", "any.mcap") == "flatrope: expected more memory than there is\n"


def test_the_doctors_exit_code_is_that_of_its_result(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    result = {"exit_code": 1, "findings": []}
    monkeypatch.setattr(
        "flatrope_planner.doctor.checkup.check_up",
        lambda planner, target: {**result, "planner": planner, "target": target},
    )
    monkeypatch.setattr("flatrope_planner.doctor.shared_memory.clean", lambda: ["fastrtps_port7500"])
    file = tmp_path / "found.json"
    assert main(["doctor", "--clean", "--planner", "pilot", "--json", str(file)]) == 1
    assert capsys.readouterr().out == "removed from shared memory: fastrtps_port7500\n"
    assert json.loads(file.read_text()) == {**result, "planner": "pilot", "target": "nano"}


def test_leftovers_are_told_before_nodes_start(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ament_index_python")
    done: list[str] = []
    monkeypatch.setattr("flatrope_planner.bringup.leftovers.warn_of_leftovers", lambda _: done.append("told"))
    monkeypatch.setattr("flatrope_planner.bringup.processes.run", lambda *_: done.append("run"))
    assert main(["up"]) == 0
    assert done == ["told", "run"]


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    manifest = (Path(__file__).parents[1] / "package.xml").read_text()
    version = manifest.partition("<version>")[2].partition("<")[0]
    assert capsys.readouterr().out == f"flatrope {version}\n"


def test_help_needs_neither_torch_nor_ros() -> None:
    code = (
        "import sys; from flatrope_planner.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print({'torch', 'rclpy', 'numpy', 'cv2'} & set(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.endswith("set()\n")


def test_arguments_of_the_description_are_listed_and_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("ament_index_python")
    result = tmp_path / "new" / "up.json"
    assert main(["up", "--show-args", "--json", str(result)]) == 0
    assert "role:=ego_vehicle" in capsys.readouterr().out
    assert json.loads(result.read_text())["role"] == "ego_vehicle"
