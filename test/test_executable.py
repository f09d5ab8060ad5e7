"""The installed executables' template, filled in: commands that spawn processes must work from it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from sources import ROOT


def test_a_command_that_spawns_workers_runs_from_the_executable(tmp_path: Path) -> None:
    filled = (ROOT / "scripts/executable.py.in").read_text(encoding="utf-8")
    for name, value in {"Python3_EXECUTABLE": sys.executable, "module": "cli", "interrupted": "130"}.items():
        filled = filled.replace(f"@{name}@", value)
    script, out = tmp_path / "flatrope", tmp_path / "driving.json"
    script.write_text(filled, encoding="utf-8")
    script.chmod(0o755)
    chosen = ["--seeds", "1", "--drivers", "reference", "--families", "free_road", "curve", "--jobs", "2"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), *sys.path]))}
    done = subprocess.run(
        [script, "bench", "driving", *chosen, "--json", out],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(out.read_text())["reference"]["success"] == 1.0
