"""The state of a training run on disk: written whole or not at all, read without running code from it."""

from pathlib import Path
from typing import Any

import torch

from flatrope_planner.errors import InputError

CHECKPOINT_FILE = "checkpoint.pt"


def save_checkpoint(directory: Path, state: dict[str, Any]) -> None:
    """Replace the checkpoint of a folder."""
    directory.mkdir(parents=True, exist_ok=True)
    partial = directory / f".{CHECKPOINT_FILE}"
    torch.save(state, partial)
    partial.replace(directory / CHECKPOINT_FILE)


def load_checkpoint(directory: Path) -> dict[str, Any] | None:
    """The state in a folder, None when there is none.

    Raises:
        InputError: when the file is damaged.
    """
    path = directory / CHECKPOINT_FILE
    if not path.is_file():
        return None
    try:
        state: dict[str, Any] = torch.load(path, weights_only=True)
    except Exception as err:  # torch.load documents no exceptions of its own
        msg = f"{path}: damaged ({err}); delete it to start over"
        raise InputError(msg) from err
    return state
