"""Which bags are meant by what stands on the command line, and what they are called."""

from collections.abc import Sequence
from os.path import realpath
from pathlib import Path

from flatrope_planner.evaluation.replay.bag_files import PACKED, is_storage
from flatrope_planner.evaluation.replay.bag_metadata import METADATA


def bags_at(paths: Sequence[Path]) -> dict[str, Path]:
    """Bags by unique names, each once, by whatever path or link it is reached.

    A folder that is no bag itself stands for all bags below it, else for itself.
    """
    places: dict[str, Path] = {}
    for path in paths:
        for bag in _bags_below(path, set()) or [path]:
            places.setdefault(realpath(bag), bag)
    named: dict[str, Path] = {}
    for bag in places.values():
        name, number = _name(bag), 1
        while name in named:
            number += 1
            name = f"{_name(bag)}-{number}"
        named[name] = bag
    return named


def _bags_below(path: Path, seen: set[str]) -> list[Path]:
    """The bags at the path; folders in `seen` were looked through already, as links may lead in a circle."""
    if not path.is_dir() or _is_bag(path):
        return [path]
    if realpath(path) in seen:
        return []
    seen.add(realpath(path))
    inside = sorted(path.iterdir())
    files = [file for file in inside if is_storage(file)]
    folders = [folder for folder in inside if folder.is_dir() and not folder.name.startswith(".")]
    return [*files, *(bag for folder in folders for bag in _bags_below(folder, seen))]


def _is_bag(folder: Path) -> bool:
    """With metadata, with nothing but files of messages, or with such that are named after the folder."""
    if (folder / METADATA).exists():
        return True
    inside = list(folder.iterdir())
    files = [file for file in inside if is_storage(file)]
    return bool(files) and (len(files) == len(inside) or all(file.name.startswith(folder.name) for file in files))


def _name(bag: Path) -> str:
    """What the bag's files are called, without what they are stored as."""
    path = Path(bag.absolute())
    if bag.is_dir():
        return path.name
    return path.with_suffix("").stem if path.suffix in PACKED else path.stem
