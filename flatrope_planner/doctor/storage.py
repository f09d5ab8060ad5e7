"""Room and rights where logs and results are written."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from flatrope_planner.doctor.finding import Finding, Mark

LITTLE_BYTES, TOO_LITTLE_BYTES = 2**30, 50 * 2**20


def check_storage(environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """ROS 2's logs, and out/ for the results of `flatrope demo`."""
    yield _look("logs", log_folder(environment), "export ROS_LOG_DIR=<a folder that can be written to>")
    yield _look("results", Path("out"), "run flatrope in a folder that can be written to, or say --out")


def log_folder(environment: Mapping[str, str]) -> Path:
    """Where ROS 2 writes its logs."""
    if environment.get("ROS_LOG_DIR"):
        return Path(environment["ROS_LOG_DIR"]).expanduser()
    home = environment.get("ROS_HOME") or "~/.ros"
    return Path(home).expanduser() / "log"


def _look(check: str, folder: Path, elsewhere: str) -> Finding:
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(nearest).free
    found, facts = f"{folder}: {free / 1e9:.1f} GB free", {"folder": str(folder), "free_bytes": free}
    problem = _cannot_write(nearest)
    if problem:
        return Finding(check, Mark.FAIL, f"{folder}: {problem}", elsewhere, facts)
    if free < TOO_LITTLE_BYTES:
        return Finding(check, Mark.FAIL, f"{found}: the disk is full", f"remove something there, or {elsewhere}", facts)
    if free < LITTLE_BYTES:
        return Finding(check, Mark.WARN, found, f"remove something there, or {elsewhere}", facts)
    return Finding(check, Mark.OK, found, facts=facts)


def _cannot_write(folder: Path) -> str:
    """Why nothing can be written into a folder; empty if it can."""
    if not folder.is_dir():
        return f"{folder} is a file, expected a folder"
    try:
        # Rights alone do not tell: file systems are mounted read-only, and quotas get used up.
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"0" * 4096)
    except OSError as err:
        return str(err.strerror)
    return ""
