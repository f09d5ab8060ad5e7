"""The ways in which the fault run starts the planner: as it ships, and with something broken from the start."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from pathlib import Path

from flatrope_planner.bringup.description import (
    CAMERA_TOPIC,
    ODOMETRY_TOPIC,
    USE_SIM_TIME,
    NodeProcess,
    planner_processes,
)
from flatrope_planner.errors import SetupError

# What the planner is asked for: a plan every half second, and to say soon what is wrong.
SETTINGS = {"period_s": 0.5, "status_period_s": 0.25, "input_timeout_s": 1.0}
DRAFT = Path(__file__).parent.parent / "weights" / "nano" / "drafts" / "flatrope-8"
WEIGHTS_FILE, CONFIG_FILE = "model.safetensors", "config.json"
# A file system of 64 KiB that only the planner sees, full to the last byte, and an output that takes nothing.
FULL_DISK_SCRIPT = 'mount -t tmpfs -o size=64k none "$0" && cat /dev/zero > "$0/fill"; exec "$@" > /dev/full 2>&1'
PRIVATE_MOUNTS = ("unshare", "--map-root-user", "--mount")


class PlannerStart(Enum):
    """How the planner is started."""

    PLAIN = "plain"
    FAULTY_CORE = "faulty core"
    COMPRESSED = "compressed"
    CORRUPT_DRAFT = "corrupt draft"
    MISMATCHED_DRAFT = "mismatched draft"
    FULL_DISK = "full disk"
    STALE_SHARED_MEMORY = "stale shared memory"


def planner_process(start: PlannerStart, folder: Path, orders: Path) -> NodeProcess:
    """The planner's process.

    Args:
        start: how it is started.
        folder: an empty one for what has to be made for it.
        orders: the pipe through which a faulty core gets its orders.

    Raises:
        SetupError: when the system does not allow this start.
    """
    suffix = "/compressed" if start is PlannerStart.COMPRESSED else ""
    topics = {CAMERA_TOPIC.name: f"/drive/{{camera}}/image{suffix}", ODOMETRY_TOPIC.name: "/drive/odometry"}
    planner = planner_processes({**topics, USE_SIM_TIME.name: "true"})[0]
    planner = replace(planner, parameters={**planner.parameters, **SETTINGS})
    match start:
        case PlannerStart.FAULTY_CORE:
            environment = {**planner.environment, "FLATROPE_FAULT_ORDERS": str(orders)}
            return replace(planner, executable="faulty_planner", environment=environment)
        case PlannerStart.COMPRESSED:
            return _with_parameters(planner, {"compressed": True})
        case PlannerStart.CORRUPT_DRAFT:
            return _with_parameters(planner, {"draft": str(_corrupt_draft(folder / "draft"))})
        case PlannerStart.MISMATCHED_DRAFT:
            return _with_parameters(planner, {"draft": str(_mismatched_draft(folder / "draft"))})
        case PlannerStart.FULL_DISK:
            return _on_full_disk(planner, folder)
        case _:
            return planner


def _with_parameters(planner: NodeProcess, parameters: Mapping[str, bool | str]) -> NodeProcess:
    return replace(planner, parameters={**planner.parameters, **parameters})


def _corrupt_draft(folder: Path) -> Path:
    """A copy of the shipped draft whose weights end in the middle and are noise before that."""
    shutil.copytree(DRAFT, folder)
    weights = (folder / WEIGHTS_FILE).read_bytes()
    (folder / WEIGHTS_FILE).write_bytes(bytes(255 - byte for byte in weights[: len(weights) // 2]))
    return folder


def _mismatched_draft(folder: Path) -> Path:
    """A copy of the shipped draft that says it was trained for another target."""
    shutil.copytree(DRAFT, folder)
    config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    config["flatrope"]["target"] = config["flatrope"]["target"][::-1]
    (folder / CONFIG_FILE).write_text(json.dumps(config), encoding="utf-8")
    return folder


def _on_full_disk(planner: NodeProcess, folder: Path) -> NodeProcess:
    if subprocess.run([*PRIVATE_MOUNTS, "true"], capture_output=True, check=False).returncode:
        msg = "a full disk cannot be made here: `unshare --map-root-user --mount` is not allowed"
        raise SetupError(msg)
    disk = folder / "full"
    disk.mkdir()
    prefix = (*PRIVATE_MOUNTS, "sh", "-c", FULL_DISK_SCRIPT, str(disk))
    return replace(planner, environment={**planner.environment, "ROS_LOG_DIR": str(disk)}, prefix=prefix)
