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
# Counts are added up as floats, which are exact below.
MOST_TIMES = 2**53


@dataclass(frozen=True)
class RationaleCorpus:
    """Texts as token ids, the end token included, and how often each was written."""

    counts: tuple[tuple[Text, int], ...] = ()

    @classmethod
    def of(cls, texts: Iterable[Sequence[int]]) -> "RationaleCorpus":
        """The corpus of some texts, in the order in which they first appear."""
        return cls(tuple(Counter(tuple(text) for text in texts if text).items()))

    @classmethod
    def load(cls, path: Path, vocab_size: int | None = None) -> "RationaleCorpus":
        """Read what `save` has written.

        Args:
            path: of the file.
            vocab_size: of the target that is drafted for, None to take any token.

        Raises:
            InputError: when the file is missing, too large, no corpus, or holds tokens that the target has not.
        """
        if path.exists() and not path.is_file():
            msg = f"{path}: not a file, expected a corpus of rationales"
            raise InputError(msg)
        try:
            size = path.stat().st_size
            if size > MOST_BYTES:
                msg = f"{path}: {size} bytes, a corpus of rationales has at most {MOST_BYTES}"
                raise InputError(msg)
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as err:
            msg = f"{path} cannot be read as a corpus of rationales: {err}"
            raise InputError(msg) from err
        corpus = cls(_checked(content, path))
        if vocab_size is not None:
            corpus._check_tokens(path, vocab_size)
        return corpus

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

    def _check_tokens(self, path: Path, vocab_size: int) -> None:
        highest = max((token for text, _ in self.counts for token in text), default=0)
        if highest >= vocab_size:
            msg = f"{path}: token {str(highest)[:40]}, expected the target's, 0 to {vocab_size - 1}"
            raise InputError(msg)


def _checked(content: Any, path: Path) -> tuple[tuple[Text, int], ...]:
    rows = content.get("rationales") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        msg = f'{path}: no list "rationales", expected a corpus of rationales'
        raise InputError(msg)
    for number, row in enumerate(rows):
        # How often, then the token ids.
        fits = isinstance(row, list) and len(row) > 1 and all(type(value) is int and value >= 0 for value in row)
        if not fits or not 1 <= row[0] <= MOST_TIMES:
            msg = f"{path}: rationale {number} is {str(row)[:40]!r}, expected a count and token ids"
            raise InputError(msg)
    return tuple((tuple(row[1:]), row[0]) for row in rows)
