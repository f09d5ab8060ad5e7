"""Which bags are meant by what stands on the command line, and what they are called."""

from collections.abc import Sequence
from os import fsencode
from os.path import realpath
from pathlib import Path

from flatrope_planner.evaluation.replay.bag_files import PACKED, is_storage
from flatrope_planner.evaluation.replay.bag_metadata import METADATA
from flatrope_planner.evaluation.replay.bag_result import PLANS_BAG, RESULT

RESULT_FILES = {RESULT, PLANS_BAG}


def bags_at(paths: Sequence[Path]) -> dict[str, Path]:
    """Bags by unique names, each once, by whatever path or link it is reached; a file of one of them is no other one.

    A folder that is no bag itself stands for all bags below it, else for itself.
    """
    places: dict[str, Path] = {}
    for path in paths:
        for bag in _bags_below(path, set()) or [path]:
            places.setdefault(realpath(bag), bag)
    named: dict[str, Path] = {}
    for place, bag in places.items():
        if str(Path(place).parent) in places:
            continue
        name, number = _name(bag), 1
        while name in named:
            number += 1
            name = f"{_name(bag)}-{number}"
        named[name] = bag
    return named


def _bags_below(path: Path, seen: set[str]) -> list[Path]:
    """The bags at the path; folders in `seen` were looked through already, as links may lead in a circle."""
    if not path.is_dir():
        return [path]
    try:
        inside = sorted(path.iterdir())
    except OSError:
        # Whoever opens it as a bag says why it cannot be read.
        return [path]
    names = {each.name for each in inside}
    if names >= RESULT_FILES or realpath(path) in seen:
        # What an earlier replay has left is nothing to plan from.
        return []
    files = [file for file in inside if is_storage(file)]
    if METADATA in names or _belong_together(path, files, inside):
        return [path]
    seen.add(realpath(path))
    folders = [folder for folder in inside if folder.is_dir() and not folder.name.startswith(".")]
    return [*files, *(bag for folder in folders for bag in _bags_below(folder, seen))]


def _belong_together(folder: Path, files: Sequence[Path], inside: Sequence[Path]) -> bool:
    """Whether a folder has nothing but files of messages, or such that are named after it."""
    return bool(files) and (len(files) == len(inside) or all(file.name.startswith(folder.name) for file in files))


def _name(bag: Path) -> str:
    """What the bag's files are called, without what they are stored as, in letters that can be shown on one line."""
    path = Path(bag.absolute())
    stem = path.with_suffix("").stem if path.suffix in PACKED else path.stem
    name = fsencode(path.name if bag.is_dir() else stem).decode(errors="replace")
    return "".join(letter if letter.isprintable() else "_" for letter in name)
