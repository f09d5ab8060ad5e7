"""Finished weights replace earlier ones of their kind, and no other model's."""

from collections.abc import Callable
from pathlib import Path

from flatrope_planner.errors import FlatropeError, InputError

# Files of which a model has one.
OF_A_MODEL = ("config.json", "*.safetensors", "*.safetensors.index.json")


def check_replaceable(folder: Path, read: Callable[[Path], object], kind: str) -> None:
    """Let weights be written into a folder without a model, or with one that is of their kind.

    Args:
        folder: where to write; need not exist.
        read: fails on a folder with another kind of model.
        kind: in words, such as "a draft".

    Raises:
        InputError: when it holds something else, which would be lost.
    """
    if not any(path for pattern in OF_A_MODEL for path in folder.glob(pattern)):
        return
    try:
        read(folder)
    except FlatropeError as err:
        msg = f"--out {folder} holds a model that is not {kind}, expected a new folder, or one with {kind} to replace"
        raise InputError(msg) from err
