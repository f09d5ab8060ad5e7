"""metadata.yaml of a rosbag2 folder: which files are the bag, and what is said to be in them."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePath

import yaml

from flatrope_planner.errors import InputError, reason

METADATA = "metadata.yaml"
MOST_BYTES = 4 * 2**20


@dataclass(frozen=True)
class BagMetadata:
    """What a replay needs of it."""

    # Names of files in the folder.
    files: tuple[str, ...]
    # Topic and type -> messages.
    counts: Counter[tuple[str, str]]


def read_metadata(folder: Path) -> BagMetadata:
    """The description of the bag in a folder, of any version of rosbag2.

    Raises:
        InputError: if there is none, or it is none.
    """
    file = folder / METADATA
    if not file.exists():
        msg = f"{folder} has no {METADATA}: what was recorded and never closed may be missing"
        raise InputError(msg)
    try:
        if file.stat().st_size > MOST_BYTES:
            msg = f"{file}: {file.stat().st_size} bytes, the description of a bag has at most {MOST_BYTES}"
            raise InputError(msg)
        said = yaml.safe_load(file.read_text(encoding="utf-8"))["rosbag2_bagfile_information"]
        # Before Foxy names began with that of the folder; files elsewhere are no part of a bag.
        files = tuple(dict.fromkeys(PurePath(path).name for path in said["relative_file_paths"]))
        counts = Counter[tuple[str, str]]()
        for topic in said["topics_with_message_count"]:
            about = topic["topic_metadata"]
            counts[about["name"], about["type"]] += int(topic["message_count"])
    except InputError:
        raise
    except Exception as err:  # bytes that are no text, no YAML, or no description
        msg = f"{file} does not describe a bag: {reason(err)}"
        raise InputError(msg) from err
    return BagMetadata(files, +counts)
