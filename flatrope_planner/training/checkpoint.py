"""The state of a training run on disk: written whole or not at all, read without running code from it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from flatrope_planner.errors import InputError, SetupError, reason

CHECKPOINT_FILE = "checkpoint.pt"
# Where a state says of which run it is.
RUN = "run"


def save_checkpoint(directory: Path, state: dict[str, Any]) -> None:
    """Replace the checkpoint of a folder.

    Raises:
        SetupError: when it cannot be written; the one before it is kept.
    """
    path, partial = directory / CHECKPOINT_FILE, directory / f".{CHECKPOINT_FILE}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        torch.save(state, partial)
        partial.replace(path)
    except (OSError, RuntimeError) as err:
        # PyTorch says in a way of its own that it is full.
        msg = f"{path}: cannot be written; is the disk full? ({reason(err)})"
        raise SetupError(msg) from err


def load_checkpoint(directory: Path) -> dict[str, Any] | None:
    """The state in a folder, None when there is none.

    Raises:
        InputError: when the file is damaged, or no state of a training run.
    """
    path = directory / CHECKPOINT_FILE
    if not path.is_file():
        return None
    try:
        state: Any = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as err:  # torch.load documents no exceptions of its own
        msg = f"{path}: damaged ({reason(err)}); delete it to start over"
        raise InputError(msg) from err
    if not isinstance(state, dict):
        msg = f"{path}: a {type(state).__name__}, expected the state of a training run; use an empty folder"
        raise InputError(msg)
    return state


def require_same_run(directory: Path, state: Mapping[str, Any], run: Mapping[str, str]) -> None:
    """See to it that the state from this folder is of this very run: names of what a run is made by, and their values.

    Weights of the same sizes fit wherever they are from: those of one run would silently be taken for another's.

    Raises:
        InputError: naming what differs.
    """
    path, before = directory / CHECKPOINT_FILE, state.get(RUN)
    if not isinstance(before, dict):
        msg = f"{path}: checkpoint of something else, or of an earlier version; use an empty folder"
        raise InputError(msg)
    for name, value in run.items():
        if before.get(name) != value:
            msg = f"{path}: checkpoint of a run with {name} {before.get(name)}, not {value}; use an empty folder"
            raise InputError(msg)


@contextmanager
def restoring(directory: Path) -> Iterator[None]:
    """Around whatever takes up the state that `load_checkpoint` read from this folder.

    Raises:
        InputError: when the state is another run's, or of other sizes.
    """
    try:
        yield
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as err:
        msg = f"{directory / CHECKPOINT_FILE}: checkpoint of something else ({reason(err)}); use an empty folder"
        raise InputError(msg) from err
