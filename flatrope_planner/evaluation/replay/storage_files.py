"""Files of messages in folders, and which of them are one bag.

Where a folder has no metadata, only names tell: rosbag2 calls the files of a bag NAME_0, NAME_1 and so on. Such files
are one bag, whatever lies beside them; every other file is a bag of its own. A bag of several files that shares its
folder with other bags is called NAME_*.mcap or NAME_*.db3.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.replay.bag_metadata import METADATA

STORAGE_NAMES = (".mcap", ".db3")
PACKED = (".zstd", ".zst")
# rosbag2 writes no zeros before a number, people who number by date do.
NUMBERED = re.compile(r"(.+)_(0|[1-9]\d*)")
ANY_NUMBER = "_*"
MOST_NAMED = 8


def is_storage(path: Path) -> bool:
    """Whether the file holds messages, by its name."""
    return path.is_file() and unpacked_name(path).suffix in STORAGE_NAMES


def unpacked_name(path: Path) -> Path:
    """What the file is called where it is not packed."""
    return path.with_suffix("") if path.suffix in PACKED else path


def files_in(folder: Path) -> list[Path]:
    """The files of messages in a folder, in the order of their numbers; none that is there unpacked as well."""
    files = [path for path in folder.iterdir() if is_storage(path) and not path.name.startswith(".")]
    return sorted(
        (file for file in files if file.suffix not in PACKED or unpacked_name(file) not in files), key=_natural
    )


def files_of(bag: Path) -> list[Path]:
    """The files of messages that a bag is made of; none if there is no such bag."""
    if bag.is_file():
        return [bag]
    if bag.is_dir():
        return files_in(bag)
    is_series = bag.stem.endswith(ANY_NUMBER) and bag.parent.is_dir()
    return loose_bags(bag.parent).get(bag, []) if is_series else []


def loose_bags(folder: Path) -> dict[Path, list[Path]]:
    """The bags that files without metadata in a folder make up, by what they are called; in the order of names."""
    series: dict[tuple[str, str], list[Path]] = {}
    for file in files_in(folder):
        name = unpacked_name(file)
        numbered = NUMBERED.fullmatch(name.stem)
        called = f"{numbered[1]}{ANY_NUMBER}" if numbered else name.stem
        series.setdefault((called, name.suffix), []).append(file)
    bags: dict[Path, list[Path]] = {}
    for (called, suffix), files in series.items():
        if called.endswith(ANY_NUMBER) and _is_one_bag(folder, called.removesuffix(ANY_NUMBER), files):
            bags[folder / f"{called}{suffix}"] = files
        else:
            bags.update({file: [file] for file in files})
    return bags


def is_bag(folder: Path) -> bool:
    """Whether the folder itself is a bag, by its files: with metadata, or with those of one bag alone.

    Such a folder may have lost its metadata, and files with it.
    """
    return (folder / METADATA).exists() or len(loose_bags(folder)) == 1


def missing_parts(files: Sequence[Path]) -> list[str]:
    """Names of the files that numbered files of one name leave room for, without what they are stored as."""
    numbered = [found for file in files if (found := NUMBERED.fullmatch(unpacked_name(file).stem))]
    if len(numbered) < len(files) or len({found[1] for found in numbered}) != 1:
        return []
    there = {int(found[2]) for found in numbered}
    return [f"{numbered[0][1]}_{number}" for number in range(max(there)) if number not in there]


def several_bags(folder: Path, bags: Sequence[Path]) -> InputError:
    """The complaint that a folder holds more bags than the one that is wanted."""
    return InputError(f"{folder} holds {len(bags)} bags; name one of them: {named([str(bag) for bag in bags])}")


def named(names: Sequence[str]) -> str:
    """The names in words, if they are many the first ones."""
    more = [f"and {len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    return ", ".join([*names[:MOST_NAMED], *more])


def _is_one_bag(folder: Path, name: str, files: list[Path]) -> bool:
    """Whether numbered files of one name are the parts of a bag: from the first one on, or named after the folder."""
    has_first = unpacked_name(files[0]).stem == f"{name}_0"
    return len(files) > 1 and (has_first or name == folder.name)


def _natural(path: Path) -> list[int | str]:
    """Sorts drive_2 before drive_10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", path.name)]
