"""Which files belong to a folder of weights, and how much of them is read unseen. Loads no PyTorch.

The folder is named by the user, who may name any. What lies in it may be of anyone's making: a name in it leads to no
other folder, and neither does a link, but for the one kind that Hugging Face's cache consists of: from
`<model>/snapshots/<revision>/` to `<model>/blobs/`.
"""

import json
from pathlib import Path
from typing import Any

from flatrope_planner.errors import SetupError, reason

# Nothing that describes a model is larger, or nested deeper.
MOST_CONFIG_BYTES, MOST_DEPTH = 1_000_000, 32
SNAPSHOTS, BLOBS = "snapshots", "blobs"
# How a pointer of Git LFS begins: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md.
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
# Most characters of a name that a message shows.
MOST_SHOWN = 160


def file_in(directory: Path, name: str) -> Path:
    """The file of that name in a folder, whether it is there or not.

    Raises:
        SetupError: when the name or a link leads out of the folder, or there is something else than a file.
    """
    path = directory / name
    if name in ("", ".", "..") or Path(name).name != name:
        msg = f"{directory}: {name[:80]!r} is no plain file name, expected one of a file in this folder"
        raise SetupError(msg)
    try:
        if not path.exists() and not path.is_symlink():
            return path
    except OSError as err:
        # Too long a name, or a folder that may not be looked into.
        msg = f"{str(path)[:MOST_SHOWN]}: cannot be looked at ({reason(err)[:MOST_SHOWN]}), expected a file"
        raise SetupError(msg) from err
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError) as err:
        msg = f"{path}: a link to {path.readlink()}, where there is nothing; put the file itself there"
        raise SetupError(msg) from err
    if not _belongs(target, directory.resolve()):
        msg = f"{path}: a link to {target}, out of its folder; put the file itself there, or link the folder"
        raise SetupError(msg)
    if not target.is_file():
        # A pipe or a device might never end.
        msg = f"{path}: not a file"
        raise SetupError(msg)
    if _stands_for_another(target):
        msg = f"{path}: a pointer of Git LFS, expected the file itself: `git lfs pull` fetches it"
        raise SetupError(msg)
    return path


def _stands_for_another(file: Path) -> bool:
    """Whether it only says where a large file is kept, as `git clone` leaves it where Git LFS is not installed."""
    try:
        with file.open("rb") as opened:
            return opened.read(len(LFS_POINTER)) == LFS_POINTER
    except OSError:
        # Whoever reads it says so.
        return False


def read_json(path: Path, most_bytes: int = MOST_CONFIG_BYTES) -> Any:
    """The content of a JSON file.

    Raises:
        OSError: when it cannot be read.
        ValueError: when it is too large, nested too deep, or no JSON.
    """
    with path.open("rb") as file:
        raw = file.read(most_bytes + 1)
    if len(raw) > most_bytes:
        msg = f"more than {most_bytes} bytes"
        raise ValueError(msg)
    return parse_json(raw)


def parse_json(raw: bytes) -> Any:
    """The content of JSON that is not nested too deep.

    Raises:
        ValueError: when it is, or is no JSON.
    """
    too_deep = f"nested deeper than {MOST_DEPTH} levels"
    try:
        content = json.loads(raw)
    except RecursionError as err:
        raise ValueError(too_deep) from err
    level = [content]
    for _ in range(MOST_DEPTH):
        level = [child for value in level for child in _children(value)]
    if level:
        raise ValueError(too_deep)
    return content


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _belongs(target: Path, home: Path) -> bool:
    """Whether a file, links followed, is of a folder, links followed."""
    if target.is_relative_to(home):
        return True
    return home.parent.name == SNAPSHOTS and target.is_relative_to(home.parents[1] / BLOBS)
