"""What a command prints: where nobody reads on (`| head`, a closed terminal), its work and its result are not lost."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO

# A pipe, and a terminal, whose other end is gone.
UNREAD = (errno.EPIPE, errno.EIO)


@contextmanager
def output_that_may_go_unread() -> Iterator[None]:
    """Within, what is printed goes nowhere as soon as nobody reads it."""
    out, err = _Stream(sys.stdout), _Stream(sys.stderr)
    # Typed as what they stand for.
    stand_ins: tuple[Any, Any] = out, err
    with redirect_stdout(stand_ins[0]), redirect_stderr(stand_ins[1]):
        try:
            yield
        finally:
            out.flush()
            err.flush()


class _Stream:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._unless_unread():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._unless_unread():
            self._stream.flush()

    @contextmanager
    def _unless_unread(self) -> Iterator[None]:
        try:
            yield
        except OSError as err:
            if err.errno not in UNREAD:
                raise
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
