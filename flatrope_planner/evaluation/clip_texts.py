"""Rationales of recorded clips, read from a file and cut into words."""

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from flatrope_planner.errors import InputError

# Words and single punctuation marks are tokens; each text is closed by the end token.
TOKEN = re.compile(r"\w+|[^\w\s]")
END = 0
MOST_WORDS = 30

ClipTexts = tuple[tuple[int, ...], ...]


def read_clips(path: Path) -> list[ClipTexts]:
    """Texts of each clip in order as token ids; empty texts and those over `MOST_WORDS` tokens are left out.

    Args:
        path: JSON lines, plain or gzipped; of each line the list of strings "rationales" is read.

    Raises:
        InputError: when the file cannot be read, or a line is none of these.
    """
    ids: dict[str, int] = {}
    return [_clip(rationales, ids) for rationales in _rationales(path)]


def _clip(rationales: Sequence[str], ids: dict[str, int]) -> ClipTexts:
    words = [TOKEN.findall(text) for text in rationales]
    kept = [text for text in words if 0 < len(text) <= MOST_WORDS]
    return tuple((*(ids.setdefault(word, len(ids) + END + 1) for word in text), END) for text in kept)


def _rationales(path: Path) -> Iterator[list[str]]:
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as err:
        msg = f"{path} cannot be read as rationales: {err}"
        raise InputError(msg) from err
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield _checked(_parsed(line), f"{path}, line {number}")


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _checked(row: Any, place: str) -> list[str]:
    rationales = row.get("rationales") if isinstance(row, dict) else None
    if not isinstance(rationales, list) or not all(isinstance(text, str) for text in rationales):
        msg = f'{place}: expected a JSON object with a list of strings "rationales"'
        raise InputError(msg)
    return rationales
