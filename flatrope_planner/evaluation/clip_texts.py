"""Rationales of recorded clips, read from a file and cut into words."""

import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flatrope_planner.errors import InputError

# Words and single punctuation marks are tokens; each text is closed by the end token.
TOKEN = re.compile(r"\w+|[^\w\s]")
END = 0
MOST_WORDS = 30
# A hundred times what there is of published rationales.
MOST_BYTES = 512 * 2**20


@dataclass(frozen=True)
class Clip:
    """What was written in a recorded clip."""

    name: str
    # Token ids of each text, in order.
    texts: tuple[tuple[int, ...], ...]

    @property
    def half(self) -> int:
        """0 or 1: the half of all clips to which this one belongs, by its name alone."""
        return hashlib.sha256(self.name.encode()).digest()[0] % 2


def read_clips(path: Path) -> list[Clip]:
    """Clips with their texts; empty texts and those over `MOST_WORDS` tokens are left out.

    Args:
        path: JSON lines, plain or gzipped; of each line the list of strings "rationales" is read, and the name "clip".

    Raises:
        InputError: when the file cannot be read, or a line is none of these.
    """
    ids: dict[str, int] = {}
    return [_clip(str(row.get("clip", "")), row["rationales"], ids) for row in _rows(path)]


def _clip(name: str, rationales: Sequence[str], ids: dict[str, int]) -> Clip:
    words = [TOKEN.findall(text) for text in rationales]
    kept = [text for text in words if 0 < len(text) <= MOST_WORDS]
    return Clip(name, tuple((*(ids.setdefault(word, len(ids) + END + 1) for word in text), END) for text in kept))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            msg = f"more than {MOST_BYTES} bytes of text"
            raise ValueError(msg)
        text = content.decode()
    except (OSError, EOFError, zlib.error, ValueError) as err:
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


def _checked(row: Any, place: str) -> dict[str, Any]:
    rationales = row.get("rationales") if isinstance(row, dict) else None
    if not isinstance(rationales, list) or not all(isinstance(text, str) for text in rationales):
        msg = f'{place}: expected a JSON object with a list of strings "rationales"'
        raise InputError(msg)
    return dict(row)
