"""Traces of many drives as one sequence; in memory are only those that were used last.

A trace of a target of 8 billion weights takes 74 MB (three tapped layers of 4096, 3000 tokens, bfloat16).
"""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import overload

from flatrope_planner.training.traces import Trace, read_trace, text_lengths

# Of the traces that are kept in memory.
MOST_BYTES = 2**30


class TraceStore(Sequence[Trace]):
    """The traces of drives, in order. Whatever is remembered, the same index is the same trace."""

    def __init__(self, drives: Sequence[Path], most_bytes: int = MOST_BYTES) -> None:
        """Look at the drives' headers.

        Args:
            drives: files of traces.
            most_bytes: of traces that are remembered; the one read last always is.

        Raises:
            InputError: when a file holds something else.
        """
        lengths = {path: text_lengths(path) for path in drives}
        self._places = [(path, number) for path in drives for number in range(len(lengths[path]))]
        # Tokens of the longest text.
        self.longest = max((length for each in lengths.values() for length in each), default=0)
        self._most_bytes, self._held_bytes = most_bytes, 0
        self._held: OrderedDict[int, Trace] = OrderedDict()

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Trace: ...

    @overload
    def __getitem__(self, index: slice) -> list[Trace]: ...

    def __getitem__(self, index: int | slice) -> Trace | list[Trace]:
        if isinstance(index, slice):
            return [self._trace(place) for place in range(*index.indices(len(self)))]
        return self._trace(range(len(self))[index])

    def _trace(self, place: int) -> Trace:
        held = self._held.pop(place, None)
        if held is None:
            held = read_trace(*self._places[place])
            self._held_bytes += held.size_bytes
        self._held[place] = held
        while self._held_bytes > self._most_bytes and len(self._held) > 1:
            self._held_bytes -= self._held.popitem(last=False)[1].size_bytes
        return held
