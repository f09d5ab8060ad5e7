"""The folder of the backbone that a checkpoint's configuration names."""

import os
from pathlib import Path

from flatrope_planner.errors import SetupError
from flatrope_planner.vla.checkpoint.files import CONFIG_FILE, cached_folder

# Released Alpamayos name a gated repository whose files are those of this one.
SAME_FILES = {"nvidia/Cosmos-Reason2-8B": "Qwen/Qwen3-VL-8B-Instruct"}


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
        # os.path says of any name whether it is one.
        if os.path.isfile(place / CONFIG_FILE) and not os.path.samefile(place, checkpoint):  # noqa: PTH113, PTH121
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
