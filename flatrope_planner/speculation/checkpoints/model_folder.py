"""A folder that transformers is to load a model from: what its files refer to, and how much they hold.

transformers itself follows any link and any name in an index, and makes room for whatever the configuration asks for.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flatrope_planner.errors import SetupError, reason
from flatrope_planner.speculation.checkpoints.fields import CONFIG_FILE
from flatrope_planner.speculation.checkpoints.files import file_in, read_json
from flatrope_planner.speculation.checkpoints.header import read_header
from flatrope_planner.speculation.checkpoints.weights import WEIGHTS_FILE

INDEX_FILE = f"{WEIGHTS_FILE}.index.json"
MOST_INDEX_BYTES = 16 * 2**20
# Layers and experts are made one by one, before any weight is looked at.
MOST_PARTS = 1024


def check_model_folder(folder: Path) -> int:
    """How many values the weights in a folder have.

    Raises:
        SetupError: when a link or a name leads out of it, or a file is damaged, without end, or asks for too much.
    """
    for entry in sorted(folder.iterdir()):
        if not entry.is_dir():
            file_in(folder, entry.name)
    _check_parts(folder / CONFIG_FILE, _read(file_in(folder, CONFIG_FILE)))
    return sum(tensor.values for file in _weights(folder) for tensor in read_header(file).values())


def _weights(folder: Path) -> Iterator[Path]:
    whole, index = file_in(folder, WEIGHTS_FILE), file_in(folder, INDEX_FILE)
    if whole.exists() or not index.exists():
        yield whole
        return
    content = _read(index, MOST_INDEX_BYTES)
    places = content.get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(name, str) for name in places.values()):
        msg = f"{index}: no object weight_map of names of files, expected which file holds which weight"
        raise SetupError(msg)
    for name in sorted(set(places.values())):
        yield file_in(folder, name)


def _read(path: Path, most_bytes: int | None = None) -> dict[str, Any]:
    try:
        content = read_json(path) if most_bytes is None else read_json(path, most_bytes)
        if not isinstance(content, dict):
            msg = "not an object"
            raise ValueError(msg)
    except (OSError, ValueError) as err:
        msg = f"{path}: cannot be read ({reason(err)}), expected a JSON object"
        raise SetupError(msg) from err
    return content


def _check_parts(path: Path, content: dict[str, Any]) -> None:
    for name, value in content.items():
        counts = name.endswith(("layers", "layer", "experts")) and type(value) is int
        if counts and value > MOST_PARTS:
            msg = f"{path}: {name} is {str(value)[:40]}, expected at most {MOST_PARTS}"
            raise SetupError(msg)
        if isinstance(value, dict):
            _check_parts(path, value)
