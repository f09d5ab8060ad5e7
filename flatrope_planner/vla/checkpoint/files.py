"""JSON files of a checkpoint, and checkpoints in the local Hugging Face cache."""

from pathlib import Path
from typing import Any

from transformers.utils import cached_file

from flatrope_planner.errors import SetupError, reason
from flatrope_planner.speculation.checkpoints import files

CONFIG_FILE = "config.json"
# An index of weights in several files is the largest.
MOST_BYTES = 16 * 2**20


def read_json(path: Path) -> dict[str, Any]:
    """An object.

    Raises:
        SetupError: when there is no such file of its folder, or none that holds an object, or one too large.
    """
    try:
        content = files.read_json(files.file_in(path.parent, path.name), MOST_BYTES)
    except (OSError, ValueError) as err:
        msg = f"{path}: expected a JSON file of the checkpoint ({reason(err)})"
        raise SetupError(msg) from err
    if not isinstance(content, dict):
        msg = f"{path}: holds a {type(content).__name__}, expected an object"
        raise SetupError(msg)
    return content


def cached_folder(name: str) -> Path | None:
    """The newest snapshot of a Hugging Face repository in the local cache; the network is never asked."""
    try:
        found = cached_file(name, CONFIG_FILE, local_files_only=True)
    except (OSError, ValueError):
        return None
    return None if found is None else Path(found).parent
