"""One moment of driving as training material, and the files such moments are kept in.

A shard is one `.npz` file without pickles: it holds the samples of one episode, and each picture once, although the
newest picture of a moment is the older picture of a later one.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flatrope_planner.dimensions import ACTION_SIZE, FUTURE_POINTS, HISTORY_POSES
from flatrope_planner.domain import Decision, Floats, require_array
from flatrope_planner.errors import InputError, reason
from flatrope_planner.simulation.sights import SightMap
from flatrope_planner.simulation.situation import Situation
from flatrope_planner.vla.config import PATCH_PX
from flatrope_planner.vla.pictures import PICTURE_HEIGHT, PICTURE_WIDTH

SHARD_SUFFIX = ".npz"
# Rows and columns of patches in a picture.
PATCHES = (PICTURE_HEIGHT // PATCH_PX, PICTURE_WIDTH // PATCH_PX)


@dataclass(frozen=True)
class TrainingSample:
    """What the cameras and the ego history showed at one moment, and what the reference driver did and said."""

    # JPEG or PNG (see `vla.pictures.encode_picture`), in prompt order: camera by camera, oldest first.
    pictures: tuple[bytes, ...]
    # float64 (16, 3) and (16, 3, 3), ego frame of this moment, as in `domain.EgoHistory`.
    history_position_m: Floats
    history_rotation: Floats
    rationale: str
    decision: Decision
    # float64 (64, 2): acceleration (m/s^2) and curvature (1/m) that lead to each future point.
    action: Floats
    # float64 (64, 3): future points, ego frame, m.
    position_m: Floats
    # Where the sample comes from: scene family, episode seed, simulated time.
    family: str
    seed: int
    time_s: float
    # What each picture shows, and what a driver has to know: for teaching only, no target is told.
    sights: tuple[SightMap, ...]
    situation: Situation
    # Route hint, "" for none.
    command: str = ""

    def __post_init__(self) -> None:
        require_array("sample history positions", self.history_position_m, (HISTORY_POSES, 3), np.float64)
        require_array("sample history rotations", self.history_rotation, (HISTORY_POSES, 3, 3), np.float64)
        require_array("sample actions", self.action, (FUTURE_POINTS, ACTION_SIZE), np.float64)
        require_array("sample positions", self.position_m, (FUTURE_POINTS, 3), np.float64)


def shard_path(directory: Path, family: str, seed: int) -> Path:
    """Where the samples of one episode are kept."""
    return directory / f"{family}-{seed:08d}{SHARD_SUFFIX}"


def list_shards(directory: Path) -> list[Path]:
    """All complete shards of a directory, in a fixed order."""
    return sorted(path for path in directory.glob(f"*{SHARD_SUFFIX}") if not path.name.startswith("."))


def write_shard(path: Path, samples: Iterable[TrainingSample]) -> int:
    """Write all samples to one file, whole or not at all; returns their number.

    Raises:
        InputError: when there is no sample, or samples differ in their number of pictures.
    """
    kept = list(samples)
    if not kept or len({len(sample.pictures) for sample in kept}) != 1:
        msg = f"{path.name}: {len(kept)} samples with unequal or no pictures cannot form a shard"
        raise InputError(msg)
    order = {picture: i for i, picture in enumerate(dict.fromkeys(p for s in kept for p in s.pictures))}
    shown = dict(zip((p for s in kept for p in s.pictures), (x for s in kept for x in s.sights), strict=True))
    arrays = {
        "blob": np.frombuffer(b"".join(order), dtype=np.uint8),
        "ends": np.cumsum([len(picture) for picture in order]),
        "pictures": np.array([[order[picture] for picture in sample.pictures] for sample in kept]),
        "kinds": np.stack([shown[picture].kinds for picture in order]),
        "depth_m": np.stack([shown[picture].depth_m for picture in order]).astype(np.float16),
        "present": np.stack([sample.situation.present for sample in kept]),
        "value": np.stack([sample.situation.value for sample in kept]),
        "history_position_m": np.stack([sample.history_position_m for sample in kept]),
        "history_rotation": np.stack([sample.history_rotation for sample in kept]),
        "action": np.stack([sample.action for sample in kept]),
        "position_m": np.stack([sample.position_m for sample in kept]),
        "rationale": np.array([sample.rationale for sample in kept]),
        "decision": np.array([sample.decision.value for sample in kept]),
        "family": np.array([sample.family for sample in kept]),
        "command": np.array([sample.command for sample in kept]),
        "seed": np.array([sample.seed for sample in kept], dtype=np.int64),
        "time_s": np.array([sample.time_s for sample in kept], dtype=np.float64),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with partial.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    partial.replace(path)
    return len(kept)


def read_shard(path: Path) -> list[TrainingSample]:
    """All samples of one file.

    Raises:
        InputError: when the file is no shard.
    """
    try:
        with path.open("rb") as stored, np.load(stored, allow_pickle=False) as file:
            data = dict(file)
        blob, ends = data["blob"].tobytes(), data["ends"].tolist()
        pictures = [blob[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        return [_sample(data, row, pictures) for row in range(len(data["seed"]))]
    except Exception as err:  # damage shows in the zip file, its compression or an array, each with errors of its own
        msg = f"{path}: not a shard of training samples, or damaged ({reason(err)}); delete it to make it anew"
        raise InputError(msg) from err


def _sample(data: dict[str, NDArray[Any]], row: int, pictures: list[bytes]) -> TrainingSample:
    return TrainingSample(
        pictures=tuple(pictures[index] for index in data["pictures"][row]),
        history_position_m=data["history_position_m"][row],
        history_rotation=data["history_rotation"][row],
        rationale=str(data["rationale"][row]),
        decision=Decision(str(data["decision"][row])),
        action=data["action"][row],
        position_m=data["position_m"][row],
        family=str(data["family"][row]),
        seed=int(data["seed"][row]),
        time_s=float(data["time_s"][row]),
        command=str(data["command"][row]),
        sights=tuple(SightMap(data["kinds"][i], data["depth_m"][i].astype(np.float32)) for i in data["pictures"][row]),
        situation=Situation(data["present"][row], data["value"][row]),
    )
