"""JSON files of a checkpoint, and the folder of the backbone that its configuration names."""

from pathlib import Path
from typing import Any

from transformers.utils import cached_file

from flatrope_planner.errors import SetupError, reason
from flatrope_planner.speculation.checkpoints import files

CONFIG_FILE = "config.json"
# An index of weights in several files is the largest.
MOST_BYTES = 16 * 2**20
# Released Alpamayos name a gated repository whose files are those of this one.
SAME_FILES = {"nvidia/Cosmos-Reason2-8B": "Qwen/Qwen3-VL-8B-Instruct"}


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


def find_backbone(checkpoint: Path, name: str) -> Path:
    """The folder of the backbone's configuration, tokenizer and processor settings.

    A name is first taken as a path, seen from the checkpoint and from the working directory, then as that of a folder
    in or beside the checkpoint, then as an id in the local Hugging Face cache.

    Raises:
        SetupError: when it is in none of these places.
    """
    last = Path(name).name
    places = [checkpoint / name, Path(name), checkpoint / last, checkpoint.resolve().parent / last]
    for place in places:
        if (place / CONFIG_FILE).is_file():
            return place
    for repository in (name, SAME_FILES.get(name, name)):
        cached = cached_folder(repository)
        if cached is not None and (cached / CONFIG_FILE).is_file():
            return cached
    msg = (
        f"{checkpoint / CONFIG_FILE}: vlm_name_or_path is {name!r}; expected its config.json in {places[2]}, "
        f"in {places[3]} or in the local Hugging Face cache"
    )
    raise SetupError(msg)
