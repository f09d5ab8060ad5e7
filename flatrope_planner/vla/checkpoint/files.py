"""JSON files of a checkpoint, and checkpoints in the local Hugging Face cache."""

import json
from pathlib import Path
from typing import Any

from transformers.utils import cached_file

from flatrope_planner.errors import SetupError, reason

CONFIG_FILE = "config.json"


def read_json(path: Path) -> dict[str, Any]:
    """An object.

    Raises:
        SetupError: when there is no such file, or none that holds an object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as err:
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
