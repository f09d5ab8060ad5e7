"""Which bags are meant by what stands on the command line, and what they are called."""

from collections.abc import Sequence
from os import fsencode
from os.path import realpath
from pathlib import Path

from flatrope_planner.evaluation.replay.bag_metadata import METADATA
from flatrope_planner.evaluation.replay.output_folder import PLANS_BAG, RESULT
from flatrope_planner.evaluation.replay.storage_files import (
    ANY_NUMBER,
    files_of,
    is_bag,
    loose_bags,
    several_bags,
    unpacked_name,
)

RESULT_FILES = {RESULT, PLANS_BAG}


def bags_at(paths: Sequence[Path]) -> dict[str, Path]:
    """Bags by unique names, each once, by whatever path or link it is reached; a part of one counts with it.

    A folder that is no bag itself stands for all bags below it, else for itself.
    """
    places: dict[str, Path] = {}
    for path in paths:
        for bag in _bags_below(path, set()) or [path]:
            places.setdefault(realpath(bag), bag)
    parts = {realpath(file) for bag in places.values() if not bag.is_file() for file in _files_of(bag)}
    named: dict[str, Path] = {}
    for place, bag in places.items():
        if place in parts:
            continue
        name, number = _name(bag), 1
        while name in named:
            number += 1
            name = f"{_name(bag)}-{number}"
        named[name] = bag
    return named


def the_bag_at(path: Path) -> Path:
    """The only bag that a path stands for.

    Raises:
        InputError: if there are several.
    """
    bags = list(bags_at([path]).values())
    if len(bags) > 1:
        raise several_bags(path, bags)
    return bags[0]


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
    if METADATA in names:
        return [path]
    if names >= RESULT_FILES or realpath(path) in seen:
        # What an earlier replay has left is nothing to plan from.
        return []
    seen.add(realpath(path))
    folders = [folder for folder in inside if folder.is_dir() and not folder.name.startswith(".")]
    below = [bag for folder in folders for bag in _bags_below(folder, seen)]
    return [path] if is_bag(path) and not below else [*loose_bags(path), *below]


def _files_of(bag: Path) -> list[Path]:
    try:
        return files_of(bag)
    except OSError:
        # A folder that nobody may look into.
        return []


def _name(bag: Path) -> str:
    """What the bag's files are called, in letters that can be shown on one line.

    Without what they are stored as, and without numbers if they are several.
    """
    path = Path(bag.absolute())
    stem = unpacked_name(path).stem.removesuffix(ANY_NUMBER)
    name = fsencode(path.name if bag.is_dir() else stem).decode(errors="replace")
    return "".join(letter if letter.isprintable() else "_" for letter in name)
