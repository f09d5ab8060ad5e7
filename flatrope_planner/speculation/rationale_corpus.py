"""Rationales of a target that were written before: what a retrieval drafter knows from the start."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flatrope_planner.errors import InputError
from flatrope_planner.speculation.context_counts import ContextCounts
from flatrope_planner.speculation.contexts import Text

# A corpus is counted when it is loaded, and its counts stay in memory.
MOST_BYTES = 4 * 2**20


@dataclass(frozen=True)
class RationaleCorpus:
    """Texts as token ids, the end token included, and how often each was written."""

    counts: tuple[tuple[Text, int], ...] = ()

    @classmethod
    def of(cls, texts: Iterable[Sequence[int]]) -> "RationaleCorpus":
        """The corpus of some texts, in the order in which they first appear."""
        return cls(tuple(Counter(tuple(text) for text in texts if text).items()))

    @classmethod
    def load(cls, path: Path) -> "RationaleCorpus":
        """Read what `save` has written.

        Raises:
            InputError: when the file is missing, too large, or no corpus.
        """
        try:
            size = path.stat().st_size
            if size > MOST_BYTES:
                msg = f"{path}: {size} bytes, a corpus of rationales has at most {MOST_BYTES}"
                raise InputError(msg)
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as err:
            msg = f"{path} cannot be read as a corpus of rationales: {err}"
            raise InputError(msg) from err
        return cls(_checked(content, path))

    def save(self, path: Path) -> None:
        """Write the corpus as JSON, one text a line.

        Raises:
            InputError: when it is too large to be read again.
        """
        lines = (json.dumps([count, *text], separators=(",", ":")) for text, count in self.counts)
        content = '{"rationales": [\n' + ",\n".join(lines) + "\n]}\n"
        if len(content) > MOST_BYTES:
            msg = f"{path}: {len(content)} bytes, a corpus of rationales has at most {MOST_BYTES}"
            raise InputError(msg)
        path.write_text(content, encoding="utf-8")

    def context_counts(self) -> ContextCounts:
        """What follows what in these texts."""
        counts = ContextCounts()
        for text, count in self.counts:
            counts.add(text, float(count))
        return counts


def _checked(content: Any, path: Path) -> tuple[tuple[Text, int], ...]:
    rows = content.get("rationales") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        msg = f'{path}: no list "rationales", expected a corpus of rationales'
        raise InputError(msg)
    for number, row in enumerate(rows):
        # How often, then the token ids.
        fits = isinstance(row, list) and len(row) > 1 and all(type(value) is int and value >= 0 for value in row)
        if not fits or not row[0]:
            msg = f"{path}: rationale {number} is {str(row)[:40]!r}, expected a count and token ids"
            raise InputError(msg)
    return tuple((tuple(row[1:]), row[0]) for row in rows)
