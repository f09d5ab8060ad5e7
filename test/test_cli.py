"""The command line: one clear line for every mistake, a result file for every command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from flatrope_planner.cli import main


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
        (("bench", "driving", "--seeds", "many"), "--seeds: invalid int value: 'many'"),
        (("bench", "driving", "--families", "moon"), "no scene family 'moon'"),
        (("bench", "driving", "--seeds", "0"), "seeds is 0, expected at least 1"),
        (("report", "missing.mcap"), "missing.mcap cannot be read as a bag"),
        (("demo", "family=lead"), "'family=lead' is no argument of the form name:=value"),
    ],
)
def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], words: str) -> None:
    assert words in complaint(capsys, *argv)


def test_a_result_that_cannot_be_written_is_found_before_the_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "it is a folder" in complaint(capsys, "report", "missing.mcap", "--json", str(tmp_path))


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
