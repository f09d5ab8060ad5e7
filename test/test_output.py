"""A command whose reader has gone: no traceback, and no result lost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("unbuffered", "both"), [("1", False), ("", True)])
def test_what_nobody_reads_costs_no_result(tmp_path: Path, unbuffered: str, both: bool) -> None:
    command = [sys.executable, "-m", "flatrope_planner.cli", "demo", "--show-args"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*command, "--json", str(tmp_path / "result.json")],
        stdout=writer,
        stderr=writer if both else subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr or b"") == (0, b"")
    assert (tmp_path / "result.json").stat().st_size


def test_help_is_not_read_to_its_end() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "flatrope_planner.cli", "--help"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
